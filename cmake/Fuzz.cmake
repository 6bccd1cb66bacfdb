# libFuzzer targets: every tests/fuzz/NAME_fuzz.cc, over base, tensor and formats alone, with address and undefined
# behaviour sanitizers, in the asan preset. A test of label fuzz runs each for a while:
#   cmake --preset asan && cmake --build build/asan --target fuzz_targets && ctest --test-dir build/asan -L fuzz
# Its corpus is build/asan/corpus/NAME: seeds that the target writes itself (tests/fuzz/seeds.h), what runs add, and the
# files of tests/fuzz/seeds/NAME/ if there are any. To fuzz on: build/asan/NAME_fuzz build/asan/corpus/NAME

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT RIDGE_SANITIZE STREQUAL "address")
  message(FATAL_ERROR "RIDGE_FUZZ needs clang and RIDGE_SANITIZE=address, these are ${CMAKE_CXX_COMPILER_ID} and "
    "\"${RIDGE_SANITIZE}\": use cmake --preset asan")
endif()
set(RIDGE_FUZZ_SECONDS 20 CACHE STRING "Longest run of a fuzzing test, in seconds")
set(RIDGE_FUZZ_RUNS 50000 CACHE STRING "Most inputs that a fuzzing test tries")

enable_testing()
# The checks that the other files go without (cmake/Warnings.cmake) as well.
target_compile_options(ridge_fuzzed PRIVATE -fsanitize=fuzzer-no-link,address,undefined)
target_include_directories(ridge_fuzzed PUBLIC src)
target_link_libraries(ridge_fuzzed PUBLIC ridge_warnings Threads::Threads nlohmann_json::nlohmann_json)
add_custom_target(fuzz_targets)

file(GLOB targets CONFIGURE_DEPENDS tests/fuzz/*_fuzz.cc)
foreach(source IN LISTS targets)
  get_filename_component(target ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${target})
  add_executable(${target} EXCLUDE_FROM_ALL ${source})
  add_dependencies(fuzz_targets ${target})
  target_include_directories(${target} PRIVATE tests)
  target_link_libraries(${target} PRIVATE ridge_fuzzed)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer,address,undefined)
  set(corpus ${PROJECT_BINARY_DIR}/corpus/${name})
  file(MAKE_DIRECTORY ${corpus})
  set(folders ${corpus})
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/fuzz/seeds/${name})
    list(APPEND folders ${PROJECT_SOURCE_DIR}/tests/fuzz/seeds/${name})
  endif()
  add_test(NAME ${target} COMMAND ${target} -max_total_time=${RIDGE_FUZZ_SECONDS} -runs=${RIDGE_FUZZ_RUNS} -timeout=10
    -rss_limit_mb=1024 -print_final_stats=1 -artifact_prefix=${PROJECT_BINARY_DIR}/found-${name}- ${folders})
  set_tests_properties(${target} PROPERTIES LABELS fuzz TIMEOUT 300)
endforeach()
