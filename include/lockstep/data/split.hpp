// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// The shards of every global batch that this process takes: [first, first + count) of `all`. By default a device has
/// one shard; under parallel::Reproducible, one or more.
struct Split {
  int first = 0;  ///< number of the first shard
  int count = 1;  ///< shards of this process
  int all = 1;    ///< shards of all processes

  /// Compares all members.
  friend bool operator==(Split const&, Split const&) = default;
};

/// Handling of samples that do not fill a global batch.
enum class Tail {
  exact,  ///< each sample once; shards may get fewer rows than others, or none (the default)
  pad,    ///< the order starts again until all shards have the same number of rows
  drop,   ///< an incomplete global batch is left out of the epoch
};

/// Divides the positions [0, samples) of an epoch's order into micro-steps and shards. Micro-step s takes the positions
/// [s * batch_size * shards, (s + 1) * batch_size * shards). Shard r takes those with remainder r modulo `shards`.
/// Therefore the global sequence does not depend on the number of shards if the total batch is equal. A resumed epoch
/// counts its micro-steps from the position `first`.
class EpochLayout {
 public:
  EpochLayout() = default;
  /// @param samples positions in the epoch's order
  /// @param batch_size rows of a shard in a micro-step
  /// @param shards of all processes
  EpochLayout(Index samples, Index batch_size, int shards, Tail tail, Index first = 0) noexcept
      : batch_(batch_size),
        shards_(shards),
        first_(first),
        end_(first + end(std::max<Index>(samples - first, 0), batch_size * shards, shards, tail)) {}

  /// Returns the number of micro-steps in an epoch, equal on all ranks.
  [[nodiscard]] Index steps() const noexcept { return (end_ - first_ + global_batch() - 1) / global_batch(); }
  /// Returns the rows of a shard in a micro-step; 0 if the epoch's rest has fewer samples than there are shards.
  [[nodiscard]] Index rows(Index step, int shard) const noexcept {
    return (end(step) - begin(step) - shard + shards_ - 1) / shards_;
  }
  /// Returns the position of a row. If Tail::pad starts the order again, it is at or above the number of samples.
  [[nodiscard]] Index position(Index step, int shard, Index row) const noexcept {
    return begin(step) + shard + row * shards_;
  }
  /// Return the first position of a micro-step, and the position after its last.
  [[nodiscard]] Index begin(Index step) const noexcept { return first_ + step * global_batch(); }
  /// Returns the position after the last of a micro-step.
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

}}}  // namespace lockstep::data
