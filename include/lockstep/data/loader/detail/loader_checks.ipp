// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/error.hpp>
#include <lockstep/data/loader/detail/loader_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

inline void expect_own_process(::pid_t process) {
  if (::getpid() != process)
    throw ConfigError("DataLoader: was made before a fork by process " + std::to_string(process) +
                      ", whose workers process " + std::to_string(::getpid()) +
                      " does not have; make loaders after the fork");
}

LOCKSTEP_INLINE void refuse(char const* what, Index value, std::string const& rule) {
  throw ConfigError(std::string("DataLoader: ") + what + " is " + std::to_string(value) + "; it must be " + rule);
}

LOCKSTEP_INLINE void expect_split(::pid_t process, Split const& split) {
  expect_own_process(process);
  if (split.all < 1) refuse("split.all", split.all, "at least 1");
  if (split.count < 1) refuse("split.count", split.count, "at least 1");
  if (split.first < 0 || split.first > split.all - split.count)
    refuse("split.first", split.first, "within [0, all - count]");
}

LOCKSTEP_INLINE void expect_consumer(::pid_t process, std::thread::id consumer) {
  expect_own_process(process);
  if (consumer != std::this_thread::get_id() && consumer != std::thread::id())
    throw ConfigError(
        "DataLoader: one thread called next and another called start, for instance because ranks that are threads "
        "share a loader; make one loader per rank inside launch::run, and call start and next in the same thread");
}

LOCKSTEP_INLINE void expect_size(Index now, Index when_made) {
  if (now != when_made)
    refuse(
        "the dataset's size()", now,
        std::to_string(when_made) + ", as when the loader was made: make another loader of a dataset that has changed");
}

LOCKSTEP_INLINE void expect_divisible(Index global_batch, Index batch_size, int all_shards) {
  Index const samples = batch_size * all_shards;
  if (global_batch % samples != 0)
    refuse("the sampler's global_batch", global_batch,
           std::to_string(samples) + " or a multiple of it, which is batch_size times the " +
               std::to_string(all_shards) +
               " ranks, devices or shards (split.all), so that each batch has samples that belong together");
}

LOCKSTEP_INLINE void expect_batches(Index batch_size, Index size, Index batches, Index max_rows) {
  if (batch_size != 1)
    refuse("batch_size", batch_size, "left at 1 if the sampler chooses how many samples a batch has");
  if (size != batches * max_rows)
    throw ConfigError("DataLoader: the sampler's order has size() " + std::to_string(size) +
                      "; it must be batches() * max_rows(), " + std::to_string(batches) + " * " +
                      std::to_string(max_rows));
}

LOCKSTEP_INLINE void expect_stream_options(DataLoaderOptions const& options) {
  if (options.tail != Tail::exact || options.on_failure == OnFailure::substitute)
    throw ConfigError(
        "DataLoader: a stream has no other samples for padding or replacement, and no number of "
        "samples of which some could be dropped; leave tail at exact and on_failure at raise or skip");
}

LOCKSTEP_INLINE void expect_state(LoaderState const& state, Index samples, std::string const& fingerprint) {
  if (state.fingerprint != fingerprint || state.samples != samples)
    throw DataError("DataLoader: the state is of " + std::to_string(state.samples) + " samples with fingerprint " +
                    state.fingerprint + ", and the dataset and its order have " + std::to_string(samples) +
                    " with fingerprint " + fingerprint +
                    "; resume with the data, sampler and seed of the earlier run, or start from the beginning");
}

LOCKSTEP_INLINE void refuse_index(Index index, Index epoch, Index position, Index samples) {
  throw DataError("DataLoader: the sampler's order has sample " + std::to_string(index) + " at position " +
                  std::to_string(position) + " of epoch " + std::to_string(epoch) + ", and the dataset " +
                  std::to_string(samples) + "; they are numbered from 0");
}

}}}  // namespace lockstep::data::detail
