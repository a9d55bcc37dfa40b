# SPDX-License-Identifier: Apache-2.0
# lockstep::app: what `lockstep/app/` needs for the trainers' command line.
find_package(CLI11 QUIET)
find_package(nlohmann_json QUIET)
if(NOT CLI11_FOUND OR NOT nlohmann_json_FOUND)
  message(STATUS "Lockstep: CLI11 or nlohmann-json is missing (Debian: libcli11-dev nlohmann-json3-dev); "
                 "there is no target lockstep::app")
elseif(NOT TARGET lockstep::app)
  add_library(lockstep::app INTERFACE IMPORTED GLOBAL)
  target_link_libraries(lockstep::app INTERFACE lockstep::lockstep CLI11::CLI11 nlohmann_json::nlohmann_json)
endif()
