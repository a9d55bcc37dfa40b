// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/philox_bits.hpp>
#include <lockstep/kernel/detail/token_runs.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/elementwise/square_roots.hpp>
#include <lockstep/kernel/random/detail/normal_quantile.hpp>
#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Numbers of the standard normal distribution. Like dropout's masks, they are a pure function of a key, the sample's
/// position in the epoch and the element's number within the sample. Element e is the quantile at word e % 4 of the
/// block Philox(key)(position, e / 4).
template <class Space>
struct StandardNormal : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct StandardNormal<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Fills `to`: channel c of a sample's token t is its element t * width + c; padding becomes zero. All numbers are
  /// floats, also if Scalar is double. Only the key of the mask is used.
  /// @shape to [layout.slots, width], overwritten
  /// @determinism bitwise, for any number of threads, and for any position of the sample in any batch
  template <class Scalar>
  static void fill(Stream stream, DropoutMask mask, SequenceLayout<HostSpace> layout, Matrix<Scalar> to) {
    auto const width = to.extent[1];
    detail::for_token_runs(
        stream.pool(), layout,
        [=, key = mask.resolved().key](Index row, Index t, Index at, Index tokens) {
          fill_sample(key, static_cast<std::uint64_t>(layout.positions.data[row]),
                      static_cast<std::uint64_t>(t * width), tokens * width, to.data + at * width);
        },
        [=](Index at, Index padding) { std::fill_n(to.data + at * width, padding * width, Scalar{0}); });
  }

 private:
  /// Fills `count` elements of one sample, from element `first` on.
  template <class Scalar>
  static void fill_sample(std::uint64_t key, std::uint64_t position, std::uint64_t first, Index count, Scalar* to) {
    constexpr Index words_per_block = 4, maximum = 64 * words_per_block;
    with_best_instructions([=, set = best_instruction_set()](auto vectors) {
      std::uint16_t bits[2 * maximum];
      std::uint32_t words[maximum];
      float tails[maximum];
      for (Index done = 0; done < count;) {
        auto const element = first + static_cast<std::uint64_t>(done);
        auto const skip = static_cast<Index>(element % words_per_block);
        Index const here = std::min(count - done, maximum - skip);
        detail::philox_bits(set, key, position, element / words_per_block,
                            (skip + here + words_per_block - 1) / words_per_block, bits);
        std::memcpy(words, bits + 2 * skip, static_cast<std::size_t>(here) * sizeof *words);
        for (Index i = 0; i < here; ++i) tails[i] = detail::squared_tail(words[i]);
        square_roots(vectors, tails, here);
        for (Index i = 0; i < here; ++i)
          to[done + i] = static_cast<Scalar>(detail::normal_quantile(words[i], tails[i]));
        done += here;
      }
    });
  }
};

}}}  // namespace lockstep::kernel
