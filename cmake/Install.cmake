# The C API's version, its examples, installation, and the tests of these.

set_property(SOURCE src/capi/boundary.cc APPEND PROPERTY COMPILE_DEFINITIONS "RIDGE_VERSION=\"${PROJECT_VERSION}\"")

# cmake --install build/cpu --prefix PREFIX; then find_package(ridge CONFIG) finds ridge::ridge in it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(ridge_package ${CMAKE_INSTALL_LIBDIR}/cmake/ridge)
install(TARGETS ridge EXPORT ridge-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT ridge-targets NAMESPACE ridge:: DESTINATION ${ridge_package})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
# The C++ headers, under a folder of their own: their names ("base/status.h") are too common for a shared one.
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ridge/cpp FILES_MATCHING PATTERN *.h
  PATTERN *_json.h EXCLUDE)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
configure_package_config_file(cmake/ridge-config.cmake.in ${PROJECT_BINARY_DIR}/ridge-config.cmake
  INSTALL_DESTINATION ${ridge_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ridge-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ridge-config.cmake ${PROJECT_BINARY_DIR}/ridge-config-version.cmake
  DESTINATION ${ridge_package})
# ridge.pc finds its prefix from where it lies, which takes a libdir of one level: lib, lib64.
if(NOT CMAKE_INSTALL_LIBDIR MATCHES "/" AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  configure_file(cmake/ridge.pc.in ${PROJECT_BINARY_DIR}/ridge.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/ridge.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if(TARGET ridge_app)
  install(TARGETS ridge_app RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

if(NOT RIDGE_TESTS)
  return()
endif()

# Examples are C11 without extensions, and warn of nothing.
file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c)
foreach(source IN LISTS example_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  set_target_properties(example_${name} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(example_${name} PRIVATE -pedantic -Wall -Wextra -Werror)
  target_link_libraries(example_${name} PRIVATE ridge m)
endforeach()
add_test(NAME Example.rms_norm_over_the_callers_memory COMMAND example_rms_norm)
# Skipped, with that said, where there is no model.
add_test(NAME Example.hello_answers_from_a_model COMMAND sh -c
  "[ -n \"$RIDGE_SMOLLM2\" ] || { echo 'RIDGE_SMOLLM2 is not set: skipped'; exit 77; }; exec \"$0\" \"$RIDGE_SMOLLM2\""
  $<TARGET_FILE:example_hello>)
# Outside of the source tree: installs into a folder of its own and builds tests/capi/consumer against that alone.
add_test(NAME Install.a_project_elsewhere_finds_links_and_runs_it COMMAND ${CMAKE_COMMAND}
  -Dbuild=${PROJECT_BINARY_DIR} -Dconsumer=${PROJECT_SOURCE_DIR}/tests/capi/consumer
  -Dexample=${PROJECT_SOURCE_DIR}/examples/rms_norm.c -Dlibdir=${CMAKE_INSTALL_LIBDIR}
  -Dgenerator=${CMAKE_GENERATOR} -Dsanitize=${RIDGE_SANITIZE} -Dversion=${PROJECT_VERSION}
  -Dc=${CMAKE_C_COMPILER} -Dcxx=${CMAKE_CXX_COMPILER} -P ${PROJECT_SOURCE_DIR}/tests/capi/install_test.cmake)
set_tests_properties(Example.rms_norm_over_the_callers_memory Example.hello_answers_from_a_model
  Install.a_project_elsewhere_finds_links_and_runs_it PROPERTIES LABELS slow TIMEOUT 300 SKIP_RETURN_CODE 77)
