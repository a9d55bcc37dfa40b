// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/nn/loss/named_loss.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Whether a metric uses predictions; else it uses a part of the loss.
template <class Metric>
inline constexpr bool counts_predictions = !requires(Metric & metric) {
  metric.add_loss(nn::Loss<HostSpace>{});
};
/// Whether a metric uses only predictions, so that samples may have no loss.
template <class Metric>
inline constexpr bool wants_no_loss = requires {
  requires Metric::wants_no_loss;
};

template <class Device, class Prediction, class Batch, class... Metric>
void count_prediction(Device& device, Prediction const& prediction, Batch const& batch, Metric&... metrics) {
  auto const& shown = device.show(prediction);
  [[maybe_unused]] auto const each = [&]<class M>(M& metric) {
    if constexpr (counts_predictions<M>) metric.add(shown, batch);
  };
  (each(metrics), ...);
}

template <class Device, class Context, class... Metric>
[[nodiscard]] nn::Loss<HostSpace> count_loss(Device& device, Context& context, nn::LossOf<Context> const& loss,
                                             Metric&... metrics) {
  [[maybe_unused]] auto const each = [&]<class M>(M& metric) {
    if constexpr (!counts_predictions<M>)
      metric.add_loss(device.read(nn::detail::named_losses(context).of(metric.name())));
  };
  (each(metrics), ...);
  return device.read(loss);
}

/// Evaluates a batch on the device and passes the results to the metrics. Returns its loss, or zero if no metric needs
/// it.
template <class Device, class Model, class Context, class Brought, class Batch, class... Metric>
[[nodiscard]] nn::Loss<HostSpace> evaluated(Device& device, Model const& model, Context& context,
                                            Brought const& brought, Batch const& batch, Metric&... metrics) {
  context.begin_micro_batch(nn::Mode::evaluation, 0);
  nn::detail::named_losses(context).clear();
  if constexpr (sizeof...(Metric) > 0 && (wants_no_loss<Metric> && ...)) {
    count_prediction(device, model.predict(context, brought), batch, metrics...);
    return {};
  } else if constexpr (!(counts_predictions<Metric> || ...)) {
    return count_loss(device, context, nn::loss_of(model, context, brought), metrics...);
  } else if constexpr (nn::HasForward<Model, Context, Brought>) {
    auto const loss = count_loss(device, context, model.forward(context, brought), metrics...);
    context.begin_micro_batch(nn::Mode::evaluation, 0);
    count_prediction(device, model.predict(context, brought), batch, metrics...);
    return loss;
  } else {
    auto const prediction = model.predict(context, brought);
    count_prediction(device, prediction, batch, metrics...);
    return count_loss(device, context, model.loss(context, prediction, brought), metrics...);
  }
}

}}}  // namespace lockstep::parallel::detail
