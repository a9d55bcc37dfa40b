// SPDX-License-Identifier: Apache-2.0
// CASE no_rule: Lockstep: the rule of nn::elementwise has a template operator()(T x) const that returns
// CASE no_name: Lockstep: the rule of nn::elementwise says its name
#include <lockstep/nn/elementwise/elementwise.hpp>

using namespace lockstep;
using Context = nn::Context<float, HostSpace>;

struct Twice {
#if !defined(CASE_no_name)
  static constexpr char const* name = "twice";
#endif
  template <class T>
  constexpr auto operator()(T x) const {
#if defined(CASE_no_rule)
    return 2 * x;
#else
    return kernel::ActivationAt<T>{2 * x, T{2}};
#endif
  }
};

Context::Variable<2> doubled(Context& context, Context::Variable<2> x) { return nn::elementwise(context, Twice{}, x); }
