// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/convolution/detail/convolution_depthwise.hpp>
#include <lockstep/kernel/convolution/detail/convolution_pass.hpp>
#include <lockstep/kernel/convolution/detail/patches.hpp>
#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/gemm/gemm_on_this_thread.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// A pass of a convolution over some samples, as matrix products of patches with the weight of each group, in plain
/// C++. Used without a library and for double, and as the reference in tests of the libraries. Depthwise convolutions
/// use neither matrix products nor patches.
template <class Scalar>
class PortableConvolution {
 public:
  PortableConvolution(ConvolutionShape const& shape, ConvolutionPass pass, Index)
      : s_(shape), pass_(pass), by_channel_(shape) {}

  /// Returns the number of elements of the weight in this pass's own order: [outputs, taps, inputs / groups], or [taps,
  /// channels] for depthwise convolutions.
  [[nodiscard]] Index weight_elements() const noexcept { return s_.weight_size(); }
  /// Returns the number of scratch elements of a tile.
  [[nodiscard]] Index tile_elements() const noexcept { return s_.is_depthwise() ? 0 : block_positions() * depth(); }

  void pack(ThreadPool& pool, Scalar const* weight, Scalar* packed) const {
    auto const taps = s_.taps(), inputs = s_.group_inputs(), last = packed_channels();
    pool.for_ranges(s_.outputs, rows_per_task(), [=](Index begin, Index end) {
      for (Index row = begin * inputs; row < end * inputs; ++row)
        for (Index tap = 0; tap < taps; ++tap)
          packed[(row / last * taps + tap) * last + row % last] = weight[row * taps + tap];
    });
  }
  void unpack(ThreadPool& pool, Scalar const* packed, Scalar* weight, Write write) const {
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

  /// Processes `rows` samples on the calling thread. Inputs and outputs depend on the pass:
  /// forward: x, packed weight, bias or null -> y; data: dy, packed weight -> dx; weight: x, dy -> packed dweight.
  void run(Index, Index rows, Scalar const* from, Scalar const* with, Scalar const* bias, Scalar* to,
           Scalar* tile) const {
    if (pass_ == ConvolutionPass::weight) std::fill_n(to, weight_elements(), Scalar{0});
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
  /// Returns the elements of a patch: the depth of the matrix product.
  [[nodiscard]] Index depth() const noexcept { return s_.taps() * s_.group_inputs(); }
  /// Returns the extent of the last axis in the weight's own order.
  [[nodiscard]] Index packed_channels() const noexcept { return s_.is_depthwise() ? s_.inputs : s_.group_inputs(); }
  /// Returns the output positions whose patches are multiplied at once: as many as the second-level cache holds, but
  /// enough to pay for packing the weight.
  [[nodiscard]] Index block_positions() const noexcept {
    return std::min(s_.output_positions(), std::max<Index>(64, (Index{1} << 17) / std::max<Index>(1, depth())));
  }
  [[nodiscard]] Index rows_per_task() const noexcept { return std::max<Index>(1, 16384 / std::max<Index>(1, depth())); }

  /// Calls f(first, count, group) for each block of output positions, and each group there.
  template <class Function>
  void for_blocks(Function&& f) const {
    for (Index first = 0; first < s_.output_positions(); first += block_positions())
      for (Index group = 0; group < s_.groups; ++group)
        f(first, std::min(block_positions(), s_.output_positions() - first), group);
  }

  void forward(Scalar const* x, Scalar const* packed, Scalar const* bias, Scalar* y, Scalar* patches) const {
    if (s_.is_depthwise()) return by_channel_.forward(x, packed, bias, y);
    auto const outputs = s_.group_outputs();
    for_blocks([&](Index first, Index count, Index group) {
      gather_patches(s_, x + group * s_.group_inputs(), first, count, patches);
      multiply_on_this_thread<Scalar>({.m = count,
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
  void data(Scalar const* dy, Scalar const* packed, Scalar* dx, Scalar* patches) const {
    if (s_.is_depthwise()) return by_channel_.data(dy, packed, dx);
    auto const outputs = s_.group_outputs();
    std::fill_n(dx, s_.input_size(), Scalar{0});
    for_blocks([&](Index first, Index count, Index group) {
      multiply_on_this_thread<Scalar>({.m = count,
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
  void weight(Scalar const* x, Scalar const* dy, Scalar* packed, Scalar* patches) const {
    if (s_.is_depthwise()) return by_channel_.weight(x, dy, packed);
    auto const outputs = s_.group_outputs();
    for_blocks([&](Index first, Index count, Index group) {
      gather_patches(s_, x + group * s_.group_inputs(), first, count, patches);
      multiply_on_this_thread<Scalar>({.m = outputs,
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

}}}  // namespace lockstep::kernel::detail
