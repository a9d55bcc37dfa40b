// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/kernel/copy/convert.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/memory/any_host_resource.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/parallel/detail/device.hpp>
#include <lockstep/parallel/detail/replica_groups.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica/detail/arena.hpp>
#include <lockstep/parallel/replica/detail/evaluate_batch.hpp>
#include <lockstep/parallel/replica/detail/replica_loss_scale.hpp>
#include <lockstep/parallel/replica/detail/shard_buffers.hpp>
#include <lockstep/parallel/replica/detail/shard_sum.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Callback for the loss of a micro-batch, before its backward begins.
struct LossSink {
  void (*call)(void* self) = nullptr;
  void* self = nullptr;
};

/// One device's replica of a shared, immutable model: parameter values, gradients, a context and its resources. Used by
/// one thread at a time. After an exception the values are unchanged and the next step starts from zero gradients.
template <class Model, class Space_ = HostSpace>
class Replica {
  using Device = detail::Device<Space_>;

 public:
  using Space = Space_;
  using Event = typename Device::Event;
  using Context = nn::Context<nn::ActivationsOf<Model>, Space>;
  static constexpr bool scales_loss = std::is_same_v<typename Context::Scalar, float16>;
  /// Bytes per element of the arena: value, gradient and, if matrix products take 16 bits, the value's shadow.
  static constexpr std::size_t bytes_per_element =
      2 * sizeof(float) +
      (std::is_same_v<nn::Operand<Context>, typename Context::Real> ? 0 : sizeof(typename Context::Scalar));
  /// Type of a loader's batch as the model sees it.
  template <class Batch>
  using DeviceBatch = typename Device::template DeviceBatch<Batch>;

  /// Creates the replica; the calling thread enters the device. Allocates `gradients` and `values` if they are empty.
  /// Model and layout must outlive the replica.
  /// @shape gradients, values [layout.size()] zeroed floats of the replica's space
  [[gnu::cold]] Replica(Model const& model, nn::ParameterLayout const& layout, Place const& place,
                        memory::Block gradients = {}, memory::Block values = {})
      : model_(&model),
        layout_(&layout),
        device_(place),
        values_(layout.size(), std::move(values)),
        buffers_(layout.buffer_size()),
        gradients_(gradients.data() ? std::move(gradients)
                                    : memory::DefaultResource<Space>{}.allocate(bytes_of(layout.size()))),
        context_(device_.stream()),
        shard_sum_(bind_context(context_, values_.data(), gradient_data(), layout, place.shards)),
        shard_buffers_(place.shards, layout.buffer_size()),
        used_(layout.entries().size()),
        sequential_shards_(place.shards) {
    memory::Buffer<float> start(layout.buffer_size());
    nn::initialize_buffers(layout, start.data());
    set_buffers(start.span());
    context_.bind_buffers(buffers_.data());
    if constexpr (has_shadow) {
      shadow_ = memory::Buffer<Shadow, Space>(layout.size(), memory::DefaultResource<Space>{});
      context_.parameters().bind_half_precision_values(shadow_.data());
    }
    loss_scale_.bind(device_, context_);
    context_.replicas().bind_group(&sequential_shards_);
  }
  /// Sets the group with which passes exchange data; it must outlive the replica. Shards in turns exchange with none.
  void set_group(nn::ReplicaGroup& group) noexcept {
    if (shards() == 1) context_.replicas().bind_group(&group);
  }

