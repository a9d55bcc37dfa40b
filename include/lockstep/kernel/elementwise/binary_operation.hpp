// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/in_place.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Returns the first of two numbers: the gradient of a summand, from dz and the other operand.
struct FirstOperand {
  static constexpr char const* name = "kernel::FirstOperand";  ///< for messages
  static constexpr bool reads_second = false;                  ///< whether the result depends on the second operand
  /// Returns the result for one pair of elements.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x, Scalar) const noexcept {
    return x;
  }
};
/// Returns the first number negated: the gradient of a subtrahend.
struct NegatedOperand {
  static constexpr char const* name = "kernel::NegatedOperand";  ///< for messages
  static constexpr bool reads_second = false;                    ///< whether the result depends on the second operand
  /// Returns the result for one pair of elements.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x, Scalar) const noexcept {
    return -x;
  }
};

/// Rules of BinaryOperation: function objects z(x, y) for the host and devices. GradientX(dz, y) is the gradient of x,
/// and GradientY(dz, x) is the gradient of y.
struct Plus {
  static constexpr char const* name = "kernel::Plus";  ///< for messages
  using GradientX = FirstOperand;                      ///< of dz and y
  using GradientY = FirstOperand;                      ///< of dz and x
  /// Returns the result for one pair of elements.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x, Scalar y) const noexcept {
    return x + y;
  }
};
/// Difference x - y.
struct Minus {
  static constexpr char const* name = "kernel::Minus";  ///< for messages
  using GradientX = FirstOperand;                       ///< of dz and y
  using GradientY = NegatedOperand;                     ///< of dz and x
  /// Returns the result for one pair of elements.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x, Scalar y) const noexcept {
    return x - y;
  }
};
/// Product x * y. Each gradient needs the other operand.
struct Times {
  static constexpr char const* name = "kernel::Times";  ///< for messages
  static constexpr bool reads_second = true;            ///< whether the result depends on the second operand
  using GradientX = Times;                              ///< of dz and y
  using GradientY = Times;                              ///< of dz and x
  /// Returns the result for one pair of elements.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] constexpr Scalar operator()(Scalar x, Scalar y) const noexcept {
    return x * y;
  }
};

/// Applies one of the rules above to each pair of elements of two tensors.
template <class Space>
struct BinaryOperation : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct BinaryOperation<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes z = rule(x, y).
  /// @shape x, y, z [n]; z may be x or y
  /// @determinism bitwise, for any number of threads
  template <class Rule, class Scalar>
  static void forward(Stream stream, Vector<Scalar const> x, Vector<Scalar const> y, Vector<Scalar> z);

  /// Computes dx = rule(dz, y), or adds it to dx, for the GradientX of the forward rule. For its GradientY, pass x as y
  /// and dy as dx. y may be null if the rule does not read its second argument.
  /// @shape dz, y, dx [n]
  template <class Rule, class Scalar>
  static void backward(Stream stream, Vector<Scalar const> dz, Vector<Scalar const> y, Vector<Scalar> dx, Write write);

 private:
  static constexpr Index grain = 8192;
};

template <class Rule, class Scalar>
void BinaryOperation<HostSpace>::forward(Stream stream, Vector<Scalar const> x, Vector<Scalar const> y,
                                         Vector<Scalar> z) {
  stream.pool().for_ranges(x.size(), grain, [=](Index begin, Index end) {
    with_best_instructions([=] {
      detail::maybe_in_place(x.data, z.data, [=](Scalar const* from, Scalar* to) {
        for (Index i = begin; i < end; ++i) to[i] = Rule{}(from[i], y.data[i]);
      });
    });
  });
}

template <class Rule, class Scalar>
void BinaryOperation<HostSpace>::backward(Stream stream, Vector<Scalar const> dz, Vector<Scalar const> y,
                                          Vector<Scalar> dx, Write write) {
  stream.pool().for_ranges(dz.size(), grain, [=](Index begin, Index end) {
    with_best_instructions([=] {
      detail::write_each(begin, end, dx.data, write,
                         [=](Index i) { return Rule{}(dz.data[i], Rule::reads_second ? y.data[i] : Scalar{0}); });
    });
  });
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_BINARY_FORWARD(instantiate, Rule, Scalar)                                                  \
  instantiate void BinaryOperation<HostSpace>::forward<Rule, Scalar>(Stream stream, Vector<Scalar const> x, \
                                                                     Vector<Scalar const> y, Vector<Scalar> z)
#define LOCKSTEP_BINARY_BACKWARD(instantiate, Rule, Scalar)            \
  instantiate void BinaryOperation<HostSpace>::backward<Rule, Scalar>( \
      Stream stream, Vector<Scalar const> dz, Vector<Scalar const> y, Vector<Scalar> dx, Write write)
#define LOCKSTEP_BINARY_OPERATIONS(instantiate, Scalar)          \
  LOCKSTEP_BINARY_FORWARD(instantiate, Plus, Scalar);            \
  LOCKSTEP_BINARY_FORWARD(instantiate, Minus, Scalar);           \
  LOCKSTEP_BINARY_FORWARD(instantiate, Times, Scalar);           \
  LOCKSTEP_BINARY_BACKWARD(instantiate, FirstOperand, Scalar);   \
  LOCKSTEP_BINARY_BACKWARD(instantiate, NegatedOperand, Scalar); \
  LOCKSTEP_BINARY_BACKWARD(instantiate, Times, Scalar)
LOCKSTEP_BINARY_OPERATIONS(extern template, float);
LOCKSTEP_BINARY_OPERATIONS(extern template, double);
#endif

}}}  // namespace lockstep::kernel
