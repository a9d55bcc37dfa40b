// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Token that represents its sequence.
enum class PooledToken {
  first,  ///< of the sequence
  last,   ///< of the sequence, before padding
};

/// Reduction of the tokens of a sequence to one vector.
enum class TokenReduction {
  mean,  ///< sum divided by the number of tokens
  sum,   ///< of all tokens
};

namespace detail {
/// Returns the slot of that token, for a sequence with tokens.
template <class Space>
[[nodiscard]] constexpr Index pooled_slot(SequenceLayout<Space> const& layout, Index row, PooledToken which) noexcept {
  return layout.start(row) + (which == PooledToken::first ? 0 : layout.tokens(row) - 1);
}
/// Returns whether x replaces `best` as the maximum of the values so far: a larger number, or the first NaN.
template <class Scalar>
[[nodiscard, gnu::always_inline]] constexpr bool exceeds(Scalar x, Scalar best) noexcept {
  return !(x <= best) && best == best;
}
}  // namespace detail

/// Reduces each sequence to one vector.
template <class Space>
struct Pooling : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Pooling<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y[r] = the sum over the n tokens of sequence r, divided by n for the mean. Adds blocks of 1,024 tokens in
  /// order, each the sum of its tokens in order. A sequence without tokens gives zeros. Padding is not read.
  /// @shape x [layout.slots, width]   @shape y [rows, width]
  /// @determinism bitwise, for any number of threads
  /// @source direct from the definition
  template <class Scalar>
  static void reduce(Stream stream, SequenceLayout<HostSpace> layout, TokenReduction reduction, Matrix<Scalar const> x,
                     Matrix<Scalar> y);

  /// Computes dx = dy[r], divided by n for the mean, for each of the n tokens of sequence r and zero in padding, or
  /// adds it to dx.
  /// @shape dy [rows, width]   @shape dx [layout.slots, width]
  template <class Scalar>
  static void reduce_backward(Stream stream, SequenceLayout<HostSpace> layout, TokenReduction reduction,
                              Matrix<Scalar const> dy, Matrix<Scalar> dx, Write write);

  /// Computes y[r] = the first or the last token of sequence r; a sequence without tokens gives zeros.
  /// @shape x [layout.slots, width]   @shape y [rows, width]
  template <class Scalar>
  static void token(Stream stream, SequenceLayout<HostSpace> layout, PooledToken which, Matrix<Scalar const> x,
                    Matrix<Scalar> y);

  /// Computes dx = dy[r] for that token of sequence r and zero in all other slots, or adds it to dx.
  /// @shape dy [rows, width]   @shape dx [layout.slots, width]
  template <class Scalar>
  static void token_backward(Stream stream, SequenceLayout<HostSpace> layout, PooledToken which,
                             Matrix<Scalar const> dy, Matrix<Scalar> dx, Write write);

  /// Computes y[r] = the largest value of each channel over the tokens of sequence r. The first of several equal values
  /// wins, and the first NaN wins over any number. A sequence without tokens gives zeros. Padding is not read.
  /// @shape x [layout.slots, width]   @shape y [rows, width]
  /// @shape argmax as y, or null: the token, counted from 0 in its sequence; -1 for a sequence without tokens
  /// @determinism bitwise, for any number of threads
  /// @source direct from the definition
  template <class Scalar>
  static void max(Stream stream, SequenceLayout<HostSpace> layout, Matrix<Scalar const> x, Matrix<Scalar> y,
                  Matrix<std::int32_t> argmax);

  /// Computes dx = dy[r] at the tokens that won and zero elsewhere, or adds it to dx.
  /// @shape dy, argmax [rows, width]   @shape dx [layout.slots, width]
  template <class Scalar>
  static void max_backward(Stream stream, SequenceLayout<HostSpace> layout, Matrix<Scalar const> dy,
                           Matrix<std::int32_t const> argmax, Matrix<Scalar> dx, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/pooling/pooling.ipp>
#endif
