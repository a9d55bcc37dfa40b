# SPDX-License-Identifier: Apache-2.0
# lockstep::cuda: dependencies of `lockstep/cuda.cuh` and the `.cuh` headers. Requires nvcc 12 or later.
set(lockstep_cuda_missing "")
if(NOT DEFINED LOCKSTEP_CUDA OR LOCKSTEP_CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(LOCKSTEP_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    mark_as_advanced(LOCKSTEP_NVCC)
    set(lockstep_nvcc_version 0)
    if(LOCKSTEP_NVCC)
      execute_process(COMMAND "${LOCKSTEP_NVCC}" --version OUTPUT_VARIABLE lockstep_nvcc_says ERROR_QUIET)
      if(lockstep_nvcc_says MATCHES "release ([0-9.]+)")
        set(lockstep_nvcc_version "${CMAKE_MATCH_1}")
      endif()
    endif()
    if(lockstep_nvcc_version VERSION_GREATER_EQUAL 12)
      set(CMAKE_CUDA_COMPILER "${LOCKSTEP_NVCC}")
    elseif(LOCKSTEP_NVCC)
      set(lockstep_cuda_missing "${LOCKSTEP_NVCC} is of version ${lockstep_nvcc_version}, and 12 is needed")
    else()
      set(lockstep_cuda_missing "no nvcc was found")
    endif()
  endif()
else()
  set(lockstep_cuda_missing "LOCKSTEP_CUDA is off")
endif()

if(lockstep_cuda_missing)
  message(STATUS "Lockstep: CUDA is skipped: ${lockstep_cuda_missing}; there is no target lockstep::cuda")
elseif(NOT TARGET lockstep::cuda)
  # Compute capabilities of this machine's GPUs, as 80.
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                  OUTPUT_VARIABLE lockstep_gpus OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(REGEX REPLACE "\n" ";" lockstep_gpus "${lockstep_gpus}")
  list(FILTER lockstep_gpus INCLUDE REGEX "^[0-9]+[.][0-9]$")
  list(TRANSFORM lockstep_gpus REPLACE "[.]" "")
  list(REMOVE_DUPLICATES lockstep_gpus)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    # An nvcc rejects GPUs that are too old or too new for it.
    execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --list-gpu-arch OUTPUT_VARIABLE lockstep_known ERROR_QUIET)
    set(CMAKE_CUDA_ARCHITECTURES "")
    foreach(gpu IN LISTS lockstep_gpus)
      if(lockstep_known MATCHES "compute_${gpu}[\r\n]")
        list(APPEND CMAKE_CUDA_ARCHITECTURES ${gpu})
      endif()
    endforeach()
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80) # binary for 8.x, and PTX, which the driver compiles for all others
    endif()
  endif()
  # Some compilers start nvcc with another host compiler than that of C++; types must agree between the two.
  if(NOT CMAKE_CUDA_HOST_COMPILER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
  endif()
  enable_language(CUDA)
  # CMake 3.25.1 of Debian 12 assumes that CUDA has this library, which CUDA 13 does not have.
  if(CMAKE_VERSION VERSION_LESS 3.26 AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13 AND NOT TARGET CUDA::nvToolsExt)
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
  endif()
  find_package(CUDAToolkit REQUIRED)
  add_library(lockstep::cuda INTERFACE IMPORTED GLOBAL)
  # CMake 3.25 does not know C++20 for nvcc. Kernels call constexpr functions of the core. Four warnings of nvcc are
  # wrong here: unknown pragmas of gcc (1675); assignments to an object of a [[nodiscard]] class as ignored results
  # (2810); the scope of for-loop variables before C++98 (780); unused functions that only a concept calls (177).
  target_compile_options(
    lockstep::cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --extended-lambda --expt-relaxed-constexpr -diag-suppress=177,780,1675,2810 -Xcompiler=-ffp-contract=off>)
  target_link_libraries(lockstep::cuda INTERFACE lockstep::lockstep CUDA::cudart CUDA::cublasLt)
endif()
