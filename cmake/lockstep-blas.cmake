# SPDX-License-Identifier: Apache-2.0
# lockstep::blas: GEMM by OpenBLAS on processors without a tile of Lockstep's own. AVX2 and AVX-512 have tiles, which
# are equally fast. kernel/gemm/detail/gemm_blas.hpp lists the matrix products that the library computes.
#
# The static single-threaded archive is preferred. Several threads call it, each for one product at a time. A library
# with its own threads starves one caller and may change bits. The system's alternatives could replace a shared library
# at run time.
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
