// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/detail/convolution_pass.hpp>
#include <lockstep/kernel/detail/gemm_dispatch.hpp>
#include <lockstep/kernel/detail/patches.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// A pass of a convolution over some samples as products of patches with the weight, in plain C++: what runs without a
/// library, in double, and the oracle of what runs with one.
template <class T>
class PortableConvolution {
 public:
  PortableConvolution(ConvolutionShape const& shape, ConvolutionPass pass, Index) : s_(shape), pass_(pass) {}

  /// Elements of the weight in this pass's own order: [outputs, taps, inputs].
  [[nodiscard]] Index weight_elements() const noexcept { return s_.weight_size(); }
  /// Elements that a tile needs to itself.
  [[nodiscard]] Index tile_elements() const noexcept { return block_places() * depth(); }

  void pack(ThreadPool& pool, T const* weight, T* packed) const {
    auto const taps = s_.taps(), inputs = s_.inputs;
    pool.for_ranges(s_.outputs, rows_per_task(), [=](Index begin, Index end) {
      for (Index row = begin * inputs; row < end * inputs; ++row)
        for (Index tap = 0; tap < taps; ++tap)
          packed[(row / inputs * taps + tap) * inputs + row % inputs] = weight[row * taps + tap];
    });
  }
  void unpack(ThreadPool& pool, T const* packed, T* weight, Write write) const {
    auto const taps = s_.taps(), inputs = s_.inputs;
    pool.for_ranges(s_.outputs, rows_per_task(), [=](Index begin, Index end) {
      for (Index row = begin * inputs; row < end * inputs; ++row)
        for (Index tap = 0; tap < taps; ++tap) {
          auto const value = packed[(row / inputs * taps + tap) * inputs + row % inputs];
          auto& to = weight[row * taps + tap];
          to = write == Write::add ? to + value : value;
        }
    });
  }

  /// `rows` samples on the calling thread. What is read and written depends on the pass:
  /// forward: x, packed weight, bias or null -> y; data: dy, packed weight -> dx; weight: x, dy -> packed dweight.
  void run(Index, Index rows, T const* from, T const* with, T const* bias, T* to, T* tile) const {
    if (pass_ == ConvolutionPass::weight) std::fill_n(to, weight_elements(), T{0});
    for (Index row = 0; row < rows; ++row) {
      switch (pass_) {
        case ConvolutionPass::forward:
          forward(from + row * s_.input_size(), with, bias, to + row * s_.output_size(), tile);
          break;
        case ConvolutionPass::data:
          data(from + row * s_.output_size(), with, to + row * s_.input_size(), tile);
          break;
        case ConvolutionPass::weight:
          weight(from + row * s_.input_size(), with + row * s_.output_size(), to, tile);
          break;
      }
    }
  }

 private:
  /// Elements of a patch: the depth of the product.
  [[nodiscard]] Index depth() const noexcept { return s_.taps() * s_.inputs; }
  /// Output places whose patches are multiplied at once: as many as the second-level cache holds, but enough to be
  /// worth packing the weight for.
  [[nodiscard]] Index block_places() const noexcept {
    return std::min(s_.output_places(), std::max<Index>(64, (Index{1} << 17) / std::max<Index>(1, depth())));
  }
  [[nodiscard]] Index rows_per_task() const noexcept { return std::max<Index>(1, 16384 / std::max<Index>(1, depth())); }

  template <class F>
  void for_blocks(F&& f) const {
    for (Index first = 0; first < s_.output_places(); first += block_places())
      f(first, std::min(block_places(), s_.output_places() - first));
  }

  void forward(T const* x, T const* packed, T const* bias, T* y, T* patches) const {
    for_blocks([&](Index first, Index count) {
      gather_patches(s_, x, first, count, patches);
      multiply_on_this_thread<T>({.m = count,
                                  .n = s_.outputs,
                                  .k = depth(),
                                  .alpha = 1,
                                  .a = {patches, depth(), 1},
                                  .b = {packed, 1, depth()},
                                  .beta = 0,
                                  .c = y + first * s_.outputs,
                                  .c_row = s_.outputs,
                                  .bias = bias});
    });
  }
  void data(T const* dy, T const* packed, T* dx, T* patches) const {
    std::fill_n(dx, s_.input_size(), T{0});
    for_blocks([&](Index first, Index count) {
      multiply_on_this_thread<T>({.m = count,
                                  .n = depth(),
                                  .k = s_.outputs,
                                  .alpha = 1,
                                  .a = {dy + first * s_.outputs, s_.outputs, 1},
                                  .b = {packed, depth(), 1},
                                  .beta = 0,
                                  .c = patches,
                                  .c_row = depth(),
                                  .bias = nullptr});
      scatter_patches(s_, patches, first, count, dx);
    });
  }
  void weight(T const* x, T const* dy, T* packed, T* patches) const {
    for_blocks([&](Index first, Index count) {
      gather_patches(s_, x, first, count, patches);
      multiply_on_this_thread<T>({.m = s_.outputs,
                                  .n = depth(),
                                  .k = count,
                                  .alpha = 1,
                                  .a = {dy + first * s_.outputs, 1, s_.outputs},
                                  .b = {patches, depth(), 1},
                                  .beta = 1,
                                  .c = packed,
                                  .c_row = depth(),
                                  .bias = nullptr});
    });
  }

  ConvolutionShape s_;
  ConvolutionPass pass_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
