# SPDX-License-Identifier: Apache-2.0
# lockstep::nccl: dependencies of `lockstep/comm/nccl/nccl_communicator.cuh`. Include after lockstep-cuda.cmake.
set(lockstep_nccl_missing "")
if(NOT TARGET lockstep::cuda)
  set(lockstep_nccl_missing "it needs lockstep::cuda")
else()
  find_path(LOCKSTEP_NCCL_INCLUDE nccl.h HINTS ENV NCCL_HOME ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  # NCCL's Python package has no libnccl.so.
  find_library(LOCKSTEP_NCCL_LIBRARY NAMES nccl libnccl.so.2 NAMES_PER_DIR HINTS ENV NCCL_HOME ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
  mark_as_advanced(LOCKSTEP_NCCL_INCLUDE LOCKSTEP_NCCL_LIBRARY)
  if(NOT LOCKSTEP_NCCL_INCLUDE OR NOT LOCKSTEP_NCCL_LIBRARY)
    set(lockstep_nccl_missing "no nccl.h and libnccl were found (NCCL_HOME may say where)")
  endif()
endif()

if(lockstep_nccl_missing)
  message(STATUS "Lockstep: NCCL is skipped: ${lockstep_nccl_missing}; there is no target lockstep::nccl")
elseif(NOT TARGET lockstep::nccl)
  add_library(lockstep::nccl INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(lockstep::nccl INTERFACE LOCKSTEP_NCCL)
  target_include_directories(lockstep::nccl INTERFACE "${LOCKSTEP_NCCL_INCLUDE}")
  target_link_libraries(lockstep::nccl INTERFACE lockstep::cuda "${LOCKSTEP_NCCL_LIBRARY}")
endif()
