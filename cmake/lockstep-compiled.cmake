# SPDX-License-Identifier: Apache-2.0
# lockstep::compiled and lockstep::compiled_app (and lockstep::compiled_cuda, in a file of its own): the linked way to
# use the library. They define LOCKSTEP_COMPILED, with which headers only declare what these static libraries contain. A
# program links one of them instead of lockstep::lockstep or lockstep::app; a program that uses both ways does not link.
#
# In a checkout this file defines the libraries, in an installed package it finds them. LOCKSTEP_COMPILED_WITH lists the
# compute libraries that they are compiled with if these are found. Programs that link them are compiled with them too.
if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/lockstep-compiled-targets.cmake")
  if(TARGET lockstep::compiled)
    return()
  endif()
  # Finds the dependencies with which the libraries were compiled.
  foreach(component blas onednn app)
    include("${CMAKE_CURRENT_LIST_DIR}/lockstep-${component}.cmake")
  endforeach()
  # This file may be in share/lockstep, as in vcpkg, and a library's name may have a postfix.
  set(lockstep_above "${CMAKE_CURRENT_LIST_DIR}/../..")
  file(GLOB lockstep_built "${lockstep_above}/*lockstep_compiled[^_]*" "${lockstep_above}/lib/*lockstep_compiled[^_]*")
  if(lockstep_built)
    include("${CMAKE_CURRENT_LIST_DIR}/lockstep-compiled-targets.cmake")
  else()
    message(STATUS "Lockstep: the libraries were not built before Lockstep was installed (LOCKSTEP_BUILD_COMPILED=ON); "
                   "there is no target lockstep::compiled")
  endif()
  file(GLOB lockstep_built "${lockstep_above}/*lockstep_compiled_app*" "${lockstep_above}/lib/*lockstep_compiled_app*")
  if(lockstep_built AND TARGET lockstep::compiled AND TARGET lockstep::app)
    include("${CMAKE_CURRENT_LIST_DIR}/lockstep-compiled-app-targets.cmake")
  endif()
  return()
endif()

option(LOCKSTEP_BUILD_COMPILED "Build lockstep::compiled even if no target of this project links it" ${PROJECT_IS_TOP_LEVEL})
set(LOCKSTEP_COMPILED_WITH blas onednn cudnn CACHE STRING
    "Compute libraries of lockstep::compiled (blas, onednn) and of lockstep::compiled_cuda (cudnn): any of them or none")
option(LOCKSTEP_COMPILED_FOR_ONE_SET "Compile lockstep::compiled for one instruction set, as tests do" OFF)
mark_as_advanced(LOCKSTEP_COMPILED_FOR_ONE_SET)
if(PROJECT_IS_TOP_LEVEL)
  set(lockstep_compiled_options -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion)
else() # flags of the project that contains Lockstep, such as -Weverything -Werror -Ofast, are for its own files
  set(lockstep_compiled_options -w -fno-fast-math)
endif()

# lockstep_add_compiled(name LINK targets… SOURCES files…): adds a library that is compiled from these sources.
function(lockstep_add_compiled name)
  cmake_parse_arguments(PARSE_ARGV 1 compiled "" "" "LINK;SOURCES")
  add_library(${name} STATIC ${compiled_SOURCES})
  target_compile_definitions(${name} PUBLIC LOCKSTEP_COMPILED)
  if(LOCKSTEP_COMPILED_FOR_ONE_SET)
    target_compile_definitions(${name} PUBLIC LOCKSTEP_ONE_INSTRUCTION_SET)
  endif()
  target_link_libraries(${name} PUBLIC ${compiled_LINK})
  target_link_options(${name} INTERFACE LINKER:--as-needed) # programs without convolutions do not load oneDNN
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${lockstep_compiled_options}>)
  # Each function has a section, so that -Wl,--gc-sections leaves out those that a program does not use.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffunction-sections$<SEMICOLON>-fdata-sections>)
  if(LOCKSTEP_COMPILED_FOR_ONE_SET AND CMAKE_CXX_FLAGS MATCHES "-Og") # tests need fast kernels and checksums
    set(unoptimised ${compiled_SOURCES})
    list(FILTER unoptimised EXCLUDE REGEX "/(core|kernel|nn|train_files)[a-z_]*[.]cpp$")
    set_source_files_properties(${unoptimised} PROPERTIES COMPILE_OPTIONS -O0)
  endif()
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                                           VISIBILITY_INLINES_HIDDEN ON)
  if(NOT LOCKSTEP_BUILD_COMPILED)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  if(NOT PROJECT_IS_TOP_LEVEL)
    set_target_properties(${name} PROPERTIES SYSTEM ON CXX_CLANG_TIDY "")
  endif()
endfunction()

file(GLOB lockstep_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/lockstep/compiled/*.cpp")
set(lockstep_app_sources ${lockstep_sources})
list(FILTER lockstep_sources EXCLUDE REGEX "/app[a-z_]*[.]cpp$")
list(FILTER lockstep_app_sources INCLUDE REGEX "/app[a-z_]*[.]cpp$")
set(lockstep_compiled_link lockstep::lockstep)
foreach(component IN LISTS LOCKSTEP_COMPILED_WITH)
  if(TARGET lockstep::${component} AND NOT component STREQUAL "cudnn")
    list(APPEND lockstep_compiled_link lockstep::${component})
  endif()
endforeach()

lockstep_add_compiled(lockstep_compiled LINK ${lockstep_compiled_link} SOURCES ${lockstep_sources})
add_library(lockstep::compiled ALIAS lockstep_compiled)
if("lockstep::onednn" IN_LIST lockstep_compiled_link) # for the name of the inline namespace in files that nvcc compiles
  target_compile_definitions(lockstep_compiled PUBLIC $<$<COMPILE_LANGUAGE:CUDA>:LOCKSTEP_ONEDNN>)
endif()
set_target_properties(lockstep_compiled PROPERTIES EXPORT_NAME compiled)
if(TARGET lockstep::app)
  lockstep_add_compiled(lockstep_compiled_app LINK lockstep_compiled lockstep::app SOURCES ${lockstep_app_sources})
  add_library(lockstep::compiled_app ALIAS lockstep_compiled_app)
  set_target_properties(lockstep_compiled_app PROPERTIES EXPORT_NAME compiled_app)
endif()
