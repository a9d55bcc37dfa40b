# SPDX-License-Identifier: Apache-2.0
# lockstep::torch_cuda: dependencies of `lockstep/interop/torch.cuh`: a LibTorch that was built for CUDA. Include after
# lockstep-torch.cmake and lockstep-cuda.cmake.
set(lockstep_torch_cuda_missing "")
if(NOT TARGET lockstep::torch OR NOT TARGET lockstep::cuda)
  set(lockstep_torch_cuda_missing "it needs lockstep::torch and lockstep::cuda")
else()
  find_library(LOCKSTEP_TORCH_CUDA torch_cuda HINTS "${LOCKSTEP_TORCH_INCLUDE}/.." PATH_SUFFIXES lib)
  find_library(LOCKSTEP_TORCH_C10_CUDA c10_cuda HINTS "${LOCKSTEP_TORCH_INCLUDE}/.." PATH_SUFFIXES lib)
  mark_as_advanced(LOCKSTEP_TORCH_CUDA LOCKSTEP_TORCH_C10_CUDA)
  if(NOT LOCKSTEP_TORCH_CUDA OR NOT LOCKSTEP_TORCH_C10_CUDA)
    set(lockstep_torch_cuda_missing "the LibTorch that was found is for the CPU only")
  endif()
endif()

if(lockstep_torch_cuda_missing)
  message(STATUS "Lockstep: LibTorch on GPUs is skipped: ${lockstep_torch_cuda_missing}; there is no target lockstep::torch_cuda")
elseif(NOT TARGET lockstep::torch_cuda)
  add_library(lockstep::torch_cuda INTERFACE IMPORTED GLOBAL)
  # No symbol of torch_cuda is named by a program. Its operations register themselves when it is loaded. The linker may
  # find other versions of its CUDA libraries than the loader, which searches the paths in torch_cuda.
  target_link_options(lockstep::torch_cuda INTERFACE "LINKER:--allow-shlib-undefined")
  target_link_libraries(lockstep::torch_cuda INTERFACE lockstep::torch lockstep::cuda
    "-Wl,--push-state,--no-as-needed,${LOCKSTEP_TORCH_CUDA},--pop-state" "${LOCKSTEP_TORCH_C10_CUDA}")
endif()
