// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/memory/block.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica/detail/evaluate_batch.hpp>
#include <lockstep/parallel/replica/detail/rehearsal.hpp>
#include <lockstep/parallel/replica/detail/replica_base.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// One device's replica of a shared, immutable model: parameter values, gradients, a context and its resources. Used by
/// one thread at a time. After an exception the values are unchanged and the next step starts from zero gradients.
template <class Model, class Space_ = HostSpace>
class Replica : public detail::ReplicaBase<nn::Context<nn::ActivationsOf<Model>, Space_>> {
 public:
  /// the part that does not depend on the model's type
  using Base = detail::ReplicaBase<nn::Context<nn::ActivationsOf<Model>, Space_>>;
  using Space = Space_;  ///< memory in which it computes
  /// Type of a loader's batch as the model sees it.
  template <class Batch>
  using DeviceBatch = typename Base::Device::template DeviceBatch<Batch>;

  /// Creates the replica; the calling thread enters the device. Allocates `gradients` and `values` if they are empty.
  /// Model and layout must outlive the replica.
  /// @shape gradients, values [layout.size()] zeroed floats of the replica's space
  [[gnu::cold]] Replica(Model const& model, nn::ParameterLayout const& layout, Place const& place,
                        memory::Block gradients = {}, memory::Block values = {})
      : Base(layout, place, std::move(gradients), std::move(values)), model_(&model) {}

  /// Runs forward and backward of one batch, and adds its loss and gradients to the step's. On a device, sinks are
  /// called when work is queued or recorded. A pass with sinks is recorded only if `ready` is given.
  /// @returns whether the pass ran as a recording: then `ready` has the parameters that were reported during recording
  template <class Batch>
  bool run(Batch const& batch, MicroStep const& step, LossSink loss_sink = {}, nn::ReadySink ready_sink = {},
           detail::ReadyParameters* ready = nullptr) {
    auto times = this->begin_pass(step);
    typename Base::ReleaseGuard const release{device_};
    auto const& device_batch = device_.copy_to_device(batch);
    nn::Pass(context_).begin_micro_batch(nn::Mode::training, step.key, first_position(batch));
    auto const pass = [&] { run_pass(times, batch, device_batch, loss_sink, ready_sink); };
    bool const replayed =
        this->may_replay(loss_sink, ready_sink, ready) && device_.run_recorded(context_, device_batch, ready, pass);
    if (!replayed) pass();
    this->end_pass(times, replayed);
    return replayed;
  }

  /// Whether the model has the predictions that the metrics read.
  template <class Batch, class... Metric>
  static constexpr bool has_predictions = nn::HasPredict<Model, typename Base::Context, DeviceBatch<Batch>> ||
                                          !(false || ... || detail::uses_predictions<Metric>);
  /// Whether the metrics that read predictions have `add` for those of the model.
  template <class Batch, class... Metric>
  static constexpr bool metrics_add =
      (true && ... &&
       detail::AddsPrediction<Metric, typename Base::Device, Model, typename Base::Context, DeviceBatch<Batch>, Batch>);

  /// Returns the number of shapes of batches for which a step's `kinds` of passes can be rehearsed; 0 on the host.
  [[nodiscard]] static constexpr std::size_t max_rehearsals(std::size_t kinds) noexcept {
    if constexpr (Space::host_accessible)
      return 0;
    else
      return Base::Device::max_recordings / (Base::Device::batch_addresses * std::max<std::size_t>(kinds, 1));
  }
  /// Makes memory, plans and recordings for batches of these shapes, in a GPU's memory: runs the kinds of passes once
  /// on each batch, then records them for each address that such a batch can have, unless `makes` is plans. Order the
  /// batches by size, the largest first, and the kinds as in a step. Parameters and buffers are unchanged; gradients
  /// and loss are undefined until the next step begins.
  /// @returns the number of batches whose passes are recorded; less than all if passes cannot be recorded
  /// @throws CudaError, such as for insufficient memory
  template <class Batch>
  [[nodiscard, gnu::cold]] Index rehearse([[maybe_unused]] std::span<Batch const> batches,
                                          [[maybe_unused]] std::vector<PassKind> const& kinds,
                                          [[maybe_unused]] Rehearse makes = Rehearse::recordings) {
    if constexpr (!Space::host_accessible)
      if constexpr (std::equality_comparable<DeviceBatch<Batch>>)
        if (!this->traced_) return detail::Rehearsal<Replica>(*this).run(batches, kinds, makes);
    return 0;
  }

