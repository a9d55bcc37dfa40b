# SPDX-License-Identifier: Apache-2.0
# Compiles SOURCE once per line
#   // CASE name: text
# with -DCASE_name, which must fail with `text` in the first line that says "error:". If SOURCE has a line
#   // LINES number
# the output must have at most that many lines, without source excerpts, which are longer in g++ 14 than in g++ 12, and
# without the trail of includes. It must have one error; the compiler does not stop at the first. So the sentence that a
# user reads is tested.
#
# With CONTROLS, compiles these sources without a case, which must succeed and shows that the rest of each is correct.
# They are namespaces of one translation unit, unless they specialize templates of the library.
#
# Without both, compiles the includes of all sources in this folder into the folder WORK, for the other calls.
if(NOT SOURCE AND NOT CONTROLS)
  set(includes "")
  file(GLOB_RECURSE sources "${CMAKE_CURRENT_LIST_DIR}/*.cpp")
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" lines REGEX "^#include <")
    list(APPEND includes ${lines})
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  file(WRITE "${WORK}/includes.hpp" "${includes}\n")
  execute_process(COMMAND ${COMPILE} -x c++-header "${WORK}/includes.hpp" -o "${WORK}/includes.hpp.gch"
                  COMMAND_ERROR_IS_FATAL ANY)
  return()
endif()

list(APPEND COMPILE -fsyntax-only -include "${WORK}/includes.hpp")
if(CONTROLS)
  string(REPLACE "," ";" CONTROLS "${CONTROLS}")
  set(joined "")
  set(last "")
  foreach(name IN LISTS CONTROLS)
    set(include "#include \"${CMAKE_CURRENT_LIST_DIR}/${name}.cpp\"\n")
    file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/${name}.cpp" specializes REGEX "^namespace lockstep ")
    if(specializes)
      string(APPEND last "${include}")
    else()
      string(MAKE_C_IDENTIFIER "control_${name}" namespace)
      string(APPEND joined "namespace ${namespace} {\n${include}}\n")
    endif()
  endforeach()
  file(WRITE "${WORK}/controls.cpp" "${joined}${last}")
  execute_process(COMMAND ${COMPILE} "${WORK}/controls.cpp" RESULT_VARIABLE failed ERROR_VARIABLE says)
  if(failed)
    message(FATAL_ERROR "A control, a source without a case, does not compile:\n${says}")
  endif()
  list(LENGTH CONTROLS count)
  message(STATUS "${count} controls")
  return()
endif()

file(STRINGS "${SOURCE}" cases REGEX "^// CASE [a-z_0-9]+: .+")
if(NOT cases)
  message(FATAL_ERROR "${SOURCE} has no line `// CASE name: text`")
endif()

# A wrapped line, or an unbalanced bracket, would join several cases.
file(READ "${SOURCE}" source)
string(REGEX MATCHALL "defined\\(CASE_[a-z_0-9]+" expected "${source}")
list(REMOVE_DUPLICATES expected)
list(LENGTH expected expected)
list(LENGTH cases count)
if(NOT count EQUAL expected)
  message(FATAL_ERROR "${SOURCE} asks for ${expected} names as defined(CASE_name), and has ${count} lines like "
                      "`// CASE name: text`, of which each is to be whole, with its brackets in pairs")
endif()

file(STRINGS "${SOURCE}" most REGEX "^// LINES [0-9]+$")
string(REGEX MATCH "[0-9]+" most "${most}")
if(most)
  list(REMOVE_ITEM COMPILE -Wfatal-errors)
endif()
foreach(case IN LISTS cases)
  string(REGEX MATCH "^// CASE ([a-z_0-9]+): (.+)$" _ "${case}")
  set(name "${CMAKE_MATCH_1}")
  set(text "${CMAKE_MATCH_2}")
  execute_process(COMMAND ${COMPILE} -DCASE_${name} "${SOURCE}" RESULT_VARIABLE failed ERROR_VARIABLE says)
  if(NOT failed)
    message(SEND_ERROR "case ${name} compiles, and should not")
    continue()
  endif()
  string(REGEX MATCH "[^\n]*error:[^\n]*" first "${says}")
  string(FIND "${first}" "${text}" at)
  if(at EQUAL -1)
    message(SEND_ERROR "case ${name}: the first error is\n  ${first}\nand should contain\n  ${text}\n")
  endif()
  string(REGEX MATCHALL "error:" errors "${says}")
  list(LENGTH errors errors)
  if(most AND errors GREATER 1)
    message(SEND_ERROR "case ${name}: gives ${errors} errors instead of one:\n${says}")
  endif()
  string(REGEX REPLACE "\n +[0-9]* \\|[^\n]*" "" lines "\n${says}")
  string(REGEX REPLACE "\n(In file included| +)from [^\n]*" "" lines "${lines}")
  string(REGEX MATCHALL "\n" lines "${lines}")
  list(LENGTH lines lines)
  if(most AND lines GREATER most)
    message(SEND_ERROR "case ${name}: takes ${lines} lines to say so, and may take ${most}:\n${says}")
  endif()
endforeach()
message(STATUS "${count} cases")
