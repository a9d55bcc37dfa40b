// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/detail/convolution_depthwise.hpp>
#include <lockstep/kernel/detail/convolution_pass.hpp>
#include <lockstep/kernel/detail/gemm_dispatch.hpp>
#include <lockstep/kernel/detail/patches.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// A pass of a convolution over some samples as products of patches with the weight, one for each group, in plain C++:
/// what runs without a library, in double, and the oracle of what runs with one. Where each channel is a group by
/// itself there are no products, and no patches either.
template <class T>
class PortableConvolution {
 public:
  PortableConvolution(ConvolutionShape const& shape, ConvolutionPass pass, Index)
      : s_(shape), pass_(pass), by_channel_(shape) {}

  /// Elements of the weight in this pass's own order: [outputs, taps, inputs / groups], or [taps, channels] of channels
  /// by themselves.
  [[nodiscard]] Index weight_elements() const noexcept { return s_.weight_size(); }
  /// Elements that a tile needs to itself.
  [[nodiscard]] Index tile_elements() const noexcept { return s_.is_depthwise() ? 0 : block_places() * depth(); }

  void pack(ThreadPool& pool, T const* weight, T* packed) const {
    auto const taps = s_.taps(), inputs = s_.group_inputs(), last = packed_channels();
    pool.for_ranges(s_.outputs, rows_per_task(), [=](Index begin, Index end) {
      for (Index row = begin * inputs; row < end * inputs; ++row)
        for (Index tap = 0; tap < taps; ++tap)
          packed[(row / last * taps + tap) * last + row % last] = weight[row * taps + tap];
    });
  }
  void unpack(ThreadPool& pool, T const* packed, T* weight, Write write) const {
    auto const taps = s_.taps(), inputs = s_.group_inputs(), last = packed_channels();
    pool.for_ranges(s_.outputs, rows_per_task(), [=](Index begin, Index end) {
      for (Index row = begin * inputs; row < end * inputs; ++row)
        for (Index tap = 0; tap < taps; ++tap) {
          auto const value = packed[(row / last * taps + tap) * last + row % last];
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
  [[nodiscard]] Index depth() const noexcept { return s_.taps() * s_.group_inputs(); }
  /// What lies last in the weight's own order.
  [[nodiscard]] Index packed_channels() const noexcept { return s_.is_depthwise() ? s_.inputs : s_.group_inputs(); }
  /// Output places whose patches are multiplied at once: as many as the second-level cache holds, but enough to be
  /// worth packing the weight for.
  [[nodiscard]] Index block_places() const noexcept {
    return std::min(s_.output_places(), std::max<Index>(64, (Index{1} << 17) / std::max<Index>(1, depth())));
  }
  [[nodiscard]] Index rows_per_task() const noexcept { return std::max<Index>(1, 16384 / std::max<Index>(1, depth())); }

  /// f(first, count, group) for every block of output places, and every group there.
  template <class F>
  void for_blocks(F&& f) const {
    for (Index first = 0; first < s_.output_places(); first += block_places())
      for (Index group = 0; group < s_.groups; ++group)
        f(first, std::min(block_places(), s_.output_places() - first), group);
  }

  void forward(T const* x, T const* packed, T const* bias, T* y, T* patches) const {
    if (s_.is_depthwise()) return by_channel_.forward(x, packed, bias, y);
    auto const outputs = s_.group_outputs();
    for_blocks([&](Index first, Index count, Index group) {
      gather_patches(s_, x + group * s_.group_inputs(), first, count, patches);
      multiply_on_this_thread<T>({.m = count,
                                  .n = outputs,
                                  .k = depth(),
                                  .alpha = 1,
                                  .a = {patches, depth(), 1},
                                  .b = {packed + group * outputs * depth(), 1, depth()},
                                  .beta = 0,
                                  .c = y + first * s_.outputs + group * outputs,
                                  .c_row = s_.outputs,
                                  .bias = bias ? bias + group * outputs : nullptr});
    });
  }
  void data(T const* dy, T const* packed, T* dx, T* patches) const {
    if (s_.is_depthwise()) return by_channel_.data(dy, packed, dx);
    auto const outputs = s_.group_outputs();
    std::fill_n(dx, s_.input_size(), T{0});
    for_blocks([&](Index first, Index count, Index group) {
      multiply_on_this_thread<T>({.m = count,
                                  .n = depth(),
                                  .k = outputs,
                                  .alpha = 1,
                                  .a = {dy + first * s_.outputs + group * outputs, s_.outputs, 1},
                                  .b = {packed + group * outputs * depth(), depth(), 1},
                                  .beta = 0,
                                  .c = patches,
                                  .c_row = depth(),
                                  .bias = nullptr});
      scatter_patches(s_, patches, first, count, dx + group * s_.group_inputs());
    });
  }
  void weight(T const* x, T const* dy, T* packed, T* patches) const {
    if (s_.is_depthwise()) return by_channel_.weight(x, dy, packed);
    auto const outputs = s_.group_outputs();
    for_blocks([&](Index first, Index count, Index group) {
      gather_patches(s_, x + group * s_.group_inputs(), first, count, patches);
      multiply_on_this_thread<T>({.m = outputs,
                                  .n = depth(),
                                  .k = count,
                                  .alpha = 1,
                                  .a = {dy + first * s_.outputs + group * outputs, 1, s_.outputs},
                                  .b = {patches, depth(), 1},
                                  .beta = 1,
                                  .c = packed + group * outputs * depth(),
                                  .c_row = depth(),
                                  .bias = nullptr});
    });
  }

  ConvolutionShape s_;
  ConvolutionPass pass_;
  DepthwiseConvolution by_channel_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
