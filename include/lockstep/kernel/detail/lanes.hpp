// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <limits>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>

#if defined(__has_builtin) && !defined(__CUDACC__)
#if __has_builtin(__builtin_shufflevector)
#define LOCKSTEP_HAS_SHUFFLE
#endif
#endif

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// `bytes` bytes of Scalar in one value. A reduction always has 64 bytes of lanes, in as many vectors as the processor
/// needs for them. It thus has equal bits for every vector width. Compilers do not vectorize a reduction over scalars,
/// because that would change its order.
template <class Scalar, std::size_t bytes = 64>
struct LanesOf {
  typedef Scalar type __attribute__((vector_size(bytes)));
  static constexpr Index count = bytes / static_cast<Index>(sizeof(Scalar));
};
template <class Scalar, std::size_t bytes>
using Lanes = typename LanesOf<Scalar, bytes>::type;

// Vectors are passed by reference and never returned: the calling convention for values depends on whether the
// instructions for their width are enabled.
template <class Lane, class Scalar>
[[gnu::always_inline]] inline void load(Lane& to, Scalar const* from) noexcept {
  __builtin_memcpy(&to, from, sizeof to);
}
template <class Lane, class Scalar>
[[gnu::always_inline]] inline void store(Scalar* to, Lane const& from) noexcept {
  __builtin_memcpy(to, &from, sizeof from);
}

// Not V{}, which nvcc fails to compile in a template of a lambda.
template <class Lane>
[[gnu::always_inline]] inline void clear(Lane& to) noexcept {
  __builtin_memset(&to, 0, sizeof to);
}

enum class Reduction { sum, largest };

template <Reduction reduction, class Lane>
[[gnu::always_inline]] inline void reduce_into(Lane& to, Lane const& x) noexcept {
  if constexpr (reduction == Reduction::sum) {
    to += x;
  } else {
    to = x > to ? x : to;
  }
}

/// Splits `lanes` into its lower and upper half. Uses lane indices if the compiler supports them. With a copy of bytes,
/// compilers keep the sum in memory while it is added to, in builds whose own vectors are that wide.
template <class Vector, class Half, int... lane>
[[gnu::always_inline]] inline void halve(Vector const& lanes, Half& low, Half& high,
                                         std::integer_sequence<int, lane...>) noexcept {
#if defined(LOCKSTEP_HAS_SHUFFLE)
  low = __builtin_shufflevector(lanes, lanes, lane...);
  high = __builtin_shufflevector(lanes, lanes, (static_cast<int>(sizeof...(lane)) + lane)...);
#else
  __builtin_memcpy(&low, &lanes, sizeof low);
  __builtin_memcpy(&high, reinterpret_cast<char const*>(&lanes) + sizeof low, sizeof high);
#endif
}

/// Reduces `bytes` bytes of lanes to one, by halves. Stays in registers: the reduction of a row is on the critical
/// path, and a detour through memory would dominate it.
template <class Scalar, Reduction reduction, std::size_t bytes, class Vector>
[[nodiscard, gnu::always_inline]] inline Scalar reduced(Vector const& lanes) noexcept {
  if constexpr (bytes == sizeof(Scalar)) {
    return lanes[0];
  } else {
    typedef Scalar Half __attribute__((vector_size(bytes / 2)));
    Half low, high;
    halve(lanes, low, high, std::make_integer_sequence<int, static_cast<int>(bytes / sizeof(Scalar) / 2)>{});
    reduce_into<reduction>(low, high);
    return reduced<Scalar, reduction, bytes / 2>(low);
  }
}

/// Reduces the 64 bytes of lanes to one, by halves. Lane i combines with lane i + 8, then with i + 4, and so on.
template <class Scalar, Reduction reduction, std::size_t values, class Vector>
[[nodiscard, gnu::always_inline]] inline Scalar reduced(Vector (&lanes)[values]) noexcept {
#pragma GCC unroll 2
  for (std::size_t half = values / 2; half > 0; half /= 2)
#pragma GCC unroll 2
    for (std::size_t v = 0; v < half; ++v) reduce_into<reduction>(lanes[v], lanes[v + half]);
  return reduced<Scalar, reduction, sizeof(Vector)>(lanes[0]);
}

