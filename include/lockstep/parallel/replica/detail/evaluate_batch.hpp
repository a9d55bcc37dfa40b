// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/loss/named_loss.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Whether a metric uses predictions; else it uses a part of the loss.
template <class Metric>
inline constexpr bool uses_predictions = !requires(Metric & metric) {
  metric.add_loss(nn::Loss<HostSpace>{});
};
/// Whether a metric uses only predictions, so that samples may have no loss.
template <class Metric>
inline constexpr bool ignores_loss = requires {
  requires Metric::ignores_loss;
};

template <class Value>
Value const& constant(Value const&);
/// Whether a metric adds the model's prediction for a batch, or uses none.
template <class Metric, class Device, class Model, class Context, class DeviceBatch, class Batch>
concept AddsPrediction =
    !uses_predictions<Metric> || requires(Metric & metric, Device& device, Model const& model, Context& context,
                                          DeviceBatch const& device_batch, Batch const& batch) {
  metric.add(detail::constant(device.copy_to_host(model.predict(context, device_batch))), batch);
};

template <class Device, class Prediction, class Batch, class... Metric>
void add_prediction(Device& device, Prediction const& prediction, Batch const& batch, Metric&... metrics) {
  auto const& on_host = device.copy_to_host(prediction);
  [[maybe_unused]] auto const each = [&]<class AnyMetric>(AnyMetric& metric) {
    if constexpr (uses_predictions<AnyMetric>) metric.add(on_host, batch);
  };
  (each(metrics), ...);
}

template <class Device, class Context, class... Metric>
[[nodiscard]] nn::Loss<HostSpace> add_loss_parts(Device& device, Context& context, nn::LossOf<Context> const& loss,
                                                 Metric&... metrics) {
  [[maybe_unused]] auto const each = [&]<class AnyMetric>(AnyMetric& metric) {
    if constexpr (!uses_predictions<AnyMetric>)
      metric.add_loss(device.read(nn::detail::named_losses(context).of(metric.name())));
  };
  (each(metrics), ...);
  return device.read(loss);
}

/// Evaluates a batch on the device and passes the results to the metrics. Returns its loss, or zero if no metric needs
/// it.
template <class Device, class Model, class Context, class DeviceBatch, class Batch, class... Metric>
[[nodiscard]] nn::Loss<HostSpace> evaluate_batch(Device& device, Model const& model, Context& context,
                                                 DeviceBatch const& device_batch, Batch const& batch,
                                                 Metric&... metrics) {
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 0);
  nn::detail::named_losses(context).clear();
  if constexpr (sizeof...(Metric) > 0 && (ignores_loss<Metric> && ...)) {
    add_prediction(device, model.predict(context, device_batch), batch, metrics...);
    return {};
  } else if constexpr (!(uses_predictions<Metric> || ...)) {
    return add_loss_parts(device, context, nn::loss_of(model, context, device_batch), metrics...);
  } else if constexpr (nn::HasForward<Model, Context, DeviceBatch>) {
    auto const loss = add_loss_parts(device, context, model.forward(context, device_batch), metrics...);
    nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 0);
    add_prediction(device, model.predict(context, device_batch), batch, metrics...);
    return loss;
  } else {
    auto const prediction = model.predict(context, device_batch);
    add_prediction(device, prediction, batch, metrics...);
    return add_loss_parts(device, context, model.loss(context, prediction, device_batch), metrics...);
  }
}

}}}  // namespace lockstep::parallel::detail
