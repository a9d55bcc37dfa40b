# SPDX-License-Identifier: Apache-2.0
# lockstep::blas: matrix products by OpenBLAS where Lockstep has no tile for the processor's vectors (it has for AVX2 and
# AVX-512, which are as fast; kernel/detail/gemm_blas.hpp says which products the library serves).
#
# The static archive of the flavour without threads comes first. Several threads call it, one at a time, one product
# each; a library with threads of its own starves one caller and may change bits, and a shared library could be
# exchanged at run time by the system's alternatives.
find_library(LOCKSTEP_OPENBLAS NAMES libopenblas.a openblas PATH_SUFFIXES openblas-serial)
mark_as_advanced(LOCKSTEP_OPENBLAS)
if(NOT LOCKSTEP_OPENBLAS)
  message(STATUS "Lockstep: no OpenBLAS found (Debian: libopenblas-serial-dev); there is no target lockstep::blas")
elseif(NOT TARGET lockstep::blas)
  find_package(Threads REQUIRED)
  add_library(lockstep::blas INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(lockstep::blas INTERFACE LOCKSTEP_BLAS)
  target_link_libraries(lockstep::blas INTERFACE lockstep::lockstep "${LOCKSTEP_OPENBLAS}" Threads::Threads m)
endif()