  /// Runs forward and backward of one batch, and adds its loss and gradients to the step's. On a device, sinks are
  /// called when work is queued or recorded. A pass with sinks is recorded only if `ready` is given.
  /// @returns whether the pass ran as a recording: then `ready` has the parameters that were reported during recording
  template <class Batch>
  bool run(Batch const& batch, MicroStep const& step, LossSink loss_sink = {}, nn::ReadySink ready_sink = {},
           detail::ReadyParameters* ready = nullptr) {
    device_.enter();
    if (step.first) {
      context_.begin_step();
      device_.begin_step();
    }
    update_shadow();
    device_.begin_pass(!traced_);
    auto const begin = device_.now();
    ReleaseGuard const release{device_};
    auto const& device_batch = device_.copy_to_device(batch);
    context_.begin_micro_batch(nn::Mode::training, step.key);
    auto middle = begin;
    double in_forward = 0;
    auto const pass = [&] {
      with_row_position(batch, [&] { device_.add_loss(nn::loss_of(*model_, context_, device_batch)); });
      context_.end_forward();
      if (loss_sink.call) loss_sink.call(loss_sink.self);
      if constexpr (Space::host_accessible)
        middle = device_.now(), in_forward = context_.replicas().take_exchange_seconds();
      context_.backward(ready_sink);
    };
    bool const replayed = !traced_ && (ready || (!loss_sink.call && !ready_sink.call)) &&
                          device_.run_recorded(context_, device_batch, ready, pass);
    if (!replayed) pass();
    auto const end = device_.now();
    device_.end_pass(begin, end, replayed);
    if constexpr (Space::host_accessible) {
      device_.add_phase(&PhaseSeconds::forward, begin, middle);
      device_.add_phase(&PhaseSeconds::backward, middle, end);
      device_.count_as_communication(&PhaseSeconds::forward, in_forward);
      device_.count_as_communication(&PhaseSeconds::backward, context_.replicas().take_exchange_seconds());
    } else {
      device_.add_phase(&PhaseSeconds::pass, begin, end);
    }
    return replayed;
  }

  /// Runs the batches of all shards in turns. Afterwards loss and gradients are sums over the shards. Sinks are called
  /// for the sums, in the last shard's pass.
  template <class Batch>
  bool run_shards(std::span<Batch const> batches, MicroStep const& step, LossSink loss_sink = {},
                  nn::ReadySink ready_sink = {}) {
    if (shards() == 1) return run(batches[0], step, loss_sink, ready_sink);
    device_.enter();
    for (int shard = 0; shard < shards(); ++shard) {
      auto const& batch = batches[static_cast<std::size_t>(shard)];
      select_shard(shard);
      if (!step.first)
        device_.change_loss([&](double* totals) {
          context_.parameters().gradients().set_written(shard_sum_.restore(stream(), shard, gradient_data(), totals));
        });
      if (step.last) {
        shard_sum_.begin(shard);
        bool const completes = shard + 1 == shards();
        run_last(batch, step, completes ? loss_sink : LossSink{}, completes ? ready_sink : nn::ReadySink{});
      } else {
        run(batch, step);
        device_.change_loss([&](double* totals) {
          shard_sum_.save(stream(), shard, gradient_data(), totals, context_.parameters().gradients().written());
        });
      }
    }
    select_shard(0);
    return false;
  }
  /// Returns how many shards of each micro-step the replica computes.
  [[nodiscard]] int shards() const noexcept { return shard_sum_.shards(); }
  /// Calls f(number, replica) for each shard, with the shard's buffers. `device` is the process's number of this
  /// device.
  template <class Function>
  void for_shards(int device, Function&& f) {
    device_.enter();
    for (int shard = 0; shard < shards(); ++shard) {
      select_shard(shard);
      f(device * shards() + shard, *this);
    }
    select_shard(0);
  }

  /// Records the times of operations and phases in `timeline`, for steps that begin after this call. Passes are not
  /// recorded as graphs then. Null ends it and converts all entries to seconds.
  void trace(Timeline* timeline) {
    traced_ = timeline != nullptr;
    device_.trace(timeline);
    context_.trace(
        timeline, [](void* device) { return static_cast<double>(static_cast<Device*>(device)->now()); }, &device_);
  }

  /// Returns the host memory for batches that are copied to the device.
  [[nodiscard]] static memory::AnyHostResource batch_memory() { return Device::batch_memory(); }
  /// Starts to copy a batch for the next `run` while the device is busy. The batch must not change until then.
  template <class Batch>
  void prefetch(Batch const& batch) {
    device_.enter();
    device_.prefetch(batch);
  }
  /// Discards the batch that was prefetched last.
  void cancel_prefetch() { device_.cancel_prefetch(); }

  /// Returns the loss of a batch. Passes the model's prediction or the parts of its loss to the metrics. Learns
  /// nothing. A model with its own `forward` runs again for its prediction.
  template <class Batch, class... Metric>
  nn::Loss<HostSpace> evaluate(Batch const& batch, Metric&... metrics) {
    device_.enter();
    update_shadow();
    ReleaseGuard const release{device_};
    auto const& device_batch = device_.copy_to_device(batch);
    return with_row_position(
        batch, [&] { return detail::evaluate_batch(device_, *model_, context_, device_batch, batch, metrics...); });
  }

