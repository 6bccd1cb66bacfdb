# Discovery. Nothing lists operators, kernels or tests by hand:
#   src/**/*.cc                       the library, but for kernels
#   src/ops/OP/OP.h                   operator OP; its description is describe_OP() for OPArgs (CamelCase)
#   src/ops/OP/*_cpu.cc               CPU kernels, compiled once per instruction set in namespace ridge::RIDGE_ISA;
#                                     file NAME_cpu.cc defines void NAME_cpu(Kernels<OPArgs>&)
#   src/ops/OP/*_cuda.cu              CUDA kernels, with RIDGE_CUDA; void NAME_cuda(Kernels<OPArgs>&) in ridge::cuda
# The registration is written into the build folder.

set(RIDGE_ISAS scalar avx2 avx512)
# Operators' kernels can be left out for some sets, to compile less (sanitizers): a device of a wider set then takes
# those of the next narrower one. A processor that has none of them gets no device, and is told why (runtime/isa.cc).
set(RIDGE_KERNEL_ISAS ${RIDGE_ISAS} CACHE STRING "Instruction sets to compile operators' kernels for")
foreach(isa IN LISTS RIDGE_KERNEL_ISAS)
  if(NOT isa IN_LIST RIDGE_ISAS)
    message(FATAL_ERROR "RIDGE_KERNEL_ISAS holds ${isa}: use some of ${RIDGE_ISAS}")
  endif()
endforeach()
if(NOT RIDGE_KERNEL_ISAS)
  message(FATAL_ERROR "RIDGE_KERNEL_ISAS is empty: use some of ${RIDGE_ISAS}")
