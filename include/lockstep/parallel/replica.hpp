// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <lockstep/core/clock.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/initialize.hpp>
#include <lockstep/nn/loss.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/nn/parameter_layout.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// One micro-batch of an optimizer step.
struct MicroStep {
  std::uint64_t key = 0;  ///< of random operations: (seed, epoch); alike on all shards
  bool first = true;      ///< gradients start anew
  bool last = true;       ///< gradients are complete afterwards, so they may leave
};

/// Hears when the loss of a micro-batch is known, before its backward begins.
struct LossSink {
  void (*call)(void* self) = nullptr;
  void* self = nullptr;
};

/// What one device owns of a shared, immutable model: parameter values, gradients, a context and a fixed group of
/// threads. Used by one thread at a time. After an exception the values are untouched and the next step starts anew.
template <class Model>
class Replica {
 public:
  using Space = HostSpace;
  using Context = nn::Context<float, Space>;

  /// `gradients` holds layout.size() zeroed floats; model and layout outlive the replica.
  Replica(Model const& model, nn::ParameterLayout const& layout, int threads, memory::Block gradients)
      : model_(&model),
        layout_(&layout),
        pool_(std::make_unique<ThreadPool>(threads)),
        values_(layout.size()),
        buffers_(layout.buffer_size()),
        gradients_(std::move(gradients)),
        context_(memory::Stream<Space>(*pool_)) {
    context_.bind(values_.data(), gradient_data(), layout);
    nn::initialize_buffers(layout, buffers_.data());
    context_.bind_buffers(buffers_.data());
  }

  /// Forward and backward of one batch: adds its loss and its gradients to those of the step.
  template <class Batch>
  void run(Batch const& batch, MicroStep const& step, LossSink loss_sink = {}, nn::ReadySink ready_sink = {}) {
    auto const begin = Clock::seconds();
    if (step.first) {
      context_.begin_step();
      loss_ = {};
    }
    context_.begin_micro_batch(nn::Mode::training, step.key);
    loss_ += nn::loss_of(*model_, context_, batch);
    if (loss_sink.call) loss_sink.call(loss_sink.self);
    auto const middle = Clock::seconds();
    context_.backward(ready_sink);
    forward_seconds_ += middle - begin;
    backward_seconds_ += Clock::seconds() - middle;
  }

  /// The loss of a batch, and what the model predicts for it to whoever asks. Nothing is learned. A model with a
  /// `forward` of its own is run once more for its prediction.
  template <class Batch, class... Metric>
  nn::Loss<Space> evaluate(Batch const& batch, Metric&... metrics) {
    context_.begin_micro_batch(nn::Mode::evaluation, 0);
    if constexpr (sizeof...(Metric) == 0) {
      return nn::loss_of(*model_, context_, batch);
    } else if constexpr (nn::HasForward<Model, Context, Batch>) {
      auto const loss = model_->forward(context_, batch);
      context_.begin_micro_batch(nn::Mode::evaluation, 0);
      auto const prediction = model_->predict(context_, batch);
      (metrics.add(prediction, batch), ...);
      return loss;
    } else {
      auto const prediction = model_->predict(context_, batch);
      (metrics.add(prediction, batch), ...);
      return model_->loss(context_, prediction, batch);
    }
  }

  /// Parameters that no layer used in this step get the gradient zero; where gradients go by rows, none is touched.
  void zero_unused() {
    auto const& entries = layout_->entries();
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (!context_.written(i) && !entries[i].by_rows())
        std::fill_n(gradient_data() + entries[i].offset, entries[i].size, 0.0f);
  }

  [[nodiscard]] nn::Loss<Space> const& loss() const noexcept { return loss_; }
  [[nodiscard]] std::span<float> values() const noexcept { return values_.span(); }
  /// What the model keeps but does not learn; of this replica's own samples.
  [[nodiscard]] std::span<float> buffers() const noexcept { return buffers_.span(); }
  [[nodiscard]] float* gradient_data() const noexcept { return reinterpret_cast<float*>(gradients_.data()); }
  /// The tables whose gradient goes by rows, in the arena's order.
  [[nodiscard]] std::span<kernel::TouchedRows const> touched() const noexcept { return context_.touched(); }
  [[nodiscard]] memory::Stream<Space> stream() const noexcept { return context_.stream(); }
  [[nodiscard]] int threads() const noexcept { return pool_->threads(); }
  /// Values, gradients and activations.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return 2 * static_cast<std::size_t>(layout_->size()) * sizeof(float) + context_.activation_bytes();
  }
  /// Since the last call.
  [[nodiscard]] double take_forward_seconds() noexcept { return std::exchange(forward_seconds_, 0); }
  [[nodiscard]] double take_backward_seconds() noexcept { return std::exchange(backward_seconds_, 0); }

 private:
  Model const* model_;
  nn::ParameterLayout const* layout_;
  std::unique_ptr<ThreadPool> pool_;
  memory::Buffer<float, Space> values_, buffers_;
  memory::Block gradients_;
  Context context_;
  nn::Loss<Space> loss_;
  double forward_seconds_ = 0, backward_seconds_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
