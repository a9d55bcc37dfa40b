// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include <lockstep/core/index.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/nn/autograd/parameter_gradients.hpp>
#include <lockstep/nn/autograd/tape.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Runs the forward and backward passes of a context: what replicas, predictors and gradient checks call, and layers do
/// not. A view of the context, which holds all state. Bind the model's memory first, by Context::parameters().
///
///     nn::Pass pass(context);
///     pass.begin_step();
///     for (auto const& batch : micro_batches) {
///       pass.begin_micro_batch(nn::Mode::training, key);
///       auto const loss = nn::loss_of(model, context, batch);
///       pass.backward({});
///     }
template <class Context>
class Pass {
 public:
  /// Refers to the context, which must outlive it.
  explicit Pass(Context& context) noexcept : context_(context) {}

  /// Resets the written flags of gradients: the next writers overwrite.
  void begin_step() const { parts().parameters.gradients().begin_step(); }
  /// Frees all activations. `key` seeds this micro-batch's random operations, and `first_position`, of the batch's
  /// first sample in the epoch, also those that have one key for the whole batch.
  void begin_micro_batch(Mode mode, std::uint64_t key, Index first_position = 0) const {
    parts().mode = mode;
    parts().random.set(parts().stream, key, first_position);
    restart_micro_batch();
  }
  /// Restarts the current micro-batch, with equal mode and key.
  void restart_micro_batch() const;
  /// Marks the end of the loss for `trace`.
  void end_forward() const { parts().tracer.end_forward(); }
  /// Runs the recorded closures in reverse; calls `sink` for each parameter after its last use. Invalidates the values
  /// of variables: gradients reuse their memory.
  void backward(ReadySink sink) const;

  /// Records in `timeline` when each operation of the following passes ran; null stops recording. `now(self)` returns
  /// the current time of the space's work.
  void trace(Timeline* timeline, double (*now)(void* self), void* self) const {
    parts().tracer.start(timeline, {now, self});
  }
  /// Returns a number that changes whenever the activations' memory moves.
  [[nodiscard]] std::uint64_t memory_version() const noexcept {
    return parts().arena.allocations() + parts().staging.scratch.allocations();
  }
  /// Returns the memory of activations and of kernels' temporaries, used or not.
  [[nodiscard]] std::size_t activation_bytes() const noexcept {
    return parts().arena.capacity_bytes() + parts().staging.scratch.capacity_bytes();
  }

 private:
  [[nodiscard]] auto& parts() const noexcept { return context_.parts(); }

  Context& context_;
};

template <class Context>
void Pass<Context>::restart_micro_batch() const {
  auto& all = parts();
  all.stream.join();
  if (all.arena.is_fragmented() || all.staging.scratch.is_fragmented())
    all.stream.synchronize();  // rewind frees the pieces
  all.arena.rewind();
  all.staging.scratch.rewind();
  all.tape.clear();
  all.parameters.gradients().begin_micro_batch();
  all.random.rewind();
  all.loss_scale.set_in_backward(false);
  if (all.tracer) all.tracer.begin_pass();
}

template <class Context>
void Pass<Context>::backward(ReadySink sink) const {
  auto& all = parts();
  all.parameters.gradients().set_sink(all.tracer.wrap(sink));
  all.loss_scale.set_in_backward(true);
  all.tape.run(0, context_, all.active_tracer());
  all.stream.join();
}

}}}  // namespace lockstep::nn
