# SPDX-License-Identifier: Apache-2.0
# lockstep::mpi: dependencies of `lockstep/comm/mpi/mpi_communicator.hpp`.
set(lockstep_mpi_missing "")
if(DEFINED LOCKSTEP_MPI AND NOT LOCKSTEP_MPI)
  set(lockstep_mpi_missing "LOCKSTEP_MPI is off")
else()
  find_package(MPI QUIET COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND)
    set(lockstep_mpi_missing "CMake finds none (Debian: libopenmpi-dev openmpi-bin)")
  endif()
endif()

if(lockstep_mpi_missing)
  message(STATUS "Lockstep: MPI is skipped: ${lockstep_mpi_missing}; there is no target lockstep::mpi")
elseif(NOT TARGET lockstep::mpi)
  add_library(lockstep::mpi INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(lockstep::mpi INTERFACE LOCKSTEP_MPI OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(lockstep::mpi INTERFACE lockstep::lockstep MPI::MPI_CXX)
endif()
