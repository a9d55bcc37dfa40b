# SPDX-License-Identifier: Apache-2.0
include(together.cmake)

set(LOCKSTEP_USER_COMPILER "${CMAKE_CXX_COMPILER}" CACHE STRING "Compiler of the programs that tests build as users do")
set(lockstep_user_flags "") # for large files
if(NOT LOCKSTEP_USER_COMPILER MATCHES "clang")
  set(lockstep_user_flags --param=ggc-min-heapsize=600000)
endif()

# Whether lockstep::compiled was compiled as the tests are.
set(lockstep_tests_link OFF)
if(LOCKSTEP_COMPILED_FOR_ONE_SET AND NOT LOCKSTEP_COMPILED_WITH)
  set(lockstep_tests_link ON)
endif()

# About 400 programs are linked: a faster linker, if found, takes a third of the time.
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

# Builds every header, every C++ block of the pages and every test alone, for `./dev check alone` only.
add_custom_target(alone)

# Compilers warn about ignored [[nodiscard]] results in assertions that only expect an exception. The second macro lets
# an exception inside an assertion end its test, which fails either way. This compiles in a tenth less time.
add_compile_definitions(DOCTEST_CONFIG_VOID_CAST_EXPRESSIONS DOCTEST_CONFIG_SUPER_FAST_ASSERTS)

