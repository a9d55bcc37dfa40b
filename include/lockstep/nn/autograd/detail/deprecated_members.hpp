// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/nn/autograd/parameter.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Old names of a context's members for layers, for one version.
template <class Context>
class DeprecatedMembers {
 public:
  template <class Variable>
  [[deprecated("Context::release_until_backward")]] void set_aside(Variable const& x) {
    self().release_until_backward(x);
  }
  template <class Variable, class F>
  [[deprecated("Context::on_recompute")]] void can_make_again(Variable const& x, F f) {
    self().on_recompute(x, f);
  }
  template <class Variable>
  [[deprecated("Context::saved_value"), nodiscard]] auto value_of(Variable const& x) {
    return self().saved_value(x);
  }
  template <class T>
  [[deprecated("Context::persistent"), nodiscard]] T& kept(void const* owner) {
    return self().template persistent<T>(owner);
  }
  [[deprecated("Context::add_use")]] void expect_use(Parameter const& p) { self().add_use(p); }
  [[deprecated("Context::finish_use")]] void used(Parameter const& p) { self().finish_use(p); }
  [[deprecated("Context::cached_tokens"), nodiscard]] Index earlier_tokens() const noexcept {
    return static_cast<Context const&>(*this).cached_tokens();
  }

 private:
  [[nodiscard]] Context& self() noexcept { return static_cast<Context&>(*this); }
};

}}}  // namespace lockstep::nn::detail
