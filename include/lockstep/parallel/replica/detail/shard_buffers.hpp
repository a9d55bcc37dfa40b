// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <lockstep/core/tree_sum.hpp>
#include <lockstep/kernel/copy/copy.hpp>
#include <lockstep/parallel/detail/arena.hpp>
#include <lockstep/parallel/detail/device.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Buffers of every shard of a replica. The replica computes with one shard's buffers at a time, at a fixed address.
/// With a single shard, only this address is used.
template <class Space>
class ShardBuffers {
 public:
  ShardBuffers(int shards, Index size) : shards_(shards), size_(size), all_(shards == 1 ? 0 : shards * size) {}

  /// Makes a shard's buffers current.
  void select(Device<Space> const& device, int shard, float* current) {
    if (shard == shard_ || size_ == 0) return;
    kernel::Copy<Space>::template run<float>(device.stream(), current, of(shard_), size_);
    shard_ = shard;
    kernel::Copy<Space>::template run<float>(device.stream(), of(shard), current, size_);
  }
  /// Sets the buffers of all shards.
  void set(Device<Space> const& device, std::span<float const> buffers) {
    for (int shard = 0; shards_ > 1 && shard < shards_; ++shard) device.write(buffers, of(shard));
  }
  /// Returns the mean over several shards, between passes. Invalidates all shards' buffers until they are set.
  [[nodiscard]] std::span<float> mean(Device<Space> const& device) {
    auto const all = all_.on_host(device);
    std::vector<float*> each;
    each.reserve(static_cast<std::size_t>(shards_));
    for (int shard = 0; shard < shards_; ++shard) each.push_back(all.data() + shard * size_);
    tree_sum_into_first<float>({each.data(), each.size()}, 0, size_);
    auto const mean = all.first(static_cast<std::size_t>(size_));
    for (float& sum : mean) sum /= static_cast<float>(shards_);
    return mean;
  }

 private:
  [[nodiscard]] float* of(int shard) const noexcept { return all_.data() + shard * size_; }

  int shards_;
  Index size_;
  Arena<Space> all_;  // the current shard's part is outdated
  int shard_ = 0;
};

}}}  // namespace lockstep::parallel::detail