endif()
set(RIDGE_FLAGS_scalar "")
set(RIDGE_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(RIDGE_FLAGS_avx512 -mavx2 -mfma -mf16c -mbmi2 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx512bf16
    -mavx512vbmi -mprefer-vector-width=512
    # GCC 12 finds the deliberately undefined registers of its own <avx512fintrin.h>.
    -Wno-uninitialized)

# Joins the files of each folder into a few translation units, which read the same headers once, and compiles what most
# units include ahead of them: for ./demo and ./check. Off, every file shows that it includes what it uses. (CMake's own
# unity build writes absolute paths, with which no other checkout finds its objects in the compiler cache.)
option(RIDGE_UNITY "Compile the files of one folder together, and common headers ahead of them" OFF)
# Compiled with a definition of their own, which changes more often than they do.
set(RIDGE_STAMPED base/build.cc capi/boundary.cc runtime/isa.cc)
# The translation units of source files (ARGN) below an include folder `base`, into `out`; `kind` names them.
function(ridge_unity out kind base)
  if(NOT RIDGE_UNITY)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(units "")
  set(groups "")
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH file ${base} ${source})
    get_filename_component(folder ${file} DIRECTORY)
    if(file IN_LIST RIDGE_STAMPED)
      list(APPEND units ${source})
      continue()
    endif()
    # What these include is long, and what they make of it is short.
    string(REGEX REPLACE "^(kernels|ops)/.*" "ops" folder "${folder}")
    string(REGEX REPLACE "^(advise|capi|lab|machine)$" "words" folder "${folder}")
    string(REGEX REPLACE "^(account|base|engine|models|models/.*|plan|runtime|runtime/cpu|tensor)$" "core" folder "${folder}")
    string(REGEX REPLACE "^formats/.*" "formats" folder "${folder}")
    file(STRINGS ${source} json REGEX "#include.*(nlohmann/json|_json\\.h)" LIMIT_COUNT 1)
    if(json AND NOT kind STREQUAL tests)
      set(folder json)
    endif()
    string(MAKE_C_IDENTIFIER "${kind}_${folder}" group)
    list(LENGTH files_of_${group} count)
    math(EXPR part "${count} / 18")
    list(APPEND files_of_${group} ${file})
    list(APPEND groups ${group}_${part})
    string(APPEND content_of_${group}_${part} "#include \"${file}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    set(unit ${PROJECT_BINARY_DIR}/generated/unity/${group}.cc)
    file(CONFIGURE OUTPUT ${unit} @ONLY CONTENT "// Written by cmake/Operators.cmake.\n${content_of_${group}}")
    list(APPEND units ${unit})
  endforeach()
  set(${out} ${units} PARENT_SCOPE)
endfunction()

# CMake calls precompiled headers the system's, whose warnings nobody sees.
set(CMAKE_PCH_PROLOGUE "")
# The compiler cache tells headers by content; clang would refuse what it kept for their time of change.
if(RIDGE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()
# With RIDGE_UNITY, the headers (ARGN) that most units of a target include are compiled once, ahead of them. With GCC those
# of kernels alone: others take as long with them, and GCC 12 then warns of its own <string>.
function(ridge_precompile target)
  if(RIDGE_UNITY AND (target MATCHES "^kernels_" OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU"))
    list(TRANSFORM ARGN REPLACE "(.+)" "<\\1>")  # as relative to the include folders: an absolute path is of one checkout
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

function(ridge_camel name out)
  string(REPLACE "_" ";" words ${name})
  set(camel "")
  foreach(word IN LISTS words)
    string(SUBSTRING ${word} 0 1 first)
    string(SUBSTRING ${word} 1 -1 rest)
    string(TOUPPER ${first} first)
    string(APPEND camel ${first}${rest})
  endforeach()
  set(${out} ${camel} PARENT_SCOPE)
endfunction()

# Writes one registration file per operator and the list of all into `folder`, and makes objects of them.
function(ridge_registration folder)
  set(files "")
  set(declarations "")
  set(list "")
  file(GLOB ops CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/*)
  foreach(path IN LISTS ops)
    get_filename_component(op ${path} NAME)
    if(NOT EXISTS ${path}/${op}.h)
      continue()
    endif()
    ridge_camel(${op} camel)
    set(kernels "")
    set(adds "")
    file(GLOB cpu CONFIGURE_DEPENDS ${path}/*_cpu.cc)
    foreach(isa avx512 avx2 scalar)
      if(NOT isa IN_LIST RIDGE_KERNEL_ISAS)
        continue()
      endif()
      foreach(file IN LISTS cpu)
        get_filename_component(name ${file} NAME_WE)
        string(APPEND kernels "namespace ${isa} { void ${name}(Kernels<${camel}Args>&); }\n")
        string(APPEND adds "    r->add(\"cpu\", Isa::${isa}, ${isa}::${name});\n")
      endforeach()
    endforeach()
    if(RIDGE_CUDA)
      file(GLOB cuda CONFIGURE_DEPENDS ${path}/*_cuda.cu)
      foreach(file IN LISTS cuda)
        get_filename_component(name ${file} NAME_WE)
        string(APPEND kernels "namespace cuda { void ${name}(Kernels<${camel}Args>&); }\n")
        string(APPEND adds "    r->add(\"cuda\", Isa::none, cuda::${name});\n")
      endforeach()
    endif()
    file(CONFIGURE OUTPUT ${folder}/register_${op}.cc @ONLY CONTENT "// Written by cmake/Operators.cmake.
#include \"ops/registry.h\"
#include \"ops/${op}/${op}.h\"
namespace ridge {
${kernels}template <>
AnyOperator& registered<${camel}Args>() {
  static Registered<${camel}Args>* const one = [] {
    auto* r = new Registered<${camel}Args>(describe_${op}());
${adds}    return r;
  }();
  return *one;
}
AnyOperator& registered_${op}() { return registered<${camel}Args>(); }
}  // namespace ridge
")
    list(APPEND files ${folder}/register_${op}.cc)
    string(APPEND declarations "AnyOperator& registered_${op}();\n")
    string(APPEND list "      &registered_${op}(),\n")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/operators.cc @ONLY CONTENT "// Written by cmake/Operators.cmake.
#include \"ops/any_operator.h\"
namespace ridge {
${declarations}const std::vector<AnyOperator*>& operators() {
  static const std::vector<AnyOperator*> all = {
${list}  };
  return all;
}
}  // namespace ridge
")
  # Checks and conformance, not kernels: compile time matters more than speed, with sanitizers most of all.
  ridge_unity(units registration ${folder} ${files})
  add_library(ridge_registration OBJECT ${units} ${folder}/operators.cc)
  target_compile_options(ridge_registration PRIVATE $<IF:$<BOOL:${RIDGE_SANITIZE}>,-O0,-O1>)
  target_include_directories(ridge_registration PRIVATE src ${folder})
  target_link_libraries(ridge_registration PRIVATE ridge_warnings)
endfunction()

# One architecture a folder of models/: NAME/NAME.cc defines load_NAME().
function(ridge_write_architectures path)
  set(declarations "")
  set(list "")
  file(GLOB folders CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/models/*)
  foreach(folder IN LISTS folders)
    get_filename_component(name ${folder} NAME)
    if(EXISTS ${folder}/${name}.cc)
      string(APPEND declarations "Result<std::unique_ptr<Model>> load_${name}(std::unique_ptr<WeightStore>);\n")
      string(APPEND list "      {\"${name}\", load_${name}},\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${path} @ONLY CONTENT "// Written by cmake/Operators.cmake.
#include \"models/model.h\"
namespace ridge {
${declarations}const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = {
${list}  };
  return all;
}
}  // namespace ridge
")
endfunction()

# The kinds of device: create_NAME_device(), survey_NAME() and NAME_state_reader() of runtime/NAME; probe_NAME(), but for the CPU.
function(ridge_write_backends path)
  set(names cpu)
  if(RIDGE_CUDA)
    list(APPEND names cuda)
  endif()
  set(declarations "")
  set(list "")
  foreach(name IN LISTS names)
    string(APPEND declarations "Result<std::unique_ptr<Device>> create_${name}_device(const DeviceOptions&);\n")
    string(APPEND declarations "std::vector<std::string> survey_${name}();\n")
    string(APPEND declarations "StateReader ${name}_state_reader(const Device&);\n")
    set(probe nullptr)
    if(NOT name STREQUAL cpu)
      set(probe probe_${name})
      string(APPEND declarations "Status probe_${name}(Device&, Machine*);\n")
    endif()
    string(APPEND list "      {\"${name}\", create_${name}_device, survey_${name}, ${probe}, ${name}_state_reader},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${path} @ONLY CONTENT "// Written by cmake/Operators.cmake.
#include \"runtime/backends.h\"
namespace ridge {
${declarations}const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = {
${list}  };
  return all;
}
}  // namespace ridge
")
endfunction()

function(ridge_library)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/*.cc)
  set(kernels ${sources})
  list(FILTER kernels INCLUDE REGEX "_cpu\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_cpu\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/src/runtime/cuda/")
  set(objects "")
  if(EXISTS ${PROJECT_SOURCE_DIR}/src/ops/registry.h)
    ridge_registration(${PROJECT_BINARY_DIR}/generated)
    ridge_write_architectures(${PROJECT_BINARY_DIR}/generated/architectures.cc)
    ridge_write_backends(${PROJECT_BINARY_DIR}/generated/backends.cc)
    list(APPEND generated ${PROJECT_BINARY_DIR}/generated/architectures.cc ${PROJECT_BINARY_DIR}/generated/backends.cc)
    list(APPEND objects $<TARGET_OBJECTS:ridge_registration>)
    if(kernels)
      foreach(isa IN LISTS RIDGE_ISAS)
        set(compiled ${kernels})
        if(NOT isa IN_LIST RIDGE_KERNEL_ISAS)
          list(FILTER compiled EXCLUDE REGEX "/src/ops/")
        endif()
        add_library(kernels_${isa} OBJECT ${compiled})
        target_include_directories(kernels_${isa} PRIVATE src)
        target_link_libraries(kernels_${isa} PRIVATE ridge_warnings)
        target_compile_definitions(kernels_${isa} PRIVATE RIDGE_ISA=${isa} RIDGE_ISA_${isa}=1)
        target_compile_options(kernels_${isa} PRIVATE ${RIDGE_FLAGS_${isa}} -fno-math-errno -fno-trapping-math
          $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
        if(isa IN_LIST RIDGE_KERNEL_ISAS)
          ridge_precompile(kernels_${isa} ops/operator.h runtime/cpu/cpu_device.h simd/simd.h tensor/with_dtype.h)
        endif()
        if(NOT RIDGE_SANITIZE)
          # An unquoted, empty CMAKE_CXX_COMPILER_LAUNCHER (no ccache here) adds no element.
          set(launcher ${PROJECT_SOURCE_DIR}/cmake/isolate.sh ${CMAKE_CXX_COMPILER_LAUNCHER})
          set_target_properties(kernels_${isa} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}")
        endif()
        list(APPEND objects $<TARGET_OBJECTS:kernels_${isa}>)
      endforeach()
    endif()
  endif()
  # A machine file is bound to the kernels it was measured with.
  file(GLOB_RECURSE hashed src/simd/* src/kernels/* src/ops/* src/runtime/* src/lab/probe*)
  set(hashes "${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${RIDGE_SANITIZE}")
  foreach(file IN LISTS hashed)
    file(SHA256 ${file} hash)
    string(APPEND hashes ${hash})
  endforeach()
  string(SHA256 build "${hashes}")
  string(SUBSTRING ${build} 0 16 build)
  # Both are of the sources as they are built, not as they were when CMake last looked.
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} rev-parse --path-format=absolute --git-path logs/HEAD
                  OUTPUT_VARIABLE commits OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT EXISTS "${commits}")
    set(commits "")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${hashed} ${commits})
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set_source_files_properties(src/base/build.cc PROPERTIES
    COMPILE_DEFINITIONS "RIDGE_BUILD=\"${build}\";RIDGE_COMMIT=\"${commit}\"")
  if(RIDGE_FUZZ)
    # What the fuzzing targets drive is compiled once for them and for the library.
    set(parsers ${sources})
    list(FILTER parsers INCLUDE REGEX "/src/(base|tensor|formats)/")
    list(FILTER sources EXCLUDE REGEX "/src/(base|tensor|formats)/")
    ridge_unity(parser_units parsers ${PROJECT_SOURCE_DIR}/src ${parsers})
    add_library(ridge_fuzzed OBJECT ${parser_units})
    ridge_precompile(ridge_fuzzed base/files.h formats/gguf.h formats/template/render.h tensor/tensor.h)
    list(APPEND objects $<TARGET_OBJECTS:ridge_fuzzed>)
  endif()
  ridge_unity(units src ${PROJECT_SOURCE_DIR}/src ${sources})
  string(REPLACE ";" " " kernel_isas "${RIDGE_KERNEL_ISAS}")
  set_source_files_properties(src/runtime/isa.cc PROPERTIES COMPILE_DEFINITIONS "RIDGE_KERNEL_ISAS=\"${kernel_isas}\"")
  # What reads, words and prints an account runs once a command: optimizing it is half of what its build would take. (With
  # precompiled headers, which are not GCC's here, all units of a target are optimized alike.)
  foreach(unit IN LISTS units)
    if(unit MATCHES "/src[/_](json|words|advise|capi|lab|machine)[/_]" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      set_property(SOURCE ${unit} APPEND PROPERTY COMPILE_OPTIONS -O1)
    endif()
  endforeach()
  add_library(ridge STATIC ${units} ${generated} ${objects})
  add_library(ridge::ridge ALIAS ridge)
  ridge_precompile(ridge ops/dispatch.h ops/operator.h plan/step_plan.h machine/machine.h nlohmann/json.hpp)
  target_include_directories(ridge PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:include/ridge/cpp>)
  # Installed, ridge-config.cmake asks for it: only where the project has C++.
  target_compile_features(ridge PUBLIC $<BUILD_INTERFACE:cxx_std_20>)
  target_link_libraries(ridge PUBLIC Threads::Threads PRIVATE $<BUILD_INTERFACE:ridge_warnings> $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
endfunction()

# Tests: one executable a test file, or with RIDGE_UNITY one a folder; CTest label "fast" unless the folder is named slow.
include(Timing)
set(RIDGE_TEST_FILES "" CACHE STRING "Names of test files (a_test;b_test) to build; all if empty")
function(ridge_test_options name)
  target_link_libraries(${name} PRIVATE ridge ridge_warnings GTest::gtest_main nlohmann_json::nlohmann_json)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE RIDGE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests")
  # What takes time is in the library; optimizing the tests is most of what their build would take.
  target_compile_options(${name} PRIVATE $<IF:$<BOOL:${RIDGE_SANITIZE}>,-O0,-O1>)
endfunction()
function(ridge_test name sources)
  ridge_unity(units tests ${PROJECT_SOURCE_DIR}/tests ${sources})
  add_executable(${name} ${units})
  ridge_test_options(${name})
  if(TARGET tests_precompiled)
    target_precompile_headers(${name} REUSE_FROM tests_precompiled)
  endif()
  set(label slow)
  if(NOT sources MATCHES "/slow/")
    set(label fast)
    add_dependencies(fast_tests ${name})
  endif()
  # The longest first, so that none is left alone at the end; the others are short whatever they are compiled to.
  set(cost 1)
  if(sources MATCHES "/(conformance|models|ops|slow)/")
    set(cost 10)
  elseif(NOT sources MATCHES "/engine/" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -O0)
  endif()
  ridge_discover_tests(${name} ${label} ${cost})
endfunction()
function(ridge_tests)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS tests/*_test.cc)
  set(folders "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    if(RIDGE_TEST_FILES AND NOT name IN_LIST RIDGE_TEST_FILES)
      continue()
    endif()
    if(RIDGE_UNITY)
      file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/tests ${file})
      get_filename_component(name ${name} DIRECTORY)
      string(MAKE_C_IDENTIFIER "${name}_test" name)
    endif()
    list(APPEND folders ${name})
    list(APPEND files_of_${name} ${file})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  add_custom_target(fast_tests)
  if(RIDGE_UNITY AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # One for all tests, compiled with the very flags of an executable.
    set(unit ${PROJECT_BINARY_DIR}/generated/unity/tests_precompiled.cc)
    file(CONFIGURE OUTPUT ${unit} @ONLY CONTENT "// Written by cmake/Operators.cmake.\n")
    add_library(tests_precompiled OBJECT ${unit})
    ridge_test_options(tests_precompiled)
    set_target_properties(tests_precompiled PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(tests_precompiled PRIVATE -fPIE)
    ridge_precompile(tests_precompiled gtest/gtest.h engine/session.h ops/any_operator.h runtime/cpu/cpu_device.h nlohmann/json.hpp)
  endif()
  foreach(name IN LISTS folders)
    ridge_test(${name} "${files_of_${name}}")
  endforeach()
endfunction()
