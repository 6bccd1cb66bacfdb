# One place for warnings, sanitizers and the compiler cache.
find_program(RIDGE_CCACHE ccache)
if(RIDGE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${RIDGE_CCACHE})
endif()
add_library(ridge_warnings INTERFACE)
# Sanitizers make GCC warn of what is not there; the plain builds of the same files hold the line.
set(error -Werror)
if(RIDGE_SANITIZE)
  set(error "")
endif()
target_compile_options(ridge_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wformat-security;${error};-Wshadow;-Wnon-virtual-dtor>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false positives of these on its own headers at -O2 and above.
  target_compile_options(ridge_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized;-Wno-uninitialized;-Wno-restrict>)
endif()
if(RIDGE_SANITIZE STREQUAL "address")
  # Without the checks of each single access, for which clang compiles the largest kernels 2.7 times as long: what they
  # find of null, of ends of objects and of wrapped pointers ends in memory that the address sanitizer guards; the
  # parsers have them (cmake/Fuzz.cmake).
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=null,object-size,vptr,alignment,pointer-overflow
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(RIDGE_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
elseif(RIDGE_SANITIZE)
  message(FATAL_ERROR "RIDGE_SANITIZE is ${RIDGE_SANITIZE}: use address or thread")
endif()
if(RIDGE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # What GCC defines by itself.
  add_compile_definitions(__SANITIZE_$<UPPER_CASE:${RIDGE_SANITIZE}>__=1)
endif()
