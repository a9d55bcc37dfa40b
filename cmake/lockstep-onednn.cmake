# SPDX-License-Identifier: Apache-2.0
# lockstep::onednn: float convolutions by oneDNN 2 or 3, built for OpenMP (as Debian's) or without threads. Lockstep's
# threads call it, each on its own tile and with one OpenMP thread. libgomp is therefore a dependency here too. Code
# compiled by nvcc uses the portable convolutions on the CPU: nvcc 13.0 aborts in oneDNN's header, with an assertion in
# find_allocated_name_reference.
find_path(LOCKSTEP_ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
find_library(LOCKSTEP_ONEDNN NAMES dnnl)
find_library(LOCKSTEP_GOMP NAMES gomp libgomp.so.1)
mark_as_advanced(LOCKSTEP_ONEDNN_INCLUDE LOCKSTEP_ONEDNN LOCKSTEP_GOMP)
if(NOT LOCKSTEP_ONEDNN_INCLUDE OR NOT LOCKSTEP_ONEDNN OR NOT LOCKSTEP_GOMP)
  message(STATUS "Lockstep: no oneDNN found (Debian: libdnnl-dev); there is no target lockstep::onednn")
elseif(NOT TARGET lockstep::onednn)
  file(STRINGS "${LOCKSTEP_ONEDNN_INCLUDE}/oneapi/dnnl/dnnl_version.h" lockstep_onednn_major
       REGEX "^#define DNNL_VERSION_MAJOR +[23]$")
  file(STRINGS "${LOCKSTEP_ONEDNN_INCLUDE}/oneapi/dnnl/dnnl_config.h" lockstep_onednn_runtime
       REGEX "^#define DNNL_CPU_THREADING_RUNTIME +DNNL_RUNTIME_(OMP|SEQ)$")
  if(NOT lockstep_onednn_major OR NOT lockstep_onednn_runtime)
    message(STATUS "Lockstep: the oneDNN of ${LOCKSTEP_ONEDNN_INCLUDE} is neither version 2 nor 3, or was not built "
                   "for OpenMP or without threads; there is no target lockstep::onednn")
  else()
    add_library(lockstep::onednn INTERFACE IMPORTED GLOBAL)
    target_compile_definitions(lockstep::onednn INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:LOCKSTEP_ONEDNN>")
    target_include_directories(lockstep::onednn SYSTEM INTERFACE "${LOCKSTEP_ONEDNN_INCLUDE}")
    target_link_libraries(lockstep::onednn INTERFACE lockstep::lockstep "${LOCKSTEP_ONEDNN}" "${LOCKSTEP_GOMP}")
  endif()
endif()