  /// Zeroes the gradients of parameters that no layer used in this step. Gradients by rows have no touched row then.
  void zero_unused() {
    if (shards() == 1) zero_unwritten();  // else each shard's gradients were zeroed
  }
  /// Returns, for each parameter in the layout's order, 1 if a step so far has used it, else 0.
  [[nodiscard]] std::vector<double> const& used() const noexcept { return used_; }
  /// Returns the names of parameters that are not frozen and have 0 in `used`, which may be summed over replicas.
  [[nodiscard, gnu::cold]] std::vector<std::string> unused(std::span<double const> used) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < used.size(); ++i)
      if (auto const& entry = layout_->entries()[i]; used[i] == 0 && entry.size > 0 && !entry.frozen)
        names.push_back(entry.name);
    return names;
  }

  /// Returns the loss of the step so far, in the replica's space.
  [[nodiscard]] nn::Loss<Space> const& loss() const noexcept { return device_.loss(); }
  /// Returns the loss of the step so far on the host. Waits for the device.
  [[nodiscard]] nn::Loss<HostSpace> read_loss() { return device_.read(device_.loss()); }
  /// Returns the parameters on the host. For a device this is a copy that the next call overwrites.
  [[nodiscard]] std::span<float> values() const { return values_.on_host(device_); }
  void set_values(std::span<float const> values) { device_.write(values, value_data()); }
  /// Returns the buffers of this replica, or of its first shard, on the host, as values().
  [[nodiscard]] std::span<float> buffers() const { return buffers_.on_host(device_); }
  /// Returns the mean of the shards' buffers, on the host. Only set_buffers may follow.
  [[nodiscard]] std::span<float> mean_buffers() { return shards() == 1 ? buffers() : shard_buffers_.mean(device_); }
  /// Sets the buffers of all shards.
  void set_buffers(std::span<float const> buffers) {
    device_.write(buffers, buffers_.data());
    shard_buffers_.set(device_, buffers);
  }

  /// Returns the number of elements of an arena.
  [[nodiscard]] Index size() const noexcept { return layout_->size(); }
  [[nodiscard]] Device& device() noexcept { return device_; }
  [[nodiscard]] float const* value_data() const noexcept { return values_.data(); }
  /// Returns the values for writing, before the next pass.
  [[nodiscard]] float* value_data() noexcept {
    shadow_outdated_ = true;
    return values_.data();
  }
  /// Output of an optimizer step: the values, and their 16-bit shadow if matrix products take 16 bits.
  struct UpdateTarget {
    float* values;
    optim::HalfPrecisionCopy shadow;
  };
  [[nodiscard]] UpdateTarget update_target() noexcept { return {values_.data(), shadow_.data()}; }
  /// Returns the loss scale, with scales_loss.
  [[nodiscard]] auto& loss_scale() noexcept { return loss_scale_; }
  [[nodiscard]] float* gradient_data() const noexcept { return reinterpret_cast<float*>(gradients_.data()); }
  /// Returns the tables with gradients by rows, in the arena's order.
  [[nodiscard]] std::span<kernel::TouchedRows const> touched() const noexcept {
    return context_.parameters().gradients().touched();
  }
  [[nodiscard]] memory::Stream<Space> stream() const noexcept { return context_.stream(); }
  /// Returns the work of a GPU's passes since the last call; empty on the CPU. Waits for the device. A pass is taken to
  /// access each activation five times (to write it, to use it in forward and backward, and its gradient twice), and
  /// each parameter three times.
  [[nodiscard]] DeviceWork take_work() {
    return device_.take_work(5 * static_cast<double>(context_.activation_bytes()) +
                             3 * static_cast<double>(bytes_of(size())));
  }
  /// Returns the bytes of values, their shadow, gradients, sums over shards, and activations.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_per_element * static_cast<std::size_t>(size()) + shard_sum_.bytes() + context_.activation_bytes();
  }

 private:
  /// Releases the host's batch at the end of the scope, also after an exception.
  struct ReleaseGuard {
    Device const& device;
    ~ReleaseGuard() { device.release(); }
  };
  static constexpr bool has_shadow = !std::is_same_v<nn::Operand<Context>, typename Context::Real>;
  using Shadow = std::conditional_t<has_shadow, typename Context::Scalar, bfloat16>;

  [[nodiscard]] static std::size_t bytes_of(Index floats) noexcept {
    return static_cast<std::size_t>(floats) * sizeof(float);
  }
  void update_shadow() {
    if constexpr (has_shadow)
      if (std::exchange(shadow_outdated_, false))
        kernel::Convert<Space>::template run<Shadow, float>(stream(), {values_.data(), {size()}},
                                                            {shadow_.data(), {size()}});
  }
  /// Calls f and adds the row's position in the epoch to a layer's RowError.
  template <class Batch, class Function>
  static auto with_row_position(Batch const& batch, Function&& f) {
    try {
      return f();
    } catch (RowError const& error) {
      if constexpr (requires { batch.positions()(Index{0}); })
        if (error.position() < 0 && error.row() < batch.rows())
          throw RowError(error.what(), error.row(), batch.positions()(error.row()));
      throw;
    }
  }
  [[nodiscard]] static detail::ShardSum<Space> bind_context(Context& context, float const* values, float* gradients,
                                                            nn::ParameterLayout const& layout, int shards) {
    context.bind(values, gradients, layout);
    return detail::ShardSum<Space>(shards, layout.size(), context.parameters().gradients().touched());
  }
  void select_shard(int shard) { shard_buffers_.select(device_, shard, buffers_.data()); }
  /// Runs the last micro-batch of a shard's step and adds the sums of the shards before it.
  template <class Batch>
  void run_last(Batch const& batch, MicroStep const& step, LossSink loss_sink, nn::ReadySink ready_sink) {
    struct Relay {
      Replica* replica;
      LossSink loss;
      nn::ReadySink ready;
    } relay{this, loss_sink, ready_sink};
    summed_.clear();
    if (ready_sink.call) {
      run(batch, step,
          {[](void* self) {
             auto& to = *static_cast<Relay*>(self);
             to.replica->sum_loss();
             if (to.loss.call) to.loss.call(to.loss.self);
           },
           &relay},
          {[](void* self, Index offset, Index count) {
             auto& to = *static_cast<Relay*>(self);
             to.replica->sum_ready(offset, count);
             to.ready.call(to.ready.self, offset, count);
           },
           &relay});
    } else {
      run(batch, step);
      sum_loss();
    }
    auto const begin = device_.now();
    zero_unwritten();
    sum_remaining();
    device_.add_phase(Space::host_accessible ? &PhaseSeconds::backward : &PhaseSeconds::pass, begin, device_.now());
  }
  void sum_loss() {
    device_.change_loss([this](double* totals) { shard_sum_.add_totals(stream(), totals); });
  }
  /// Adds a parameter's sums. Tables wait until all touched rows are known.
  void sum_ready(Index offset, Index count) {
    if (count == 0) return;
    for (auto const& table : touched())
      if (table.offset == offset) return;
    sum(offset, count);
    summed_.push_back(offset);
  }
  void sum_remaining() {
    shard_sum_.unite_touched_rows(gradient_data());
    if (summed_.empty()) return sum(0, size());
    std::sort(summed_.begin(), summed_.end());
    for (auto const& entry : layout_->entries())
      if (entry.size > 0 && !std::binary_search(summed_.begin(), summed_.end(), entry.offset))
        sum(entry.offset, entry.size);
  }
  void sum(Index offset, Index count) {
    kernel::for_written(touched(), offset, offset + nn::ParameterLayout::padded(count),
                        [this](Index begin, Index end) { shard_sum_.add(stream(), gradient_data(), begin, end); });
  }
  void zero_unwritten() {
    device_.enter();
    auto const& entries = layout_->entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (context_.parameters().gradients().written(i))
        used_[i] = 1;
      else if (!entries[i].frozen && !(Space::host_accessible && entries[i].by_rows()))
        device_.zero(gradient_data() + entries[i].offset, entries[i].size);
    }
  }

  Model const* model_;
  nn::ParameterLayout const* layout_;
  Device device_;
  detail::Arena<Space> values_, buffers_;
  memory::Buffer<Shadow, Space> shadow_;  // of the values; empty if matrix products take float
  bool shadow_outdated_ = true, traced_ = false;
  memory::Block gradients_;
  Context context_;
  detail::ReplicaLossScale<typename Context::Scalar, Space> loss_scale_;
  detail::ShardSum<Space> shard_sum_;
  std::vector<Index> summed_;  // offsets of parameters that the current shard has already added
  detail::ShardBuffers<Space> shard_buffers_;
  std::vector<double> used_;
  detail::SequentialShards sequential_shards_;
};

}}}  // namespace lockstep::parallel
