// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/activation_rules.hpp>
#include <lockstep/kernel/detail/in_place.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Applies an activation to each element: a rule of activation_rules.hpp or one with the same interface.
template <class Space>
struct Elementwise : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Elementwise<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y = rule(x).
  /// @shape x, y [n]; y may be x
  /// @determinism bitwise, for any number of threads
  template <class Rule, class Scalar>
  static void forward(Stream stream, Vector<Scalar const> x, Vector<Scalar> y, Rule rule = {});

  /// Computes y = rule(x) and slope = its derivative, for a rule that has `at`.
  /// @shape x, y, slope [n]; slope may be x
  template <class Rule, class Scalar>
  static void forward(Stream stream, Vector<Scalar const> x, Vector<Scalar> y, Vector<Scalar> slope, Rule rule = {});

  /// Computes dx = rule.backward(dy, kept), or adds it to dx. `kept` is y, or the slope for a rule that has `at`.
  /// @shape dy, kept, dx [n]; dx may be dy
  template <class Rule, class Scalar>
  static void backward(Stream stream, Vector<Scalar const> dy, Vector<Scalar const> kept, Vector<Scalar> dx,
                       Write write, Rule rule = {});

  /// Applies a rule on the calling thread, for kernels that apply it to a part of their output.
  template <class Rule, class Scalar>
  static void apply(Scalar const* x, Scalar* y, Index count, Rule rule = {});

  /// Applies a rule that has `at`, and writes the slopes.
  template <class Rule, class Scalar>
  static void apply(Scalar const* x, Scalar* y, Scalar* slope, Index count, Rule rule = {});

 private:
  /// Elements of a task: fewer for a rule that has `at`, which takes longer.
  template <class Rule>
  static constexpr Index grain = requires(Rule const& rule) {
    rule.at(1.0f);
  }
  ? 4096 : 8192;
};

template <class Rule, class Scalar>
void Elementwise<HostSpace>::forward(Stream stream, Vector<Scalar const> x, Vector<Scalar> y, Rule rule) {
  stream.pool().for_ranges(x.size(), grain<Rule>,
                           [=](Index begin, Index end) { apply(x.data + begin, y.data + begin, end - begin, rule); });
}

template <class Rule, class Scalar>
void Elementwise<HostSpace>::forward(Stream stream, Vector<Scalar const> x, Vector<Scalar> y, Vector<Scalar> slope,
                                     Rule rule) {
  stream.pool().for_ranges(x.size(), grain<Rule>, [=](Index begin, Index end) {
    apply(x.data + begin, y.data + begin, slope.data + begin, end - begin, rule);
  });
}

template <class Rule, class Scalar>
void Elementwise<HostSpace>::backward(Stream stream, Vector<Scalar const> dy, Vector<Scalar const> kept,
                                      Vector<Scalar> dx, Write write, Rule rule) {
  stream.pool().for_ranges(dy.size(), grain<Rule>, [=](Index begin, Index end) {
    with_best_instructions([=] {
      detail::maybe_in_place(dy.data, dx.data, [=](Scalar const* from, Scalar* to) {
        detail::write_each(begin, end, to, write, [=](Index i) { return rule.backward(from[i], kept.data[i]); });
      });
    });
  });
}

template <class Rule, class Scalar>
void Elementwise<HostSpace>::apply(Scalar const* x, Scalar* y, Index count, Rule rule) {
  with_best_instructions([=] {
    detail::maybe_in_place(x, y, [=](Scalar const* from, Scalar* to) {
      for (Index i = 0; i < count; ++i) to[i] = rule(from[i]);
    });
  });
}

template <class Rule, class Scalar>
void Elementwise<HostSpace>::apply(Scalar const* x, Scalar* y, Scalar* slope, Index count, Rule rule) {
  with_best_instructions([=] {
    detail::maybe_in_place(x, slope, [=](Scalar const* from, Scalar* to) {
      for (Index i = 0; i < count; ++i) {
        auto const [value, derivative] = rule.at(from[i]);
        y[i] = value;
        to[i] = derivative;
      }
    });
  });
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_ELEMENTWISE(instantiate, Rule, Scalar)                                                              \
  instantiate void Elementwise<HostSpace>::forward<Rule, Scalar>(Stream stream, Vector<Scalar const> x,              \
                                                                 Vector<Scalar> y, Rule rule);                       \
  instantiate void Elementwise<HostSpace>::backward<Rule, Scalar>(                                                   \
      Stream stream, Vector<Scalar const> dy, Vector<Scalar const> kept, Vector<Scalar> dx, Write write, Rule rule); \
  instantiate void Elementwise<HostSpace>::apply<Rule, Scalar>(Scalar const* x, Scalar* y, Index count, Rule rule)
#define LOCKSTEP_ELEMENTWISE_WITH_SLOPE(instantiate, Rule, Scalar)                                                     \
  LOCKSTEP_ELEMENTWISE(instantiate, Rule, Scalar);                                                                     \
  instantiate void Elementwise<HostSpace>::forward<Rule, Scalar>(Stream stream, Vector<Scalar const> x,                \
                                                                 Vector<Scalar> y, Vector<Scalar> slope, Rule rule);   \
  instantiate void Elementwise<HostSpace>::apply<Rule, Scalar>(Scalar const* x, Scalar* y, Scalar* slope, Index count, \
                                                               Rule rule)
LOCKSTEP_ELEMENTWISE(extern template, Relu, float);
LOCKSTEP_ELEMENTWISE(extern template, Relu, double);
LOCKSTEP_ELEMENTWISE(extern template, Sigmoid, float);
LOCKSTEP_ELEMENTWISE(extern template, Sigmoid, double);
LOCKSTEP_ELEMENTWISE(extern template, Tanh, float);
LOCKSTEP_ELEMENTWISE(extern template, Tanh, double);
LOCKSTEP_ELEMENTWISE_WITH_SLOPE(extern template, Gelu, float);
LOCKSTEP_ELEMENTWISE_WITH_SLOPE(extern template, Gelu, double);
LOCKSTEP_ELEMENTWISE_WITH_SLOPE(extern template, Silu, float);
LOCKSTEP_ELEMENTWISE_WITH_SLOPE(extern template, Silu, double);
#endif

}}}  // namespace lockstep::kernel