  /// Runs the batches of all shards in turns. Afterwards loss and gradients are sums over the shards. Sinks are called
  /// for the sums, in the last shard's pass.
  template <class Batch>
  bool run_shards(std::span<Batch const> batches, MicroStep const& step, LossSink loss_sink = {},
                  nn::ReadySink ready_sink = {}) {
    if (this->shards() == 1) return run(batches[0], step, loss_sink, ready_sink);
    auto run_shard = [&](int shard, LossSink loss, nn::ReadySink ready) {
      run(batches[static_cast<std::size_t>(shard)], step, loss, ready);
    };
    using Run = decltype(run_shard);
    this->run_in_turns(step, loss_sink, ready_sink,
                       {[](void* self, int shard, LossSink loss, nn::ReadySink ready) {
                          (*static_cast<Run*>(self))(shard, loss, ready);
                        },
                        &run_shard});
    return false;
  }
  /// Calls f(number, replica) for each shard, with the shard's buffers. `device` is the process's number of this
  /// device.
  template <class Function>
  void for_shards(int device, Function&& f) {
    device_.enter();
    for (int shard = 0; shard < this->shards(); ++shard) {
      this->select_shard(shard);
      f(device * this->shards() + shard, *this);
    }
    this->select_shard(0);
  }

  /// Starts to copy a batch for the next `run` while the device is busy. The batch must not change until then.
  template <class Batch>
  void prefetch(Batch const& batch) {
    device_.enter();
    device_.prefetch(batch);
  }

  /// Returns the loss of a batch. Passes the model's prediction or the parts of its loss to the metrics. Learns
  /// nothing. A model with its own `forward` runs again for its prediction.
  template <class Batch, class... Metric>
  nn::Loss<HostSpace> evaluate(Batch const& batch, Metric&... metrics) {
    device_.enter();
    this->update_shadow();
    typename Base::ReleaseGuard const release{device_};
    auto const& device_batch = device_.copy_to_device(batch);
    return with_row_position(
        batch, [&] { return detail::evaluate_batch(device_, *model_, context_, device_batch, batch, metrics...); });
  }

 private:
  friend detail::Rehearsal<Replica>;
  using Base::context_;
  using Base::device_;

  /// Runs forward and backward in a micro-batch that has begun.
  template <class Batch, class OnDevice>
  void run_pass(typename Base::PassTimes& times, Batch const& batch, OnDevice const& device_batch, LossSink loss_sink,
                nn::ReadySink ready_sink) {
    with_row_position(batch, [&] { device_.add_loss(nn::loss_of(*model_, context_, device_batch)); });
    this->run_backward(times, loss_sink, ready_sink);
  }

  /// Returns the position in the epoch of a batch's first sample; 0 if the batch has no positions.
  template <class Batch>
  [[nodiscard]] static Index first_position(Batch const& batch) {
    if constexpr (requires { batch.positions()(Index{0}); })
      if (batch.rows() > 0) return batch.positions()(Index{0});
    return 0;
  }
  /// Calls f and adds the row's position in the epoch to a layer's RowError.
  template <class Batch, class Function>
  static auto with_row_position(Batch const& batch, Function&& f) {
    try {
      return f();
    } catch (RowError const& error) {
      if constexpr (requires { batch.positions()(Index{0}); })
        if (error.position() < 0 && error.row() < batch.rows())
          detail::throw_with_position(error, batch.positions()(error.row()));
      throw;
    }
  }

  Model const* model_;
};

}}}  // namespace lockstep::parallel
