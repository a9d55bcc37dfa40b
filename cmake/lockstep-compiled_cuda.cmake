# SPDX-License-Identifier: Apache-2.0
# lockstep::compiled_cuda: lockstep::compiled and the CUDA kernels and layers, so that nvcc compiles only a program's own
# model. Programs with a command line link lockstep::compiled_app, too. Include after lockstep-compiled.cmake.
#
# In a checkout this file defines the library, in an installed package it finds it. Convolutions of the library use cuDNN
# if LOCKSTEP_COMPILED_WITH names cudnn and it is found.
if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/lockstep-config.cmake" AND NOT EXISTS "${CMAKE_CURRENT_LIST_DIR}/install.cmake")
  if(TARGET lockstep::compiled_cuda)
    return()
  endif()
  foreach(component compiled cuda)
    include("${CMAKE_CURRENT_LIST_DIR}/lockstep-${component}.cmake")
  endforeach()
  if(NOT EXISTS "${CMAKE_CURRENT_LIST_DIR}/lockstep-compiled-cuda-targets.cmake")
    message(STATUS "Lockstep: it was installed without CUDA; there is no target lockstep::compiled_cuda")
    return()
  endif()
  file(GLOB lockstep_built "${lockstep_above}/*lockstep_compiled_cuda*" "${lockstep_above}/lib/*lockstep_compiled_cuda*")
  if(NOT lockstep_built)
    message(STATUS "Lockstep: the library for CUDA was not built before Lockstep was installed (target "
                   "lockstep_compiled_cuda); there is no target lockstep::compiled_cuda")
  elseif(TARGET lockstep::cuda AND TARGET lockstep::compiled)
    include("${CMAKE_CURRENT_LIST_DIR}/lockstep-cudnn.cmake")
    include("${CMAKE_CURRENT_LIST_DIR}/lockstep-compiled-cuda-targets.cmake")
  endif()
  return()
endif()

if(NOT TARGET lockstep::cuda)
  return()
endif()
file(GLOB lockstep_cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/lockstep/compiled/*.cu")
set(lockstep_compiled_link lockstep_compiled lockstep::cuda)
if("cudnn" IN_LIST LOCKSTEP_COMPILED_WITH AND TARGET lockstep::cudnn)
  list(APPEND lockstep_compiled_link lockstep::cudnn)
endif()
lockstep_add_compiled(lockstep_compiled_cuda LINK ${lockstep_compiled_link} SOURCES ${lockstep_cuda_sources})
add_library(lockstep::compiled_cuda ALIAS lockstep_compiled_cuda)
# nvcc takes minutes for it, so it is built for targets that link it, and on request.
set_target_properties(lockstep_compiled_cuda PROPERTIES EXPORT_NAME compiled_cuda EXCLUDE_FROM_ALL ON
                                                        CUDA_VISIBILITY_PRESET hidden)
