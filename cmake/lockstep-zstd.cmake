# SPDX-License-Identifier: Apache-2.0
# lockstep::zstd: decompression, a dependency of `lockstep/data/source/unpack_mds.hpp`.
find_path(LOCKSTEP_ZSTD_INCLUDE zstd.h)
find_library(LOCKSTEP_ZSTD NAMES zstd)
mark_as_advanced(LOCKSTEP_ZSTD_INCLUDE LOCKSTEP_ZSTD)
if(NOT LOCKSTEP_ZSTD_INCLUDE OR NOT LOCKSTEP_ZSTD)
  message(STATUS "Lockstep: no zstd found (Debian: libzstd-dev); there is no target lockstep::zstd")
elseif(NOT TARGET lockstep::zstd)
  add_library(lockstep::zstd INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(lockstep::zstd INTERFACE LOCKSTEP_ZSTD)
  target_include_directories(lockstep::zstd SYSTEM INTERFACE "${LOCKSTEP_ZSTD_INCLUDE}")
  target_link_libraries(lockstep::zstd INTERFACE lockstep::lockstep "${LOCKSTEP_ZSTD}")
endif()
