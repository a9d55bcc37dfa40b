// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/detail/log.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

// Softmax and LogSoftmax differ in the rule for the last step of each pass. `normalizer` takes the sum of a row's
// exponentials, and `result` an element minus the row's maximum, the exponential of that, and the normalizer. The
// backward pass sums y * dy over a row if `weights_by_result`, and dy otherwise. `gradient` takes that sum. Functions
// are the space's exp and log.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Rule of Softmax.
struct SoftmaxRule {
  static constexpr bool weights_by_result = true;
  template <class Functions, class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr Scalar normalizer(Scalar sum) noexcept {
    return 1 / sum;
  }
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr Scalar result(Scalar, Scalar exponential,
                                                                   Scalar normalizer) noexcept {
    return exponential * normalizer;
  }
  template <class Functions, class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr Scalar gradient(Scalar y, Scalar dy, Scalar sum) noexcept {
    return y * (dy - sum);
  }
};

/// Rule of LogSoftmax.
struct LogSoftmaxRule {
  static constexpr bool weights_by_result = false;
  template <class Functions, class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr Scalar normalizer(Scalar sum) noexcept {
    return Functions::log(sum);
  }
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr Scalar result(Scalar shifted, Scalar, Scalar normalizer) noexcept {
    return shifted - normalizer;
  }
  template <class Functions, class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr Scalar gradient(Scalar y, Scalar dy, Scalar sum) noexcept {
    return dy - Functions::exp(y) * sum;
  }
};

/// Functions that loops over a row vectorize.
struct HostFunctions {
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr Scalar exp(Scalar x) noexcept {
    return detail::exp(x);
  }
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr Scalar log(Scalar x) noexcept {
    return detail::log(x);
  }
};

inline constexpr Index softmax_rows_per_task = 64;

/// Computes y by a rule from the exponentials of each row of x.
template <class Rule, class Scalar>
void softmax_rows(memory::Stream<HostSpace> stream, TensorView<Scalar const, 2, HostSpace> x,
                  TensorView<Scalar, 2, HostSpace> y) {
  auto const width = x.extent[1];
  stream.pool().for_ranges(x.extent[0], softmax_rows_per_task, [=](Index begin, Index end) {
    with_best_instructions([=](auto vectors) {
      for (Index row = begin; row < end; ++row) {
        auto const* const from = x.data + row * width;
        auto* const to = y.data + row * width;
        Scalar const maximum = largest(vectors, from, width);
        for (Index c = 0; c < width; ++c) to[c] = exp(from[c] - maximum);
        Scalar const normalizer = Rule::template normalizer<HostFunctions>(sum(vectors, to, width));
        for (Index c = 0; c < width; ++c) to[c] = Rule::result(from[c] - maximum, to[c], normalizer);
      }
    });
  });
}

/// Computes dx by a rule from dy and y, or adds it to dx.
template <class Rule, class Scalar>
void differentiate_softmax_rows(memory::Stream<HostSpace> stream, TensorView<Scalar const, 2, HostSpace> dy,
                                TensorView<Scalar const, 2, HostSpace> y, TensorView<Scalar, 2, HostSpace> dx,
                                Write write) {
  auto const width = y.extent[1];
  stream.pool().for_ranges(y.extent[0], softmax_rows_per_task, [=](Index begin, Index end) {
    with_best_instructions([=](auto vectors) {
      for (Index row = begin; row < end; ++row) {
        auto const at = row * width;
        Scalar total;
        if constexpr (Rule::weights_by_result) {
          total = dot(vectors, y.data + at, dy.data + at, width);
        } else {
          total = sum(vectors, dy.data + at, width);
        }
        write_each(at, at + width, dx.data, write,
                   [=](Index i) { return Rule::template gradient<HostFunctions>(y.data[i], dy.data[i], total); });
      }
    });
  });
}

}}}  // namespace lockstep::kernel::detail
