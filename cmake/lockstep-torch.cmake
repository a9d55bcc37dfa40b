# SPDX-License-Identifier: Apache-2.0
# lockstep::torch: CPU part of LibTorch, a dependency of `lockstep/interop/torch.hpp`. Searches TORCH_DIR,
# CMAKE_PREFIX_PATH, the system, and the Python of LOCKSTEP_PEER_PYTHON, or else the first Python. LibTorch's own
# package file is not used: it would require the CUDA toolkit that LibTorch was built with.
if(NOT LOCKSTEP_TORCH_INCLUDE)
  if(DEFINED ENV{LOCKSTEP_PEER_PYTHON})
    set(lockstep_python "$ENV{LOCKSTEP_PEER_PYTHON}")
  else()
    find_program(LOCKSTEP_PYTHON python3)
    mark_as_advanced(LOCKSTEP_PYTHON)
    set(lockstep_python "${LOCKSTEP_PYTHON}")
  endif()
  set(lockstep_torch_of_python "")
  if(lockstep_python)
    execute_process(
      COMMAND "${lockstep_python}" -c
              "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '', end='')"
      OUTPUT_VARIABLE lockstep_torch_of_python ERROR_QUIET)
  endif()
endif()
find_path(LOCKSTEP_TORCH_INCLUDE torch/csrc/api/include/torch/nn/module.h
          HINTS "${TORCH_DIR}" ENV TORCH_DIR "${lockstep_torch_of_python}" PATH_SUFFIXES include)
find_library(LOCKSTEP_TORCH_CPU torch_cpu HINTS "${LOCKSTEP_TORCH_INCLUDE}/.." PATH_SUFFIXES lib)
find_library(LOCKSTEP_TORCH_C10 c10 HINTS "${LOCKSTEP_TORCH_INCLUDE}/.." PATH_SUFFIXES lib)
mark_as_advanced(LOCKSTEP_TORCH_INCLUDE LOCKSTEP_TORCH_CPU LOCKSTEP_TORCH_C10)
if(NOT LOCKSTEP_TORCH_INCLUDE OR NOT LOCKSTEP_TORCH_CPU OR NOT LOCKSTEP_TORCH_C10)
  message(STATUS "Lockstep: no LibTorch found (Debian: libtorch-dev; pip: torch; TORCH_DIR says where it is); "
                 "there is no target lockstep::torch")
elseif(NOT TARGET lockstep::torch)
  add_library(lockstep::torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(lockstep::torch SYSTEM INTERFACE "${LOCKSTEP_TORCH_INCLUDE}"
                                                              "${LOCKSTEP_TORCH_INCLUDE}/torch/csrc/api/include")
  target_link_libraries(lockstep::torch INTERFACE lockstep::lockstep "${LOCKSTEP_TORCH_CPU}" "${LOCKSTEP_TORCH_C10}")
endif()
