# SPDX-License-Identifier: Apache-2.0
# lockstep::hdf5: the serial HDF5 library, a dependency of `lockstep/data/source/hdf5_file.hpp`.
find_path(LOCKSTEP_HDF5_INCLUDE hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(LOCKSTEP_HDF5 NAMES hdf5_serial hdf5)
mark_as_advanced(LOCKSTEP_HDF5_INCLUDE LOCKSTEP_HDF5)
if(NOT LOCKSTEP_HDF5_INCLUDE OR NOT LOCKSTEP_HDF5)
  message(STATUS "Lockstep: no HDF5 found (Debian: libhdf5-dev); there is no target lockstep::hdf5")
elseif(NOT TARGET lockstep::hdf5)
  add_library(lockstep::hdf5 INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(lockstep::hdf5 INTERFACE LOCKSTEP_HDF5)
  target_include_directories(lockstep::hdf5 SYSTEM INTERFACE "${LOCKSTEP_HDF5_INCLUDE}")
  target_link_libraries(lockstep::hdf5 INTERFACE lockstep::lockstep "${LOCKSTEP_HDF5}")
endif()
