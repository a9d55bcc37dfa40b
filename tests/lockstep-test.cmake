# SPDX-License-Identifier: Apache-2.0
find_package(doctest REQUIRED)
find_package(rapidcheck REQUIRED)
include(together.cmake)

# Some 400 programs are linked: a quick linker, where there is one, does it in a third of the time.
include(CheckLinkerFlag)
foreach(linker lld gold)
  check_linker_flag(CXX -fuse-ld=${linker} LOCKSTEP_LINKS_WITH_${linker})
  if(LOCKSTEP_LINKS_WITH_${linker})
    add_link_options($<$<LINK_LANGUAGE:CXX>:-fuse-ld=${linker}>)
    break()
  endif()
endforeach()

set(lockstep_warning_flags -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion)
add_library(lockstep_warnings INTERFACE)
target_compile_options(lockstep_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${lockstep_warning_flags}>")

# Every header, every block of C++ in the pages and every test alone: `./dev check alone` builds it, which nothing else
# needs.
add_custom_target(alone)

# Compilers see a [[nodiscard]] result ignored where doctest only looks for an exception. And what an assertion itself
# throws ends its test, which fails either way, for a tenth less to compile.
add_compile_definitions(DOCTEST_CONFIG_VOID_CAST_EXPRESSIONS DOCTEST_CONFIG_SUPER_FAST_ASSERTS)

add_library(lockstep_test_main OBJECT main.cpp)
target_link_libraries(lockstep_test_main PUBLIC lockstep::lockstep doctest::doctest rapidcheck PRIVATE lockstep_warnings)
target_include_directories(lockstep_test_main PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
target_compile_definitions(lockstep_test_main PUBLIC LOCKSTEP_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

# What most tests begin with is parsed once for each level of optimisation instead of once for each test. It hides a
# standard header that is not included; `./dev check alone`, which compiles headers without, does not.
function(lockstep_test_start name)
  add_library(${name} OBJECT start.cpp)
  target_compile_options(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE lockstep::lockstep doctest::doctest lockstep_warnings)
  target_precompile_headers(${name} PRIVATE start.hpp)
endfunction()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  lockstep_test_start(lockstep_test_start)
  lockstep_test_start(lockstep_test_start_unoptimised -O0)
endif()

# Without a GPU nvcc only shows that each kernel compiles, and leaves out the optimisation, a third of its time; or, with
# LOCKSTEP_TEST_PTX, what it makes is interpreted.
option(LOCKSTEP_TEST_PTX "Run tests of CUDA code without a GPU, by an interpreter of what nvcc makes" OFF)
if(LOCKSTEP_TEST_PTX)
  set(lockstep_cuda_test_options $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>)
elseif(NOT lockstep_gpus AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  set(lockstep_cuda_test_options $<$<COMPILE_LANGUAGE:CUDA>:--Ofast-compile=max>)
endif()
if(TARGET lockstep::cuda AND TARGET lockstep::zstd)
  add_library(lockstep_ptx SHARED ptx/cublaslt.cpp ptx/cudart.cpp)
  target_include_directories(lockstep_ptx PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_compile_options(lockstep_ptx PRIVATE -O2)
  target_link_libraries(lockstep_ptx PRIVATE lockstep::lockstep lockstep::zstd lockstep_warnings)
endif()

# lockstep_test(folder/name [APART] [SOURCES more…] [LINK targets…] [NEEDS programs…] [PROCESSORS n])
#
# Has ctest run folder/name.test.cpp, from the repository's root, as `folder/name`. The tests of a folder that link the
# same are one program. Those with further SOURCES beside them are programs of their own, and those that are APART: as
# what they include depends on macros of theirs, or as they specialise templates. NEEDS are programs, targets of this
# project, that a test starts: it finds the path of each in the environment as LOCKSTEP_PROGRAM_<name>. PROCESSORS is how
# many cores it keeps busy. Exit code 77 counts as skipped.
#
# Every test is a program by itself too, test.folder.name, which ctest, given `-C alone`, runs as `alone/folder/name`: that
# is what `./dev test folder/name` builds and runs.
function(lockstep_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "APART" "PROCESSORS" "SOURCES;LINK;NEEDS")
  lockstep_test_program(${name} "${name}.test.cpp")
  lockstep_test_entry(alone/${name} CONFIGURATIONS alone)
  if(test_APART OR test_SOURCES)
    lockstep_test_entry(${name})
    return()
  endif()
  set_property(TARGET ${target} PROPERTY EXCLUDE_FROM_ALL ON)
  add_dependencies(alone ${target})

  get_filename_component(folder "${name}" DIRECTORY)
  string(REGEX REPLACE "lockstep::|;" "_" linked "${test_LINK}")
  string(REPLACE "/" "." target "test.${folder}.all${linked}")
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${folder}/all${linked}.cpp")
  if(NOT TARGET ${target})
    lockstep_test_program(${folder}/all${linked} "${file}")
    lockstep_join_later(${target} "${file}")
  endif()
  set_property(TARGET ${target} APPEND PROPERTY LOCKSTEP_FILES "${CMAKE_CURRENT_SOURCE_DIR}/${name}.test.cpp")
  lockstep_test_entry(${name} "--source-file=*/${name}.test.cpp")
  set_property(TEST ${name} PROPERTY FAIL_REGULAR_EXPRESSION "test cases: +0 ")
endfunction()
# For the ones above and below: once all tests of a program are known, makes its file of theirs.
function(lockstep_join_later target file)
  cmake_language(EVAL CODE "cmake_language(DEFER CALL lockstep_join [[${target}]] [[${file}]])")
endfunction()
function(lockstep_join target file)
  get_target_property(files ${target} LOCKSTEP_FILES)
  lockstep_together("${file}" ${files})
endfunction()

# lockstep_cuda_test(folder/name [WITH target] [IN folder/program] …): the same for folder/name.test.cu, as
# `cuda/folder/name`; skipped by name where there is no nvcc, or not the target that it is linked with. And everywhere
# the same file as `emulated/folder/name`, its kernels run on the host by cuda_emulation/. Those IN one program are
# joined; all others are programs of their own. As `ptx/folder/name` what nvcc has made is interpreted: always of
# memory/, which is over in a moment, and of all with LOCKSTEP_TEST_PTX.
function(lockstep_cuda_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "PROCESSORS;WITH;IN" "SOURCES;LINK;NEEDS")
  set(program ${name})
  if(test_IN)
    set(program ${test_IN})
  endif()
  lockstep_cuda_test_program(emulated cpp)
  target_include_directories(${target} BEFORE PRIVATE cuda_emulation)
  target_compile_definitions(${target} PRIVATE __CUDA_ARCH_LIST__=0)
  lockstep_cuda_test_entry(emulated)
  if(NOT TARGET lockstep::cuda)
    set(missing "an nvcc of version 12 or later")
  elseif(test_WITH AND NOT TARGET ${test_WITH})
    string(REPLACE "lockstep::" "the component " missing "${test_WITH}")
  else()
    list(APPEND test_LINK lockstep::cuda ${test_WITH})
    lockstep_cuda_test_program(cuda cu)
    target_compile_options(${target} PRIVATE ${lockstep_cuda_test_options})
    add_dependencies(cuda_tests ${target})
    lockstep_cuda_test_entry(cuda)
    set_property(TEST cuda/${name} APPEND PROPERTY LABELS cuda)
    if(TARGET lockstep_ptx AND NOT test_WITH AND (LOCKSTEP_TEST_PTX OR name MATCHES "^memory/"))
      add_dependencies(${target} lockstep_ptx)
      lockstep_cuda_test_entry(ptx)
      set_property(TEST ptx/${name} APPEND PROPERTY ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:lockstep_ptx>")
      set_property(TEST ptx/${name} PROPERTY TIMEOUT 1500)
      set_property(TEST ptx/${name} PROPERTY SKIP_RETURN_CODE) # without the library it would find no GPU, and skip
    endif()
    return()
  endif()
  add_test(NAME cuda/${name} COMMAND "${CMAKE_COMMAND}" -E echo "skipped: needs ${missing}: ${name}.test.cu")
  set_property(TEST cuda/${name} PROPERTY SKIP_REGULAR_EXPRESSION "^skipped: needs ")
endfunction()

# What nvcc makes, which is all that `./dev gpu` builds of the tests.
add_custom_target(cuda_tests)

# For the one above: the program that ${name}.test.cu is IN.
function(lockstep_cuda_test_program way extension)
  string(REPLACE "/" "." target "test.${way}.${program}")
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${way}/${program}.${extension}")
  if(NOT TARGET ${target})
    lockstep_test_program(${way}/${program} "${file}")
    if(test_IN)
      lockstep_join_later(${target} "${file}")
    else()
      file(CONFIGURE OUTPUT "${file}" CONTENT "#include \"@name@.test.cu\"\n" @ONLY)
    endif()
  endif()
  set_property(TARGET ${target} APPEND PROPERTY LOCKSTEP_FILES "${CMAKE_CURRENT_SOURCE_DIR}/${name}.test.cu")
  set(target ${target} PARENT_SCOPE)
endfunction()

# Then: has ctest run its part of that program.
function(lockstep_cuda_test_entry way)
  lockstep_test_entry(${way}/${name} "--source-file=*/${name}.test.cu")
  set_property(TEST ${way}/${name} PROPERTY FAIL_REGULAR_EXPRESSION "test cases: +0 ")
endfunction()

# For the two above: reads their test_… variables, and leaves the target's name in `target`.
function(lockstep_test_program name file)
  string(REPLACE "/" "." target "test.${name}")
  add_executable(${target} "${file}" ${test_SOURCES})
  target_link_libraries(${target} PRIVATE lockstep_test_main lockstep_warnings ${test_LINK})
  # Kernels are tested for every instruction set. What stands on them is compiled for one, in half the time.
  if(NOT name MATCHES "^(core|kernel|structure)/")
    target_compile_definitions(${target} PRIVATE LOCKSTEP_ONE_INSTRUCTION_SET)
  endif()
  set(start lockstep_test_start)
  # Models and trainers take a quarter less time without optimisation, and their tests are over in a moment.
  if(CMAKE_CXX_FLAGS MATCHES "-Og" AND name MATCHES "^(emulated/)?(nn|parallel|train|app|interop|examples|golden)/")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
    set(start lockstep_test_start_unoptimised)
  endif()
  if(TARGET ${start} AND file MATCHES "\\.cpp$")
    target_precompile_headers(${target} REUSE_FROM ${start})
  endif()
  set(target ${target} PARENT_SCOPE)
endfunction()

# Then: has ctest run the program `target`, with the arguments that follow the entry's name.
function(lockstep_test_entry entry)
  add_test(NAME ${entry} COMMAND ${target} ${ARGN})
  set(environment "")
  foreach(program IN LISTS test_NEEDS)
    if(TARGET ${program})
      add_dependencies(${target} ${program})
      list(APPEND environment "LOCKSTEP_PROGRAM_${program}=$<TARGET_FILE:${program}>")
    endif()
  endforeach()
  if(NOT test_PROCESSORS)
    set(test_PROCESSORS 1)
  endif()
  set_tests_properties(
    ${entry}
    PROPERTIES SKIP_RETURN_CODE 77 PROCESSORS ${test_PROCESSORS} TIMEOUT 300
               WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" ENVIRONMENT "${environment}")
endfunction()

# lockstep_compile_fail(folder/name): see compile_fail/check.cmake.
function(lockstep_compile_fail name)
  add_test(
    NAME compile_fail/${name}
    COMMAND
      "${CMAKE_COMMAND}" -D "SOURCE=${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/${name}.cpp" -D
      "COMPILE=${CMAKE_CXX_COMPILER};-std=c++20;-Wfatal-errors;-I;${PROJECT_SOURCE_DIR}/include" -D
      "WORK=${CMAKE_CURRENT_BINARY_DIR}/compile_fail/${name}" -P
      "${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/check.cmake")
  set_tests_properties(compile_fail/${name} PROPERTIES TIMEOUT 300)
endfunction()

# lockstep_package_test(way): see package/try.cmake.
function(lockstep_package_test way)
  set(components ${lockstep_components})
  list(REMOVE_ITEM components cuda cudnn nccl) # they would ask the user's project for a second language
  add_test(
    NAME package/${way}
    COMMAND
      "${CMAKE_COMMAND}" -D WAY=${way} -D "LOCKSTEP=${PROJECT_SOURCE_DIR}" -D "BUILD=${PROJECT_BINARY_DIR}" -D
      "WORK=${CMAKE_CURRENT_BINARY_DIR}/package_${way}" -D "CXX=${CMAKE_CXX_COMPILER}" -D "COMPONENTS=${components}" -D
      "TORCH=${LOCKSTEP_TORCH_INCLUDE}/.." -P
      "${CMAKE_CURRENT_SOURCE_DIR}/package/try.cmake")
  set_tests_properties(package/${way} PROPERTIES TIMEOUT 300)
endfunction()
