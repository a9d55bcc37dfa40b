# SPDX-License-Identifier: Apache-2.0
# lockstep::app: dependencies of `lockstep/app/`, the trainers' command line.
find_package(CLI11 QUIET)
find_path(LOCKSTEP_YAML_INCLUDE yaml.h)
find_library(LOCKSTEP_YAML NAMES yaml)
mark_as_advanced(LOCKSTEP_YAML_INCLUDE LOCKSTEP_YAML)
if(NOT CLI11_FOUND OR NOT LOCKSTEP_YAML_INCLUDE OR NOT LOCKSTEP_YAML)
  message(STATUS "Lockstep: CLI11 or libyaml is missing (Debian: libcli11-dev libyaml-dev); "
                 "there is no target lockstep::app")
elseif(NOT TARGET lockstep::app)
  add_library(lockstep::app INTERFACE IMPORTED GLOBAL)
  target_include_directories(lockstep::app SYSTEM INTERFACE "${LOCKSTEP_YAML_INCLUDE}")
  target_link_libraries(lockstep::app INTERFACE lockstep::lockstep CLI11::CLI11 "${LOCKSTEP_YAML}")
endif()
