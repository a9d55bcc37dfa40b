// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/in_place.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Applies a rule of BinaryOperation to each token of a sequence and a vector of its sequence, channel by channel.
template <class Space>
struct SequenceOperation : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct SequenceOperation<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes z[s, c] = rule(x[s, c], by[r, c]) for each slot s of sequence r, including padding, or adds it to z. For
  /// Times, also computes the gradient of x from the gradient of z.
  /// @shape x, z [layout.slots, width]; z may be x   @shape by [rows, width]
  /// @determinism bitwise, for any number of threads
  template <class Rule, class Scalar>
  static void run(Stream stream, SequenceLayout<HostSpace> layout, Matrix<Scalar const> x, Matrix<Scalar const> by,
                  Matrix<Scalar> z, Write write) {
    auto const width = z.extent[1];
    stream.pool().run(layout.rows, [=](Index row) {
      with_best_instructions([=, first = layout.start(row), end = layout.end(row)] {
        auto const* const second = by.data + row * width;
        detail::maybe_in_place(x.data, z.data, [=](Scalar const* from, Scalar* to) {
          for (Index at = first * width; at < end * width; at += width)
            detail::write_each(0, width, to + at, write, [=](Index c) { return Rule{}(from[at + c], second[c]); });
        });
      });
    });
  }

  /// Computes dby[r, c] = the sum over the tokens s of sequence r of rule(dz[s, c], x[s, c]), or adds it to dby. Adds
  /// blocks of 256 tokens in order, each the sum of its tokens in order. `Rule` is the GradientY of the forward rule. A
  /// sequence without tokens gives zeros. Padding is not read. x may be null if the rule does not read its second
  /// argument.
  /// @shape dz, x [layout.slots, width]   @shape dby [rows, width]
  /// @determinism bitwise, for any number of threads
  template <class Rule, class Scalar>
  static void backward(Stream stream, SequenceLayout<HostSpace> layout, Matrix<Scalar const> dz, Matrix<Scalar const> x,
                       Matrix<Scalar> dby, Write write) {
    auto const width = dby.extent[1];
    stream.pool().run(layout.rows, [=](Index row) {
      with_best_instructions([=, first = layout.start(row), tokens = layout.tokens(row)] {
        auto* const to = dby.data + row * width;
        if (write == Write::overwrite) std::fill_n(to, width, Scalar{0});
        for (Index token = 0; token < tokens; token += block)
          for (Index c = 0; c < width; c += columns)
            add_block<Rule>(dz.data, x.data, width, (first + token) * width + c, std::min(block, tokens - token),
                            std::min(columns, width - c), to + c);
      });
    });
  }

 private:
  static constexpr Index block = 256, columns = 64;

  /// Adds the sum of some columns, from element `at` on, over some tokens.
  template <class Rule, class Scalar>
  [[gnu::always_inline]] static void add_block(Scalar const* dz, Scalar const* x, Index width, Index at, Index tokens,
                                               Index count, Scalar* to) noexcept {
    Scalar sums[columns]{};
    for (Index end = at + tokens * width; at < end; at += width)
      for (Index c = 0; c < count; ++c) sums[c] += Rule{}(dz[at + c], Rule::reads_second ? x[at + c] : Scalar{0});
    for (Index c = 0; c < count; ++c) to[c] += sums[c];
  }
};

}}}  // namespace lockstep::kernel
