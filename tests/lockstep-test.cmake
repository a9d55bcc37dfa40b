# SPDX-License-Identifier: Apache-2.0
find_package(doctest REQUIRED)
find_package(rapidcheck REQUIRED)

add_library(lockstep_warnings INTERFACE)
target_compile_options(
  lockstep_warnings
  INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wsign-conversion>)

add_library(lockstep_test_main OBJECT main.cpp)
target_link_libraries(lockstep_test_main PUBLIC lockstep::lockstep doctest::doctest rapidcheck PRIVATE lockstep_warnings)
target_include_directories(lockstep_test_main PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")

# lockstep_test(folder/name [LINK targets…] [PROCESSORS n] [TIMEOUT seconds])
#
# Builds folder/name.test.cpp into a program of its own and has ctest run it as `folder/name`. PROCESSORS is how many
# cores the test keeps busy. Exit code 77 counts as skipped.
function(lockstep_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "PROCESSORS;TIMEOUT" "LINK")
  lockstep_test_program(${name} "${name}.test.cpp" "${test_LINK}")
  lockstep_test_entry(${name} "${test_PROCESSORS}" "${test_TIMEOUT}")
endfunction()

# lockstep_cuda_test(folder/name …): the same for folder/name.test.cu; skipped by name where there is no nvcc.
function(lockstep_cuda_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "PROCESSORS;TIMEOUT" "LINK")
  if(TARGET lockstep::cuda)
    lockstep_test_program(cuda/${name} "${name}.test.cu" "lockstep::cuda;${test_LINK}")
    lockstep_test_entry(cuda/${name} "${test_PROCESSORS}" "${test_TIMEOUT}")
    set_property(TEST cuda/${name} APPEND PROPERTY LABELS cuda)
  else()
    add_test(NAME cuda/${name} COMMAND "${CMAKE_COMMAND}" -E echo
                                       "skipped: needs an nvcc of version 12 or later: ${name}.test.cu")
    set_property(TEST cuda/${name} PROPERTY SKIP_REGULAR_EXPRESSION "^skipped: needs an nvcc")
  endif()
endfunction()

function(lockstep_test_program name source link)
  string(REPLACE "/" "." target "test.${name}")
  add_executable(${target} "${source}")
  target_link_libraries(${target} PRIVATE lockstep_test_main lockstep_warnings ${link})
endfunction()

function(lockstep_test_entry name processors timeout)
  string(REPLACE "/" "." target "test.${name}")
  add_test(NAME ${name} COMMAND ${target})
  if(NOT processors)
    set(processors 1)
  endif()
  if(NOT timeout)
    set(timeout 300)
  endif()
  set_tests_properties(
    ${name} PROPERTIES SKIP_RETURN_CODE 77 PROCESSORS ${processors} TIMEOUT ${timeout} WORKING_DIRECTORY
                       "${PROJECT_SOURCE_DIR}")
endfunction()
