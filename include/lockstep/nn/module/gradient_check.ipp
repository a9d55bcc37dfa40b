// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/module/gradient_check.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

LOCKSTEP_INLINE GradientCheckResult
check_gradients(std::function<Loss<HostSpace>(Context<double, HostSpace>&)> const& compute,
                ParameterLayout const& layout, std::vector<double>& values, GradientCheckOptions const& options) {
  ThreadPool pool(options.threads);
  Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
  std::vector<double> gradients(static_cast<std::size_t>(layout.size()), std::nan(""));  // unset
  context.parameters().bind(values.data(), gradients.data(), layout);
  std::vector<double> buffers(static_cast<std::size_t>(layout.buffer_size()));
  initialize_buffers(layout, buffers.data());
  context.parameters().bind_buffers(buffers.data());
  auto const loss_sum = [&] {
    Pass(context).begin_micro_batch(Mode::training, options.seed);
    return compute(context).sum;
  };

  Pass(context).begin_step();
  // The difference of two sums of this size has their rounding errors: losses over many elements are large.
  double const rounding = 8 * 0x1p-53 * std::abs(loss_sum()) / options.step;
  double const absolute = std::max(options.absolute, rounding);
  Pass(context).backward({});
  for (std::size_t i = 0; i < layout.entries().size(); ++i)  // unwritten gradients and untouched rows are zero
    if (auto const& entry = layout.entries()[i]; !context.parameters().gradients().written(i))
      std::fill_n(gradients.begin() + entry.offset, entry.size, 0.0);
  for (auto const& table : context.parameters().gradients().touched())
    table.for_runs(0, table.rows, [&](Index first, Index last, bool touched) {
      auto const begin = gradients.begin() + table.offset;
      if (!touched) std::fill(begin + first * table.width, begin + last * table.width, 0.0);
    });

  GradientCheckResult result;
  for (auto const& entry : layout.entries()) {
    if (entry.frozen) continue;
    Index const count = std::min(entry.size, options.max_per_parameter);
    // The step has no factor in common with any extent: it visits all columns and no element twice.
    Index step = std::max<Index>(1, entry.size / options.max_per_parameter);
    while (std::gcd(step, entry.size) > 1) ++step;
    for (Index k = 0; k < count; ++k) {
      auto const i = k * step % entry.size;
      auto const at = static_cast<std::size_t>(entry.offset + i);
      double const before = values[at];
      values[at] = before + options.step;
      double const above = loss_sum();
      values[at] = before - options.step;
      double const below = loss_sum();
      values[at] = before;
      double const numeric = (above - below) / (2 * options.step);
      double const analytic = gradients[at];
      double const error = std::abs(numeric - analytic) / (absolute + options.relative * std::abs(analytic));
      ++result.checked;
      if (!std::isnan(result.worst) && !(error <= result.worst)) {  // nan is the worst
        result.worst = error;
        char numbers[80];  // keeps the digits of small gradients
        std::snprintf(numbers, sizeof numbers, "]: numeric %.9g, analytic %.9g", numeric, analytic);
        result.where = entry.name + "[" + std::to_string(i) + numbers;
      }
    }
  }
  return result;
}

}}}  // namespace lockstep::nn::detail
