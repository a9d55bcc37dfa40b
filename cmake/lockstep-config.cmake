# SPDX-License-Identifier: Apache-2.0
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/lockstep-targets.cmake")

# Uses the requested spelling: find_package(Lockstep) finds this file too.
set(lockstep_name "${CMAKE_FIND_PACKAGE_NAME}")
foreach(component IN LISTS ${lockstep_name}_FIND_COMPONENTS)
  if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/lockstep-${component}.cmake")
    include("${CMAKE_CURRENT_LIST_DIR}/lockstep-${component}.cmake")
  endif()
  if(TARGET lockstep::${component})
    set(${lockstep_name}_${component}_FOUND TRUE)
  elseif(${lockstep_name}_FIND_REQUIRED_${component})
    set(${lockstep_name}_FOUND FALSE)
    if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/lockstep-${component}.cmake")
      set(${lockstep_name}_NOT_FOUND_MESSAGE
          "component ${component} is not available here: a line \"Lockstep: …\" above says what it lacks")
    else()
      set(${lockstep_name}_NOT_FOUND_MESSAGE
          "there is no component ${component}; the components are app, blas, compiled, compiled_cuda, cuda, cudnn, hdf5, mpi, nccl, onednn, sentencepiece, tensorboard, torch, torch_cuda, utf8proc and zstd")
    endif()
  endif()
endforeach()
