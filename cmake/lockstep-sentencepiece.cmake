# SPDX-License-Identifier: Apache-2.0
# lockstep::sentencepiece: dependencies of `lockstep/interop/sentencepiece.hpp`.
find_path(LOCKSTEP_SENTENCEPIECE_INCLUDE sentencepiece_trainer.h)
find_library(LOCKSTEP_SENTENCEPIECE NAMES sentencepiece)
find_library(LOCKSTEP_SENTENCEPIECE_TRAIN NAMES sentencepiece_train)
mark_as_advanced(LOCKSTEP_SENTENCEPIECE_INCLUDE LOCKSTEP_SENTENCEPIECE LOCKSTEP_SENTENCEPIECE_TRAIN)
if(NOT LOCKSTEP_SENTENCEPIECE_INCLUDE OR NOT LOCKSTEP_SENTENCEPIECE OR NOT LOCKSTEP_SENTENCEPIECE_TRAIN)
  message(STATUS "Lockstep: no sentencepiece found (Debian: libsentencepiece-dev); "
                 "there is no target lockstep::sentencepiece")
elseif(NOT TARGET lockstep::sentencepiece)
  add_library(lockstep::sentencepiece INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(lockstep::sentencepiece INTERFACE LOCKSTEP_SENTENCEPIECE)
  target_include_directories(lockstep::sentencepiece SYSTEM INTERFACE "${LOCKSTEP_SENTENCEPIECE_INCLUDE}")
  target_link_libraries(lockstep::sentencepiece INTERFACE lockstep::lockstep "${LOCKSTEP_SENTENCEPIECE}"
                                                          "${LOCKSTEP_SENTENCEPIECE_TRAIN}")
endif()
