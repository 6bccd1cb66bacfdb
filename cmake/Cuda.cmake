# The CUDA backend, with RIDGE_CUDA: included before the library is made, ridge_cuda_library() after it.
#   src/ops/OP/*_cuda.cu, src/runtime/cuda/*.cc   into the library
#   bench/gpu                                     device checks and figures; they need a GPU to run, not to build

# CMake's own names for architectures do not know the 9.0a target everywhere; the flag does.
set(CMAKE_CUDA_ARCHITECTURES OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
if(NOT CMAKE_CUDA_COMPILER)
  find_program(RIDGE_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(NOT RIDGE_NVCC)
    message(FATAL_ERROR "RIDGE_CUDA is ON, but there is no nvcc: install CUDA 13 or use the cpu preset")
  endif()
  set(CMAKE_CUDA_COMPILER ${RIDGE_NVCC})
endif()
enable_language(CUDA)
# CMake 3.25 does not know that this nvcc speaks C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
find_package(CUDAToolkit REQUIRED)
if(RIDGE_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${RIDGE_CCACHE})
endif()
# 2810: nvcc takes an assignment to *this for a discarded [[nodiscard]] value.
set(RIDGE_CUDA_FLAGS -gencode=arch=compute_90a,code=sm_90a --expt-relaxed-constexpr -diag-suppress=2810)

function(ridge_cuda_library)
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS src/*_cuda.cu)
  file(GLOB runtime CONFIGURE_DEPENDS src/runtime/cuda/*.cc)
  target_sources(ridge PRIVATE ${kernels} ${runtime})
  target_compile_options(ridge PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${RIDGE_CUDA_FLAGS}>")
  target_link_libraries(ridge PUBLIC CUDA::cudart_static ${CMAKE_DL_LIBS})
endfunction()

function(ridge_gpu_bench)
  file(GLOB sources CONFIGURE_DEPENDS bench/gpu/*.cu bench/gpu/*.cc)
  list(FILTER sources EXCLUDE REGEX "/gpu_[a-z]+\\.cc$")
  file(GLOB cases CONFIGURE_DEPENDS bench/gpu/cases/*.cc)
  add_executable(gpu_bench ${sources})
  add_executable(gpu_conformance bench/gpu/gpu_conformance.cc)
  add_executable(gpu_cases bench/gpu/gpu_cases.cc ${cases})
  foreach(target gpu_bench gpu_conformance gpu_cases)
    target_include_directories(${target} PRIVATE bench/gpu)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${RIDGE_CUDA_FLAGS}>")
    target_link_libraries(${target} PRIVATE ridge CUDA::cudart_static ${CMAKE_DL_LIBS})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  endforeach()
endfunction()
