# SPDX-License-Identifier: Apache-2.0
# lockstep::tensorboard: header-only protozero, a dependency of `lockstep/train/logs/tensorboard.hpp`.
find_path(LOCKSTEP_PROTOZERO_INCLUDE protozero/pbf_writer.hpp)
mark_as_advanced(LOCKSTEP_PROTOZERO_INCLUDE)
if(NOT LOCKSTEP_PROTOZERO_INCLUDE)
  message(STATUS "Lockstep: no protozero found (Debian: libprotozero-dev); there is no target lockstep::tensorboard")
elseif(NOT TARGET lockstep::tensorboard)
  add_library(lockstep::tensorboard INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(lockstep::tensorboard INTERFACE LOCKSTEP_TENSORBOARD)
  target_include_directories(lockstep::tensorboard SYSTEM INTERFACE "${LOCKSTEP_PROTOZERO_INCLUDE}")
  target_link_libraries(lockstep::tensorboard INTERFACE lockstep::lockstep)
endif()
