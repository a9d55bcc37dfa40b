// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/base64.ipp>
#include <lockstep/core/checksum.ipp>
#include <lockstep/core/free_memory.ipp>
#include <lockstep/core/json.ipp>
#include <lockstep/core/json_value.ipp>
#include <lockstep/core/json_writer.ipp>
#include <lockstep/core/progress.ipp>
#include <lockstep/core/segment_plan.ipp>
#include <lockstep/core/sha256.ipp>
#include <lockstep/core/thread_pool.ipp>
#include <lockstep/memory/free_list.ipp>

#if !defined(LOCKSTEP_COMPILED)
#error "Lockstep: compile the library and the programs that are linked with it with -DLOCKSTEP_COMPILED"
#endif

char lockstep_is_linked_in_one_file_and_header_only_in_another;
