// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>

#include <lockstep/data/loader/data_loader_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {
namespace detail {

inline constexpr OptionWord failure_words[] = {
    {"raise", OnFailure::raise}, {"skip", OnFailure::skip}, {"substitute", OnFailure::substitute}};

}  // namespace detail

LOCKSTEP_COLD_INLINE OptionList describe(DataLoaderOptions& options) {
  constexpr double max_rows = std::numeric_limits<std::int32_t>::max(), max_threads = 1024, max_slots = 1024;
  constexpr auto heading = "Data";
  return {
      "DataLoader",
      {
          {.name = "batch_size",
           .variable = options.batch_size,
           .range = {.least = 1, .most = max_rows, .rule = "within [1, 2^31)"}},
          {.name = "workers",
           .variable = options.workers,
           .range = {.least = 0, .most = max_threads, .rule = "within [0, 1024]; with 0 the caller makes the batches"},
           .flag = {.names = "--num-workers",
                    .heading = heading,
                    .help = "Data loader threads per rank; 0: the training thread loads batches",
                    .range = {{0, 256}},
                    .compared = Compared::no,
                    .synonyms = "workers n-workers dataloader-num-workers dataloader-workers loader-workers "
                                "num-data-workers data-workers"}},
          {.name = "prefetch",
           .variable = options.prefetch,
           .range = {.least = 0, .most = max_slots, .rule = "within [0, 1024]"},
           .flag = {.names = "--prefetch",
                    .heading = heading,
                    .help = "Batches that each rank loads in advance",
                    .compared = Compared::no,
                    .synonyms = "prefetch-batches"}},
          {.name = "max_workers",
           .variable = options.max_workers,
           .range = {.least = 0, .most = max_threads, .rule = "within [0, 1024]"}},
          {.name = "budget_bytes",
           .variable = options.budget_bytes,
           .range = {.least = 0, .rule = "at least 0; 0 means no limit"}},
          {.name = "deadline_seconds",
           .variable = options.deadline_seconds,
           .range = {.least = 0, .rule = "at least 0; 0 means no deadline"}},
          {.name = "on_failure",
           .variable = {options.on_failure, detail::failure_words},
           .flag = {.names = "--on-failure",
                    .heading = heading,
                    .help = "Treatment of a sample that cannot be read: an error, a batch without it, or another in "
                            "its place"}},
          {.name = "seed",
           .variable = options.seed,
           .flag = {.names = "--seed",
                    .heading = heading,
                    .help = "Seed of the sample order, augmentation, initial parameters and dropout",
                    .range = {{0}},
                    .synonyms = "random-seed random-state manual-seed"}},
      }};
}

}}}  // namespace lockstep::data
