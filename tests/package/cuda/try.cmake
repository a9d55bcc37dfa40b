# SPDX-License-Identifier: Apache-2.0
# Links the CUDA kernels as a user would, below WORK. Without INTERPRETER, the package is installed without the library,
# and an empty archive takes its place. nvcc compiles nothing of it then, only a user's kernel in a project that uses
# FetchContent. With INTERPRETER, a replacement for CUDA's runtime, the library in BUILD is installed, and a program
# trains with it.
include("${CMAKE_CURRENT_LIST_DIR}/../run.cmake")

set(prefix "${WORK}/prefix")
# configure(WAY FLAG…) configures the user's project in WORK/WAY.
function(configure way)
  run("${CMAKE_COMMAND}" -S "${LOCKSTEP}/tests/package/cuda" -B "${WORK}/${way}" -G Ninja "-DCMAKE_CXX_COMPILER=${CXX}"
      "-DCMAKE_CUDA_COMPILER=${NVCC}" -DWAY=${way} "-DCMAKE_PREFIX_PATH=${prefix}" "-DINSTALLED=${prefix}"
      "-DLIBRARIES=${LIBRARIES}" "-DLOCKSTEP=${LOCKSTEP}" ${ARGN})
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
if(NOT INTERPRETER)
  file(REMOVE_RECURSE "${prefix}/${LIBRARIES}/liblockstep_compiled.a"
                      "${prefix}/${LIBRARIES}/liblockstep_compiled_app.a"
                      "${prefix}/${LIBRARIES}/liblockstep_compiled_cuda.a")
  configure(placeholder)
  run("${CMAKE_COMMAND}" --build "${WORK}/placeholder")
  run("${WORK}/placeholder/user_cuda")
  if(NOT says MATCHES "^devices: [0-9]+ ")
    message(FATAL_ERROR "it printed: ${says}")
  endif()
  configure(fetch_content)
  run("${CMAKE_COMMAND}" --build "${WORK}/fetch_content" --target user_kernel)
  return()
endif()
configure(find_package)
run("${CMAKE_COMMAND}" --build "${WORK}/find_package")
run("${CMAKE_COMMAND}" -E env "LD_PRELOAD=${INTERPRETER}" "${WORK}/find_package/user_cuda")
message(STATUS "${says}")
configure(add_subdirectory)
