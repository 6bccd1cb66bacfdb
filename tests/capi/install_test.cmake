# cmake -Dbuild=… -Dconsumer=… -Dexample=… -Dlibdir=… -Dgenerator=… -Dversion=… -Dc=… -Dcxx=… -P install_test.cmake
# Installs `build` into a folder of its own, copies the consumer beside it, builds it there as a C and as a C++ project,
# and runs what came out. Fails with the output of the step that failed.

if(sanitize)
  message("skipped: a sanitized library needs its users sanitized too")
  return()
endif()
set(work ${build}/install_test)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}\nended with ${result}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

step(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
file(COPY ${consumer} DESTINATION ${work})
foreach(language C CXX)
  set(folder ${work}/build-${language})
  step(${CMAKE_COMMAND} -S ${work}/consumer -B ${folder} -G ${generator} -DCMAKE_PREFIX_PATH=${work}/prefix
    -DCMAKE_C_COMPILER=${c} -DCMAKE_CXX_COMPILER=${cxx} -Dlanguage=${language} -Dwanted=${version})
  step(${CMAKE_COMMAND} --build ${folder})
  step(${folder}/consumer)
  if(NOT output MATCHES "ridge ${version}: rms_norm is right")
    message(FATAL_ERROR "the ${language} consumer printed:\n${output}")
  endif()
endforeach()

# Without CMake: the command that the examples show, and what pkg-config says, where there is one.
set(here ${work}/prefix)
step(${c} -std=c11 -I${here}/include ${example} -o ${work}/plain -L${here}/${libdir} -lridge -lstdc++ -lm -pthread)
step(${work}/plain)
find_program(pkg_config NAMES pkg-config pkgconf)
if(pkg_config AND EXISTS ${here}/${libdir}/pkgconfig/ridge.pc)
  set(ENV{PKG_CONFIG_PATH} ${here}/${libdir}/pkgconfig)
  step(${pkg_config} --cflags --libs "ridge = ${version}")
  separate_arguments(flags UNIX_COMMAND "${output}")
  step(${c} -std=c11 ${example} -o ${work}/by_pkg_config ${flags})
  step(${work}/by_pkg_config)
endif()

# A version that this one cannot stand for is refused.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${work}/consumer -B ${work}/build-newer -G ${generator}
  -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_C_COMPILER=${c} -Dlanguage=C -Dwanted=99.0
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
if(result EQUAL 0)
  message(FATAL_ERROR "version 99.0 was asked for and ${version} taken for it")
endif()

# Nothing in what is installed points back to where it was built.
file(GLOB_RECURSE texts ${here}/*.cmake ${here}/*.h ${here}/*.pc)
foreach(text IN LISTS texts)
  file(READ ${text} content)
  if(content MATCHES "${build}" OR content MATCHES "nlohmann|ridge_warnings")
    message(FATAL_ERROR "${text} names what was there at its build alone")
  endif()
endforeach()
