# libFuzzer targets: every tests/fuzz/NAME_fuzz.cc, over base, tensor and formats alone, with address and undefined
# behaviour sanitizers. A test of label fuzz runs each for a while:
#   cmake --preset fuzz && cmake --build build/fuzz && ctest --test-dir build/fuzz
# Its corpus is build/fuzz/corpus/NAME: seeds that the target writes itself (tests/fuzz/seeds.h), what runs add, and the
# files of tests/fuzz/seeds/NAME/ if there are any. To fuzz on: build/fuzz/NAME_fuzz build/fuzz/corpus/NAME

if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "RIDGE_FUZZ needs clang, the compiler is ${CMAKE_CXX_COMPILER_ID}: use cmake --preset fuzz")
endif()
set(RIDGE_FUZZ_SECONDS 20 CACHE STRING "Longest run of a fuzzing test, in seconds")
set(RIDGE_FUZZ_RUNS 50000 CACHE STRING "Most inputs that a fuzzing test tries")

enable_testing()
file(GLOB_RECURSE fuzzed CONFIGURE_DEPENDS src/base/*.cc src/tensor/*.cc src/formats/*.cc)
add_library(ridge_fuzzed STATIC ${fuzzed})
target_include_directories(ridge_fuzzed PUBLIC src)
target_compile_options(ridge_fuzzed PUBLIC -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
  -fno-omit-frame-pointer)
target_link_libraries(ridge_fuzzed PUBLIC ridge_warnings Threads::Threads nlohmann_json::nlohmann_json)

file(GLOB targets CONFIGURE_DEPENDS tests/fuzz/*_fuzz.cc)
foreach(source IN LISTS targets)
  get_filename_component(target ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${target})
  add_executable(${target} ${source})
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
