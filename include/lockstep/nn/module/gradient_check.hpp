// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/module/initialize.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of check_gradients: step, tolerances, number of elements.
struct GradientCheckOptions {
  double step = 1e-5;      ///< h of the central difference
  double absolute = 1e-8;  ///< |numeric - analytic| <= absolute + relative * |analytic|, or up to the rounding of sums
  double relative = 1e-6;  ///< factor on |analytic|
  Index max_per_parameter = 64;  ///< elements checked in each parameter, spread over rows and columns
  std::uint64_t seed = 1;        ///< of random operations; equal in every evaluation, so dropout is a constant mask
  int threads = 1;               ///< of the passes
};

/// Result of check_gradients: number of checked elements, and the worst of them.
struct GradientCheckResult {
  Index checked = 0;  ///< elements
  double worst = 0;   ///< largest |numeric - analytic| / (absolute + relative * |analytic|); at most 1 on success
  std::string where;  ///< "head.weight[17]: numeric 0.25, analytic 0.5"
  /// Returns whether elements were checked and all agree.
  [[nodiscard]] bool ok() const noexcept { return checked > 0 && worst <= 1; }
};

namespace detail {

/// Implements nn::check_gradients for the loss that `compute` returns.
[[nodiscard]] GradientCheckResult check_gradients(
    std::function<Loss<HostSpace>(Context<double, HostSpace>&)> const& compute, ParameterLayout const& layout,
    std::vector<double>& values, GradientCheckOptions const& options);

}  // namespace detail

/// Compares the gradient of the model's backward, in double, with central differences of its loss sum. `values` holds
/// `layout.size()` elements, which are changed during the check and restored. Near a kink, as in relu and max pooling,
/// an element whose step crosses it looks wrong. Check such a model with gelu instead, or with other values. A layer
/// that overwrites a gradient (Write::overwrite) must write all of it: unwritten elements are nan.
/// @source f'(x) ~ (f(x + h) - f(x - h)) / 2h: truncation h^2 f'''/6, rounding 2^-53 |f| / h; h = 1e-5 balances both
template <class Model, class Batch>
[[nodiscard]] GradientCheckResult check_gradients(Model const& model, ParameterLayout const& layout,
                                                  std::vector<double>& values, Batch const& batch,
                                                  GradientCheckOptions const& options = {}) {
  return detail::check_gradients([&](Context<double, HostSpace>& context) { return loss_of(model, context, batch); },
                                 layout, values, options);
}

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/module/gradient_check.ipp>
#endif
