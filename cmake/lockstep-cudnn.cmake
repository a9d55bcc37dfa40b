# SPDX-License-Identifier: Apache-2.0
# lockstep::cudnn: float convolutions on CUDA by cuDNN 9, and attention in 16 bits on request. Searches next to the CUDA
# toolkit, CUDNN_ROOT, CMAKE_PREFIX_PATH and CPATH. Include after lockstep-cuda.cmake.
if(NOT TARGET lockstep::cuda)
  message(STATUS "Lockstep: cuDNN is skipped: there is no target lockstep::cuda, and so none lockstep::cudnn")
elseif(NOT TARGET lockstep::cudnn)
  find_path(LOCKSTEP_CUDNN_INCLUDE cudnn.h HINTS "${CUDNN_ROOT}" ENV CUDNN_ROOT ENV CPATH ${CUDAToolkit_INCLUDE_DIRS}
            PATH_SUFFIXES include)
  find_library(LOCKSTEP_CUDNN NAMES cudnn libcudnn.so.9 NAMES_PER_DIR HINTS "${LOCKSTEP_CUDNN_INCLUDE}/.."
               "${CUDNN_ROOT}" ENV CUDNN_ROOT ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib64 lib)
  mark_as_advanced(LOCKSTEP_CUDNN_INCLUDE LOCKSTEP_CUDNN)
  set(lockstep_cudnn_major "")
  if(LOCKSTEP_CUDNN_INCLUDE AND EXISTS "${LOCKSTEP_CUDNN_INCLUDE}/cudnn_version.h")
    file(STRINGS "${LOCKSTEP_CUDNN_INCLUDE}/cudnn_version.h" lockstep_cudnn_major REGEX "^#define CUDNN_MAJOR +9$")
  endif()
  if(NOT LOCKSTEP_CUDNN_INCLUDE OR NOT LOCKSTEP_CUDNN)
    message(STATUS "Lockstep: no cuDNN found (CUDNN_ROOT says where it is); there is no target lockstep::cudnn")
  elseif(NOT lockstep_cudnn_major)
    message(STATUS "Lockstep: the cuDNN of ${LOCKSTEP_CUDNN_INCLUDE} is not version 9; there is no target lockstep::cudnn")
  else()
    add_library(lockstep::cudnn INTERFACE IMPORTED GLOBAL)
    target_compile_definitions(lockstep::cudnn INTERFACE LOCKSTEP_CUDNN)
    target_include_directories(lockstep::cudnn SYSTEM INTERFACE "${LOCKSTEP_CUDNN_INCLUDE}")
    target_link_libraries(lockstep::cudnn INTERFACE lockstep::cuda "${LOCKSTEP_CUDNN}")
  endif()
endif()
