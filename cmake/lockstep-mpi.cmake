# SPDX-License-Identifier: Apache-2.0
# lockstep::mpi: what `lockstep/comm/mpi_communicator.hpp` moves data with.
find_package(MPI QUIET COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  message(STATUS "Lockstep: no MPI found (Debian: libopenmpi-dev); there is no target lockstep::mpi")
elseif(NOT TARGET lockstep::mpi)
  add_library(lockstep::mpi INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(lockstep::mpi INTERFACE LOCKSTEP_MPI OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(lockstep::mpi INTERFACE lockstep::lockstep MPI::MPI_CXX)
endif()
