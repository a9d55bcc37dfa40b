# SPDX-License-Identifier: Apache-2.0
# lockstep_together(output files…) joins the files into one translation unit, which compiles in a fraction of the time.
# It first has all includes of the files. It then includes each file in a namespace `in_` and its name, and the file's
# own includes have no further effect.
function(lockstep_together output)
  set(script "${CMAKE_CURRENT_FUNCTION_LIST_FILE}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -D "OUTPUT=${output}" -D "FILES=${ARGN}" -P "${script}"
    DEPENDS ${ARGN} "${script}"
    COMMENT "Joining ${output}" VERBATIM)
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  return()
endif()

cmake_minimum_required(VERSION 3.25)
set(includes "")
set(parts "")
foreach(file IN LISTS FILES)
  get_filename_component(folder "${file}" DIRECTORY)
  file(STRINGS "${file}" lines REGEX "^#")
  set(other "")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^#include ([<\"])([^>\"]+)([>\"])")
      set(other "${line}")
    elseif(other)
      message(FATAL_ERROR "${file}: `${other}` precedes `${line}`, which may depend on it: this file must be APART")
    else()
      set(included "${CMAKE_MATCH_2}")
      if(CMAKE_MATCH_1 STREQUAL "\"" AND EXISTS "${folder}/${included}")
        get_filename_component(included "${folder}/${included}" ABSOLUTE)
      endif()
      list(APPEND includes "#include ${CMAKE_MATCH_1}${included}${CMAKE_MATCH_3}")
    endif()
  endforeach()
  get_filename_component(name "${file}" NAME)
  string(REGEX REPLACE "\\.(test\\.)?(cpp|cu)$" "" name "${name}")
  string(MAKE_C_IDENTIFIER "in_${name}" name)
  string(APPEND parts "\nnamespace ${name} {\n#include \"${file}\"\n}\n")
endforeach()
list(REMOVE_DUPLICATES includes)
list(JOIN includes "\n" includes)
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "@includes@\n@parts@" @ONLY) # unchanged contents keep the file's time
