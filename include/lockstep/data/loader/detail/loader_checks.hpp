// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <string>
#include <thread>

#include <lockstep/core/index.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/loader/loader_state.hpp>
#include <lockstep/data/split.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// @throws ConfigError "DataLoader: WHAT is VALUE; it must be RULE"
[[noreturn, gnu::cold]] void refuse(char const* what, Index value, std::string const& rule);
/// @throws ConfigError in another process than `process`, or if the split is invalid
[[gnu::cold]] void expect_split(::pid_t process, Split const& split);
/// @throws ConfigError in another process than `process`, or if another thread than `consumer` called `start`
void expect_consumer(::pid_t process, std::thread::id consumer);
/// @throws ConfigError if the size of the dataset is not the size when the loader was made
[[gnu::cold]] void expect_size(Index now, Index when_made);
/// @throws ConfigError if a sampler's global batch is no multiple of the loader's
[[gnu::cold]] void expect_divisible(Index global_batch, Index batch_size, int all_shards);
/// Checks the numbers of a BatchOrder.   @throws ConfigError
[[gnu::cold]] void expect_batches(Index batch_size, Index size, Index batches, Index max_rows);
/// @throws ConfigError if a stream cannot have one of the options
[[gnu::cold]] void expect_stream_options(DataLoaderOptions const& options);
/// @throws DataError if a state belongs to other data or another order
[[gnu::cold]] void expect_state(LoaderState const& state, Index samples, std::string const& fingerprint);
/// @throws DataError for an index that the dataset does not have
[[noreturn, gnu::cold]] void refuse_index(Index index, Index epoch, Index position, Index samples);

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/loader/detail/loader_checks.ipp>
#endif
