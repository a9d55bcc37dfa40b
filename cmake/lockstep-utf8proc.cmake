# SPDX-License-Identifier: Apache-2.0
# lockstep::utf8proc: Unicode tables, a dependency of `lockstep/data/text/word_piece_tokenizer.hpp` and
# `byte_pair_tokenizer.hpp`.
find_path(LOCKSTEP_UTF8PROC_INCLUDE utf8proc.h)
find_library(LOCKSTEP_UTF8PROC NAMES utf8proc)
mark_as_advanced(LOCKSTEP_UTF8PROC_INCLUDE LOCKSTEP_UTF8PROC)
if(NOT LOCKSTEP_UTF8PROC_INCLUDE OR NOT LOCKSTEP_UTF8PROC)
  message(STATUS "Lockstep: no utf8proc found (Debian: libutf8proc-dev); there is no target lockstep::utf8proc")
elseif(NOT TARGET lockstep::utf8proc)
  add_library(lockstep::utf8proc INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(lockstep::utf8proc INTERFACE LOCKSTEP_UTF8PROC)
  target_include_directories(lockstep::utf8proc SYSTEM INTERFACE "${LOCKSTEP_UTF8PROC_INCLUDE}")
  target_link_libraries(lockstep::utf8proc INTERFACE lockstep::lockstep "${LOCKSTEP_UTF8PROC}")
endif()