/// Calls f(row, count) for the rows from `begin` to `end`, where `count` is a std::integral_constant: the rows of this
/// call. Short rows are processed several at a time, so that the latency of one sum overlaps with the others. Long rows
/// are processed alone, because several would evict each other from the first-level cache between passes.
template <std::size_t bytes, class Function>
[[gnu::always_inline]] inline void for_rows_at_once(Vectors<bytes>, Index begin, Index end, std::size_t row_bytes,
                                                    Function const& f) noexcept {
  constexpr std::size_t several = bytes < 32 ? 2 : 4;  // as many as have their sums in registers
  for (; row_bytes <= 1024 && begin + static_cast<Index>(several) <= end; begin += static_cast<Index>(several))
    f(begin, std::integral_constant<std::size_t, several>{});
  for (; begin < end; ++begin) f(begin, std::integral_constant<std::size_t, 1>{});
}

/// Computes totals[r] = the sum over i < count of what term(x, r, i) stores in x: first by lanes, then over the lanes.
/// x is a Scalar, or the lanes from i on.
template <std::size_t rows, std::size_t bytes, class Scalar, class Term>
[[gnu::always_inline]] inline void sum_terms(Vectors<bytes>, Scalar (&totals)[rows], Index count,
                                             Term const& term) noexcept {
  constexpr Index lanes = LanesOf<Scalar>::count, each = LanesOf<Scalar, bytes>::count;
  Lanes<Scalar, bytes> sums[rows][64 / bytes]{}, next;
  Index i = 0;
  for (; i + lanes <= count; i += lanes) {
#pragma GCC unroll 4
    for (std::size_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (Index p = 0; p < lanes; p += each) {
        term(next, r, i + p);
        sums[r][p / each] += next;
      }
    }
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < rows; ++r) totals[r] = reduced<Scalar, Reduction::sum>(sums[r]);
  for (Scalar x; i < count; ++i)
    for (std::size_t r = 0; r < rows; ++r) {
      term(x, r, i);
      totals[r] += x;
    }
}

/// Returns the sum over i of x[i].
template <std::size_t bytes, class Scalar>
[[nodiscard, gnu::always_inline]] inline Scalar sum(Vectors<bytes> vectors, Scalar const* x, Index count) noexcept {
  Scalar total[1];
  sum_terms(
      vectors, total,
      count, [=](auto& next, std::size_t, Index i) __attribute__((always_inline)) { load(next, x + i); });
  return total[0];
}

/// Returns the sum over i of x[i] * y[i].
template <std::size_t bytes, class Scalar>
[[nodiscard, gnu::always_inline]] inline Scalar dot(Vectors<bytes> vectors, Scalar const* x, Scalar const* y,
                                                    Index count) noexcept {
  Scalar total[1];
  sum_terms(
      vectors, total, count, [=](auto& next, std::size_t, Index i) __attribute__((always_inline)) {
        auto other = next;
        load(next, x + i);
        load(other, y + i);
        next = next * other;
      });
  return total[0];
}

/// Returns the largest x[i], or minus infinity if there are none. May or may not ignore a NaN.
template <std::size_t bytes, class Scalar>
[[nodiscard, gnu::always_inline]] inline Scalar largest(Vectors<bytes>, Scalar const* x, Index count) noexcept {
  constexpr Index lanes = LanesOf<Scalar>::count, each = LanesOf<Scalar, bytes>::count;
  Scalar maximum = -std::numeric_limits<Scalar>::infinity();
  Index i = 0;
  if (count >= lanes) {
    Lanes<Scalar, bytes> maxima[64 / bytes], next;
    __builtin_memcpy(maxima, x, sizeof maxima);
    for (i = lanes; i + lanes <= count; i += lanes) {
#pragma GCC unroll 4
      for (Index p = 0; p < lanes; p += each) {
        load(next, x + i + p);
        reduce_into<Reduction::largest>(maxima[p / each], next);
      }
    }
    maximum = reduced<Scalar, Reduction::largest>(maxima);
  }
  for (; i < count; ++i) maximum = x[i] > maximum ? x[i] : maximum;
  return maximum;
}

}}}  // namespace lockstep::kernel::detail
