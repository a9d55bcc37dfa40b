// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <type_traits>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/convolution/detail/convolution_depthwise.hpp>
#include <lockstep/kernel/convolution/detail/convolution_pass.hpp>
#include <lockstep/kernel/convolution/detail/patches.hpp>
#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/gemm/gemm_on_this_thread.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// A pass of a convolution over some samples, as matrix products of patches with the weight of each group, in plain
/// C++. Used without a library and for double, and as the reference in tests of the libraries. Convolutions whose
/// groups have few channels use neither matrix products nor patches. Such a convolution is the sum of depthwise ones:
/// the n-th reads the n-th channel of each group for all channels of the group.
template <class Scalar>
class PortableConvolution {
 public:
  PortableConvolution(ConvolutionShape const& shape, ConvolutionPass pass, Index)
      : s_(shape), pass_(pass), by_channel_(shape) {}

  /// Returns the number of elements of the weight in this pass's own order: [outputs, taps, inputs / groups], or [group
  /// channels, taps, channels] for a sum of depthwise convolutions.
  [[nodiscard]] Index weight_elements() const noexcept { return s_.weight_size(); }
  /// Returns the number of scratch elements of a tile.
  [[nodiscard]] Index tile_elements() const noexcept {
    if (!has_small_groups()) return block_positions() * depth();
    return s_.is_depthwise() ? 0 : pass_ == ConvolutionPass::data ? s_.output_size() : s_.input_size();
  }

  void pack(ThreadPool& pool, Scalar const* weight, Scalar* packed) const {
    if (has_small_groups()) return for_weights(pool, [=](Index at, Index own) { packed[own] = weight[at]; });
    // A loop of its own: packing takes most of the time of a convolution with few positions, as in a stream.
    auto const taps = s_.taps(), inputs = s_.group_inputs();
    pool.for_ranges(s_.outputs, rows_per_task(), [=](Index output, Index end) {
      for (; output < end; ++output) {
        auto const* const from = weight + output * taps * inputs;
        auto* const to = packed + output * taps * inputs;
        for (Index tap = 0; tap < taps; ++tap) {
          auto const* at = from + tap;
          auto* const row = to + tap * inputs;
          Index input = 0;
          for (; input + 4 <= inputs; input += 4, at += 4 * taps) {  // reads all before it writes: one store
            Scalar const four[] = {at[0], at[taps], at[2 * taps], at[3 * taps]};
            std::copy_n(four, 4, row + input);
          }
          for (; input < inputs; ++input, at += taps) row[input] = *at;
        }
      }
    });
  }
  void unpack(ThreadPool& pool, Scalar const* packed, Scalar* weight, Write write) const {
    for_weights(
        pool, [=](Index at, Index own) { weight[at] = write == Write::add ? weight[at] + packed[own] : packed[own]; });
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
  /// Channels of the widest group that depthwise convolutions compute faster than matrix products do.
  static constexpr Index widest_small_group = 8;

  [[nodiscard]] bool has_small_groups() const noexcept {
    return s_.groups > 1 && s_.inputs == s_.outputs && s_.group_inputs() <= widest_small_group;
  }
  /// Returns the elements of a patch: the depth of the matrix product.
  [[nodiscard]] Index depth() const noexcept { return s_.taps() * s_.group_inputs(); }
  /// Calls f(at, own) for each element of the weight: its position in the weight, and in this pass's own order.
  template <class Function>
  void for_weights(ThreadPool& pool, Function const& f) const {
    auto const taps = s_.taps(), inputs = s_.group_inputs(), channels = s_.inputs;
    bool const small = has_small_groups(), of_data = pass_ == ConvolutionPass::data;
    pool.for_ranges(s_.outputs, rows_per_task(), [=](Index begin, Index end) {
      for (Index output = begin; output < end; ++output)
        for (Index input = 0; input < inputs; ++input)
          for (Index tap = 0; tap < taps; ++tap) {
            auto const in_group = output % inputs;  // of the output, in small groups
            auto const part = of_data ? in_group : input, channel = of_data ? output - in_group + input : output;
            f((output * inputs + input) * taps + tap,
              small ? (part * taps + tap) * channels + channel : (output * taps + tap) * inputs + input);
          }
    });
  }
  /// Calls f(n, from, weights) for the n-th channel of a group, with its value in all channels of the group, and its
  /// weights [taps, channels].
  template <class Weight, class Function>
  void for_group_channels(Scalar const* from, Index positions, Weight* packed, Scalar* spread,
                          Function const& f) const {
    auto const each = s_.group_inputs();
    if (each == 1) return f(Index{0}, from, packed);
    for (Index n = 0; n < each; ++n) {
      with_best_instructions([=, groups = positions * s_.groups] {
        auto const spread_all = [=](auto width) __attribute__((always_inline)) {
          for (Index group = 0; group < groups; ++group)
            for (Index c = 0; c < width; ++c) spread[group * width + c] = from[group * width + n];
        };
        if (each == 4) return spread_all(std::integral_constant<Index, 4>{});
        if (each == 8) return spread_all(std::integral_constant<Index, 8>{});
        if (each == 2) return spread_all(std::integral_constant<Index, 2>{});
        spread_all(each);
      });
      f(n, static_cast<Scalar const*>(spread), packed + n * s_.taps() * s_.inputs);
    }
  }
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
    if (has_small_groups())
      return for_group_channels(x, s_.input_positions(), packed, patches,
                                [&](Index n, Scalar const* from, Scalar const* weights) {
                                  by_channel_.forward(from, weights, bias, y, n == 0 ? Write::overwrite : Write::add);
                                });
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
    if (has_small_groups())
      return for_group_channels(dy, s_.output_positions(), packed, patches,
                                [&](Index n, Scalar const* from, Scalar const* weights) {
                                  by_channel_.data(from, weights, dx, n == 0 ? Write::overwrite : Write::add);
                                });
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
    if (has_small_groups())
      return for_group_channels(
          x, s_.input_positions(), packed, patches,
          [&](Index, Scalar const* from, Scalar* weights) { by_channel_.weight(from, dy, weights); });
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
