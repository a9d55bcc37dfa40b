// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// Which shards of every global batch this process takes: [first, first + count) of `all`. A shard is one device's
/// part; under parallel::Reproducible, one of several.
struct Split {
  int first = 0;
  int count = 1;
  int all = 1;

  friend bool operator==(Split const&, Split const&) = default;
};

/// What becomes of samples that do not fill a global batch.
enum class Tail {
  exact,  ///< each sample once; shards may get fewer rows than others, or none (the default)
  pad,    ///< the order starts again until every shard has equally many rows
  drop,   ///< an incomplete global batch is left out of the epoch
};

/// How the positions [0, samples) of an epoch's order fall into micro-steps and shards: micro-step s takes the
/// positions [s * batch_size * shards, (s + 1) * batch_size * shards), and shard r of it those that leave the remainder
/// r when divided by the number of shards. So the global sequence does not depend on the number of shards of equal
/// total batch. An epoch that is resumed counts its micro-steps from the position `first` on.
class EpochLayout {
 public:
  EpochLayout() = default;
  EpochLayout(Index samples, Index batch_size, int shards, Tail tail, Index first = 0) noexcept
      : batch_(batch_size),
        shards_(shards),
        first_(first),
        end_(first + end(std::max<Index>(samples - first, 0), batch_size * shards, shards, tail)) {}

  /// Micro-steps in an epoch, alike on all ranks.
  [[nodiscard]] Index steps() const noexcept { return (end_ - first_ + global_batch() - 1) / global_batch(); }
  /// The rows of a shard in a micro-step; 0 where the epoch's rest is shorter than the number of shards.
  [[nodiscard]] Index rows(Index step, int shard) const noexcept {
    return (end(step) - begin(step) - shard + shards_ - 1) / shards_;
  }
  /// The position of a row; at or past the number of samples where Tail::pad starts the order again.
  [[nodiscard]] Index position(Index step, int shard, Index row) const noexcept {
    return begin(step) + shard + row * shards_;
  }
  /// The positions [begin, end) of a micro-step.
  [[nodiscard]] Index begin(Index step) const noexcept { return first_ + step * global_batch(); }
  [[nodiscard]] Index end(Index step) const noexcept { return std::min(end_, begin(step) + global_batch()); }

 private:
  [[nodiscard]] Index global_batch() const noexcept { return batch_ * shards_; }
  static Index end(Index samples, Index global, Index shards, Tail tail) noexcept {
    switch (tail) {
      case Tail::exact:
        return samples;
      case Tail::pad:
        return (samples + shards - 1) / shards * shards;
      case Tail::drop:
        return samples / global * global;
    }
    return samples;
  }

  Index batch_ = 1;
  Index shards_ = 1;
  Index first_ = 0, end_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
