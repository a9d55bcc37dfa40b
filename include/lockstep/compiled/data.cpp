// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/classes/class_balance.ipp>
#include <lockstep/data/classes/class_names.ipp>
#include <lockstep/data/collate/pad_collate.ipp>
#include <lockstep/data/detail/data_file.ipp>
#include <lockstep/data/detail/samples_by_class.ipp>
#include <lockstep/data/detail/zero_runs.ipp>
#include <lockstep/data/loader/data_loader_options.ipp>
#include <lockstep/data/loader/detail/loader_checks.ipp>
#include <lockstep/data/loader/detail/loader_scheduler.ipp>
#include <lockstep/data/loader/detail/loader_slot.ipp>
#include <lockstep/data/loader/loader_state.ipp>
#include <lockstep/data/loader/loader_stats.ipp>
#include <lockstep/data/text/detail/token_file.ipp>
#include <lockstep/data/text/detail/word_table.ipp>
#include <lockstep/data/text/token_cache.ipp>
#include <lockstep/data/text/vocabulary.ipp>