add_library(lockstep_test_main OBJECT main.cpp number.cpp)
set_source_files_properties(number.cpp PROPERTIES COMPILE_OPTIONS -O2)
target_link_libraries(lockstep_test_main PUBLIC lockstep::lockstep doctest::doctest rapidcheck PRIVATE lockstep_warnings)
target_include_directories(lockstep_test_main PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
# A kit of programs (`./dev gpu build`) runs elsewhere, in a folder with the files that tests read.
option(LOCKSTEP_KIT "Build tests that read their files from the working directory" OFF)
if(LOCKSTEP_KIT)
  set(lockstep_test_files ".")
else()
  set(lockstep_test_files "${PROJECT_SOURCE_DIR}")
endif()
target_compile_definitions(lockstep_test_main PUBLIC LOCKSTEP_SOURCE_DIR="${lockstep_test_files}")

# Whether the compiler can compile programs for this machine only.
set(lockstep_test_here OFF)
if(CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT (CMAKE_CROSSCOMPILING OR
                                                                                              LOCKSTEP_KIT))
  set(lockstep_test_here ON)
endif()

# Parses the common headers of tests once per optimization level instead of once per test. This hides missing includes
# of standard headers, which `./dev check alone` finds, because it compiles headers without it.
function(lockstep_test_start name)
  add_library(${name} OBJECT start.cpp)
  target_compile_options(${name} PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE lockstep::lockstep doctest::doctest lockstep_warnings)
  target_precompile_headers(${name} PRIVATE start.hpp)
endfunction()
if(CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
  lockstep_test_start(lockstep_test_start)
  lockstep_test_start(lockstep_test_start_unoptimised -O0)
endif()

# Without a GPU, nvcc only checks that kernels compile, without optimization, which saves a third of its time. With
# LOCKSTEP_TEST_PTX an interpreter runs its output.
option(LOCKSTEP_TEST_PTX "Run tests of CUDA code without a GPU, by an interpreter of what nvcc makes" OFF)
if(LOCKSTEP_TEST_PTX)
  set(lockstep_cuda_test_options $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>)
elseif(NOT lockstep_gpus AND NOT LOCKSTEP_KIT AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  set(lockstep_cuda_test_options $<$<COMPILE_LANGUAGE:CUDA>:--Ofast-compile=max>)
endif()
if(TARGET lockstep::cuda AND TARGET lockstep::zstd)
  add_library(lockstep_ptx SHARED ptx/cublaslt.cpp ptx/cudart.cpp)
  target_include_directories(lockstep_ptx PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  if(LOCKSTEP_TEST_PTX)
    target_compile_options(lockstep_ptx PRIVATE -O2)
  elseif(CMAKE_CXX_FLAGS MATCHES "-Og") # the tests of memory/ run only a moment
    target_compile_options(lockstep_ptx PRIVATE -O0)
  endif()
  target_link_libraries(lockstep_ptx PRIVATE lockstep::lockstep lockstep::zstd lockstep_warnings lockstep_cuda_products)
  target_link_options(lockstep_ptx PRIVATE LINKER:-z,defs) # else a missing symbol ends only the tests that call it
endif()

# The fibers and the matrix products of the CUDA emulation are optimized in each build: emulated kernels spend most of
# their time there.
add_library(lockstep_cuda_emulation OBJECT cuda_emulation/block.cpp)
add_library(lockstep_cuda_products OBJECT cuda_emulation/product.cpp) # of the PTX interpreter, too
set_property(TARGET lockstep_cuda_products PROPERTY POSITION_INDEPENDENT_CODE ON)
foreach(part lockstep_cuda_emulation lockstep_cuda_products)
  target_include_directories(${part} PRIVATE cuda_emulation)
  target_compile_options(${part} PRIVATE -O2)
  target_link_libraries(${part} PRIVATE lockstep::lockstep lockstep_warnings)
endforeach()
function(lockstep_emulate_cuda target)
  target_include_directories(${target} BEFORE PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/cuda_emulation")
  target_link_libraries(${target} PRIVATE lockstep_cuda_emulation lockstep_cuda_products)
endfunction()

# lockstep_test(folder/name [APART] [SETS] [LOOPS] [SOURCES more…] [LINK targets…] [NEEDS programs…] [PROCESSORS n])
#
# Makes ctest run folder/name.test.cpp, from the repository's root, as `folder/name`. Tests of a floor are one program for
# each set of libraries that change what is tested. Tests with further SOURCES are separate programs, and so are tests
# that are APART. A test is APART if its includes depend on its macros, or if it specializes templates. Tests of kernels
# are compiled for this processor, except those that call kernels with several instruction SETS. Those with long LOOPS are
# optimized, because they would run longer than they compile.
# NEEDS are programs, targets of this project, that a test starts: it finds the path of each in the environment as
# LOCKSTEP_PROGRAM_<name>. PROCESSORS is the number of cores that it uses. Exit code 77 means skipped.
#
# Every test is also a program of its own, test.folder.name, which `ctest -C alone` runs as `alone/folder/name`. `./dev
# test folder/name` builds and runs this program.
function(lockstep_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "APART;SETS;LOOPS" "PROCESSORS" "SOURCES;LINK;NEEDS")
  lockstep_test_program(${name} "${name}.test.cpp")
  lockstep_test_entry(alone/${name} CONFIGURATIONS alone)
  if(test_APART OR test_SOURCES)
    lockstep_test_entry(${name})
    return()
  endif()
  set_property(TARGET ${target} PROPERTY EXCLUDE_FROM_ALL ON)
  add_dependencies(alone ${target})

  string(REGEX MATCH "^[^/]+" folder "${name}") # rooms of a floor share a program
  set(others ${test_LINK}) # without those that change nothing for other tests
  list(REMOVE_ITEM others lockstep::hdf5 lockstep::tensorboard lockstep::utf8proc lockstep::zstd)
  if(folder STREQUAL "comm")
    list(REMOVE_ITEM others lockstep::mpi)
  endif()
  string(REGEX REPLACE "lockstep::|;" "_" linked "${others}")
  if(test_SETS)
    string(APPEND linked "_sets")
  elseif(test_LOOPS)
    string(APPEND linked "_loops")
  endif()
  string(REPLACE "/" "." target "test.${folder}.all${linked}")
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${folder}/all${linked}.cpp")
  if(NOT TARGET ${target})
    lockstep_test_program(${folder}/all${linked} "${file}")
    lockstep_join_later(${target} "${file}")
  endif()
  target_link_libraries(${target} PRIVATE ${test_LINK})
  set_property(TARGET ${target} APPEND PROPERTY LOCKSTEP_FILES "${CMAKE_CURRENT_SOURCE_DIR}/${name}.test.cpp")
  lockstep_test_entry(${name} "--source-file=*/${name}.test.cpp")
  set_property(TEST ${name} PROPERTY FAIL_REGULAR_EXPRESSION "test cases: +0 ")
endfunction()
# Defers lockstep_join, for the functions above and below, until all tests of a program are known.
function(lockstep_join_later target file)
  cmake_language(EVAL CODE "cmake_language(DEFER CALL lockstep_join [[${target}]] [[${file}]])")
endfunction()
function(lockstep_join target file)
  get_target_property(files ${target} LOCKSTEP_FILES)
  lockstep_together("${file}" ${files})
endfunction()

# lockstep_cuda_test(folder/name [WITH target] [IN folder/program] …) is lockstep_test for folder/name.test.cu, as
# `cuda/folder/name`. It is skipped by name without nvcc or without the target that it links. On every machine the file
# is also a test `emulated/folder/name`, whose kernels run on the CPU by cuda_emulation/.
# Tests IN one program are joined; all others are separate programs. As `ptx/folder/name` an interpreter runs nvcc's
# output: by default for memory/, which takes a moment, and for all tests with LOCKSTEP_TEST_PTX.
function(lockstep_cuda_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "PROCESSORS;WITH;IN" "SOURCES;LINK;NEEDS")
  set(program ${name})
  if(test_IN)
    set(program ${test_IN})
  endif()
  lockstep_cuda_test_program(emulated cpp)
  lockstep_emulate_cuda(${target})
  target_compile_definitions(${target} PRIVATE __CUDA_ARCH_LIST__=0)
  lockstep_cuda_test_entry(emulated)
  if(NOT TARGET lockstep::cuda)
    set(missing "an nvcc of version 12 or later")
  elseif(test_WITH AND NOT TARGET ${test_WITH})
    string(REPLACE "lockstep::" "the component " missing "${test_WITH}")
  elseif(program MATCHES "^(kernel|comm|parallel)/[a-z]+$" AND NOT (lockstep_gpus OR LOCKSTEP_KIT OR LOCKSTEP_TEST_PTX))
    set(missing "a GPU") # nvcc only compiles it, to PTX: of layers, one with kernels of its own, and a whole model
    if(NOT name MATCHES "^nn/" OR name MATCHES "^nn/(elementwise/elementwise|text_classifier)$")
      lockstep_cuda_test_ptx()
    endif()
  else()
    list(APPEND test_LINK lockstep::cuda ${test_WITH})
    lockstep_cuda_test_program(cuda cu)
    target_compile_options(${target} PRIVATE ${lockstep_cuda_test_options})
    add_dependencies(cuda_tests ${target})
    lockstep_cuda_test_entry(cuda)
    set_property(GLOBAL APPEND_STRING PROPERTY lockstep_cuda_tests
                 "${name} $<TARGET_FILE_NAME:${target}> --source-file=*/${name}.test.cu\n")
    set_property(TEST cuda/${name} APPEND PROPERTY LABELS cuda)
    if(TARGET lockstep_ptx AND NOT (test_WITH OR LOCKSTEP_KIT) AND (LOCKSTEP_TEST_PTX OR name MATCHES "^memory/"))
      add_dependencies(${target} lockstep_ptx)
      add_dependencies(ptx_tests ${target})
      lockstep_cuda_test_entry(ptx)
      set_property(TEST ptx/${name} APPEND PROPERTY ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:lockstep_ptx>")
      set_property(TEST ptx/${name} PROPERTY TIMEOUT 1500)
      set_property(TEST ptx/${name} PROPERTY SKIP_RETURN_CODE) # without the library it would find no GPU and be skipped
    endif()
    return()
  endif()
  add_test(NAME cuda/${name} COMMAND "${CMAKE_COMMAND}" -E echo "skipped: needs ${missing}: ${name}.test.cu")
  set_property(TEST cuda/${name} PROPERTY SKIP_REGULAR_EXPRESSION "^skipped: needs ")
endfunction()

# Programs compiled by nvcc: the only tests that `./dev gpu` builds. cuda.txt lists the tests: name, program, argument.
add_custom_target(cuda_tests)
add_custom_target(ptx_tests) # those that the interpreter runs
function(lockstep_list_cuda_tests)
  get_property(tests GLOBAL PROPERTY lockstep_cuda_tests)
  file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/cuda.txt" CONTENT "${tests}")
endfunction()
cmake_language(DEFER CALL lockstep_list_cuda_tests)

# Creates the program that ${name}.test.cu is IN, for lockstep_cuda_test.
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

# Compiles the program that ${name}.test.cu is IN to PTX, for lockstep_cuda_test. Host code, ptxas and the linker would
# take as long again; the emulated tests compile the same host code. Tests above the kernels declare the kernels as a
# linked program does, because kernel/ compiles them already.
function(lockstep_cuda_test_ptx)
  string(REGEX REPLACE "^(kernel|parallel)/.*" "\\1/all" program "${program}") # no optimization or library to differ in
  string(REPLACE "/" "." target "test.cuda.${program}")
  if(NOT TARGET ${target})
    set(file "${CMAKE_CURRENT_BINARY_DIR}/cuda/${program}.cu")
    add_library(${target} OBJECT "${file}")
    lockstep_join_later(${target} "${file}")
    list(GET CMAKE_CUDA_ARCHITECTURES 0 architecture)
    string(REGEX MATCH "^[0-9]+" architecture "${architecture}")
    set_target_properties(${target} PROPERTIES CUDA_PTX_COMPILATION ON CUDA_ARCHITECTURES "${architecture}-virtual")
    target_compile_definitions(${target} PRIVATE LOCKSTEP_ONE_INSTRUCTION_SET)
    if(NOT program MATCHES "^kernel/")
      target_compile_definitions(${target} PRIVATE LOCKSTEP_COMPILED)
    endif()
    target_compile_options(${target} PRIVATE ${lockstep_cuda_test_options})
    target_link_libraries(${target} PRIVATE lockstep_test_main lockstep::cuda)
    add_dependencies(cuda_tests ${target})
  endif()
  target_link_libraries(${target} PRIVATE ${test_WITH})
  set_property(TARGET ${target} APPEND PROPERTY LOCKSTEP_FILES "${CMAKE_CURRENT_SOURCE_DIR}/${name}.test.cu")
endfunction()

# Makes ctest run the part of ${name}.test.cu in that program.
function(lockstep_cuda_test_entry way)
  lockstep_test_entry(${way}/${name} "--source-file=*/${name}.test.cu")
  set_property(TEST ${way}/${name} PROPERTY FAIL_REGULAR_EXPRESSION "test cases: +0 ")
endfunction()

# Creates a test program for the functions above, from their test_… variables. Sets `target` to its name.
function(lockstep_test_program name file)
  string(REPLACE "/" "." target "test.${name}")
  add_executable(${target} "${file}" ${test_SOURCES})
  target_link_libraries(${target} PRIVATE lockstep_test_main lockstep_warnings ${test_LINK})
  # Kernels are tested header-only, with the widest vectors of this processor. Compiling them for the other sets, too,
  # takes as long again. Code on top of them is compiled for the narrowest vectors, and links the library if that was
  # compiled so, except for CUDA.
  if(NOT name MATCHES "^(core|kernel|structure|fuzz)/")
    target_compile_definitions(${target} PRIVATE LOCKSTEP_ONE_INSTRUCTION_SET)
    if(NOT name MATCHES "^(emulated|cuda|ptx|cuda_emulation|interop)/" AND NOT test_APART AND lockstep_tests_link)
      if("lockstep::app" IN_LIST test_LINK)
        target_link_libraries(${target} PRIVATE lockstep::compiled_app)
      else()
        target_link_libraries(${target} PRIVATE lockstep::compiled)
      endif()
    endif()
  endif()
  set(start lockstep_test_start)
  # Most tests run only a moment, and clang compiles them without optimization in a fraction of the time. Kernels with
  # long loops, and the page checks, would take longer in all.
  set(optimized "${test_LOOPS}")
  if(name MATCHES "^kernel/" AND (test_SETS OR test_LINK))
    set(optimized TRUE)
  endif()
  set(light "core|memory|cuda_emulation|ptx|fuzz|data|nn|optim|launch|comm|parallel|train|scaling|app|interop|examples|golden|tools")
  if(CMAKE_CXX_FLAGS MATCHES "-Og" AND NOT optimized AND name MATCHES
                                      "^(emulated/)?(${light})/|^kernel/|^emulated/kernel/(norms|small)$|^structure/umbrella$")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
    set(start lockstep_test_start_unoptimised)
  endif()
  if(name MATCHES "^kernel/" AND NOT test_SETS AND lockstep_test_here)
    target_compile_options(${target} PRIVATE -march=native)
  elseif(TARGET ${start} AND file MATCHES "\\.cpp$")
    target_precompile_headers(${target} REUSE_FROM ${start})
  endif()
  set(target ${target} PARENT_SCOPE)
endfunction()

# Makes ctest run the program `target` with the arguments that follow the entry's name.
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
  # Tests of several cores start first, one after another. Later, they would wait until no others are left, because ctest
  # gives a core that becomes free to the next test of one core.
  if(test_PROCESSORS GREATER 1)
    set_property(TEST ${entry} PROPERTY COST 1000)
  endif()
endfunction()

# lockstep_compile_fail(folder/name): see compile_fail/check.cmake.
function(lockstep_compile_fail name)
  lockstep_compile_fail_test(${name} -D "SOURCE=${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/${name}.cpp")
  set_property(DIRECTORY APPEND PROPERTY LOCKSTEP_COMPILE_FAIL ${name})
  set_tests_properties(compile_fail/${name} PROPERTIES FIXTURES_REQUIRED "compile_fail;compile_fail_cases")
endfunction()
function(lockstep_compile_fail_controls)
  get_property(names DIRECTORY PROPERTY LOCKSTEP_COMPILE_FAIL)
  list(JOIN names "," names)
  lockstep_compile_fail_test(controls -D "CONTROLS=${names}")
  lockstep_compile_fail_test(cases -D "CASES=${names}")
  set_tests_properties(compile_fail/controls compile_fail/cases PROPERTIES FIXTURES_REQUIRED compile_fail COST 92)
  set_tests_properties(compile_fail/cases PROPERTIES FIXTURES_SETUP compile_fail_cases COST 199)
endfunction()
cmake_language(DEFER CALL lockstep_compile_fail_controls)
function(lockstep_compile_fail_test name)
  add_test(
    NAME compile_fail/${name}
    COMMAND
      "${CMAKE_COMMAND}" ${ARGN} -D
      "COMPILE=${LOCKSTEP_USER_COMPILER};-std=c++20;-DLOCKSTEP_COMPILED;-Wfatal-errors;-I;${PROJECT_SOURCE_DIR}/include" -D
      "WORK=${CMAKE_CURRENT_BINARY_DIR}/compile_fail" -P "${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/check.cmake")
  set_tests_properties(compile_fail/${name} PROPERTIES TIMEOUT 300)
endfunction()
lockstep_compile_fail_test(includes)
set_tests_properties(compile_fail/includes PROPERTIES FIXTURES_SETUP compile_fail COST 200)

# lockstep_package_test(way): see package/try.cmake.
function(lockstep_package_test way)
  set(components ${lockstep_components})
  list(REMOVE_ITEM components cuda cudnn nccl) # these would require a second language in the user's project
  list(APPEND components compiled)
  if(TARGET lockstep::compiled_app AND way STREQUAL "find_package") # a subproject would compile it again
    list(APPEND components compiled_app)
  endif()
  string(REPLACE "fetch_content" "add_subdirectory" folder "package_${way}")
  add_test(
    NAME package/${way}
    COMMAND
      "${CMAKE_COMMAND}" -D WAY=${way} -D "LOCKSTEP=${PROJECT_SOURCE_DIR}" -D "BUILD=${PROJECT_BINARY_DIR}" -D
      "WORK=${CMAKE_CURRENT_BINARY_DIR}/${folder}" -D "CXX=${LOCKSTEP_USER_COMPILER}" -D "COMPONENTS=${components}" -D
      "TORCH=${LOCKSTEP_TORCH_INCLUDE}/.." -D "FLAGS=${lockstep_user_flags}" -P
      "${CMAKE_CURRENT_SOURCE_DIR}/package/try.cmake")
  set_tests_properties(package/${way} PROPERTIES TIMEOUT 300)
  # ctest starts this one first, because another depends on it. When it ends, its two processors are free for the tests of
  # two; otherwise tests of one would take them, one after another.
  if(way STREQUAL "add_subdirectory")
    set_tests_properties(package/${way} PROPERTIES PROCESSORS 2)
  endif()
  if(way STREQUAL "fetch_content")
    set_tests_properties(package/${way} PROPERTIES DEPENDS package/add_subdirectory)
  endif()
endfunction()

# lockstep_cuda_package_test(entry [flag…]): see package/cuda/try.cmake.
function(lockstep_cuda_package_test entry)
  string(MAKE_C_IDENTIFIER "${entry}" folder)
  add_test(
    NAME ${entry}
    COMMAND
      "${CMAKE_COMMAND}" -D "LOCKSTEP=${PROJECT_SOURCE_DIR}" -D "BUILD=${PROJECT_BINARY_DIR}" -D
      "WORK=${CMAKE_CURRENT_BINARY_DIR}/${folder}" -D "CXX=${LOCKSTEP_USER_COMPILER}" -D "NVCC=${CMAKE_CUDA_COMPILER}" -D
      "LIBRARIES=${CMAKE_INSTALL_LIBDIR}" ${ARGN} -P "${CMAKE_CURRENT_SOURCE_DIR}/package/cuda/try.cmake")
  set_tests_properties(${entry} PROPERTIES TIMEOUT 300)
endfunction()
