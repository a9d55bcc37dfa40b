// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
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
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/loss/named_loss.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/parallel/detail/arena.hpp>
#include <lockstep/parallel/detail/device.hpp>
#include <lockstep/parallel/detail/replica_groups.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica/detail/replica_loss_scale.hpp>
#include <lockstep/parallel/replica/detail/shard_buffers.hpp>
#include <lockstep/parallel/replica/detail/shard_sum.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Callback for the loss of a micro-batch, before its backward begins.
struct LossSink {
  void (*call)(void* self) = nullptr;
  void* self = nullptr;
};

/// A pass that a replica rehearses: whether it is the first of its step, and its sinks, as Replica::run takes them.
struct PassKind {
  bool first = true;
  LossSink loss_sink{};
  nn::ReadySink ready_sink{};
  detail::ReadyParameters* ready = nullptr;
};

namespace detail {

/// Throws a layer's RowError again, with the position of its row in the epoch.
[[noreturn, gnu::cold]] inline void throw_with_position(RowError const& error, Index position) {
  throw RowError(error.what(), error.row(), position);
}

/// Part of a Replica that does not depend on the types of the model and of its batches. The library instantiates it for
/// float on the host.
template <class Context_>
class ReplicaBase {
 public:
  using Context = Context_;
  using Space = typename Context::Space;
  using Base = ReplicaBase;  ///< of a Replica
  using Device = detail::Device<Space>;
  using Event = typename Device::Event;
  using PassKind = parallel::PassKind;
  static constexpr bool scales_loss = std::is_same_v<typename Context::Scalar, float16>;
  /// Bytes per element of the arena: value, gradient and, if matrix products take 16 bits, the value's shadow.
  static constexpr std::size_t bytes_per_element =
      2 * sizeof(float) +
      (std::is_same_v<nn::Operand<Context>, typename Context::Real> ? 0 : sizeof(typename Context::Scalar));

  ReplicaBase(ReplicaBase const&) = delete;
  ReplicaBase& operator=(ReplicaBase const&) = delete;

  /// Sets the group with which passes exchange data; it must outlive the replica. Shards in turns exchange with none.
  void set_group(nn::ReplicaGroup& group) noexcept {
    if (shards() == 1) context_.parts().replicas.bind_group(&group);
  }

  /// Returns how many shards of each micro-step the replica computes.
  [[nodiscard]] int shards() const noexcept { return shard_sum_.shards(); }

  /// Records the times of operations and phases in `timeline`, for steps that begin after this call. Passes are not
  /// recorded as graphs then. Null ends it and converts all entries to seconds.
  void trace(Timeline* timeline);

  // Templates, because an explicit instantiation of the class by clang 14 ignores the constraints of its members.
  /// Returns the host memory for batches that are copied to the device.
  template <class In = Space>
  [[nodiscard]] static memory::AnyHostResource batch_memory() requires(!In::host_accessible) {
    return Device::batch_memory();
  }
  /// Discards the batch that was prefetched last.
  template <class In = Space>
  void cancel_prefetch() requires(!In::host_accessible) {
    device_.cancel_prefetch();
  }

  /// Zeroes the gradients of parameters that no layer used in this step. Gradients by rows have no touched row then.
  void zero_unused() {
    if (shards() == 1) zero_unwritten();  // else each shard's gradients were zeroed
  }
  /// Returns, for each parameter in the layout's order, 1 if a step so far has used it, else 0.
  [[nodiscard]] std::vector<double> const& used() const noexcept { return used_; }
  /// Returns the names of parameters that are not frozen and have 0 in `used`, which may be summed over replicas.
  [[nodiscard, gnu::cold]] std::vector<std::string> unused(std::span<double const> used) const;

  /// Returns the loss of the step so far, in the replica's space.
  [[nodiscard]] nn::Loss<Space> const& loss() const noexcept { return device_.loss(); }
  /// Returns the loss of the step so far on the host. Waits for the device.
  [[nodiscard]] nn::Loss<HostSpace> read_loss() { return device_.read(device_.loss()); }
  /// Returns the names of the parts of the step's loss, and a part, summed over all shards. Waits for the device.
  [[nodiscard]] std::vector<std::string> const& loss_part_names() { return nn::detail::step_losses(context_).names(); }
  [[nodiscard]] nn::Loss<HostSpace> read_loss_part(std::size_t i) {
    return device_.read(nn::detail::step_losses(context_)[i]);
  }
  /// Returns the parameters on the host. For a device this is a copy that the next call overwrites.
  [[nodiscard]] std::span<float> values() const { return values_.on_host(device_); }
  void set_values(std::span<float const> values) { device_.write(values, value_data()); }
  /// Returns the buffers of this replica, or of its first shard, on the host, as values().
  [[nodiscard]] std::span<float> buffers() const { return buffers_.on_host(device_); }
  /// Returns the mean of the shards' buffers, on the host. Only set_buffers may follow.
  [[nodiscard]] std::span<float> mean_buffers() { return shards() == 1 ? buffers() : shard_buffers_.mean(device_); }
  /// Sets the buffers of all shards.
  void set_buffers(std::span<float const> buffers);

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
    return device_.take_work(5 * static_cast<double>(nn::Pass(context_).activation_bytes()) +
                             3 * static_cast<double>(bytes_of(size())));
  }
  /// Returns the facts about a GPU; empty on the CPU.
  [[nodiscard]] DeviceFacts device_facts() const { return device_.facts(); }
  /// Returns the bytes of values, their shadow, gradients, sums over shards, and activations.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_per_element * static_cast<std::size_t>(size()) + shard_sum_.bytes() +
           nn::Pass(context_).activation_bytes();
  }

 protected:
  static constexpr bool has_shadow = !std::is_same_v<nn::Operand<Context>, typename Context::Real>;
  using Shadow = std::conditional_t<has_shadow, typename Context::Scalar, bfloat16>;
  using TimePoint = typename Device::TimePoint;

  /// Releases the host's batch at the end of the scope, also after an exception.
  struct ReleaseGuard {
    Device const& device;
    ~ReleaseGuard() { device.release(); }
  };
  /// Times of a pass.
  struct PassTimes {
    TimePoint begin, middle;
    double in_forward = 0;
  };
  /// Runs the pass of the selected shard, of a run over several shards in turns.
  struct ShardPass {
    void (*call)(void* self, int shard, LossSink loss_sink, nn::ReadySink ready_sink);
    void* self;
  };

  ReplicaBase(nn::ParameterLayout const& layout, Place const& place, memory::Block gradients, memory::Block values);
  ~ReplicaBase();

  /// Begins a pass, before its batch is copied.
  [[nodiscard]] PassTimes begin_pass(MicroStep const& step);
  /// Runs backward after forward.
  void run_backward(PassTimes& times, LossSink loss_sink, nn::ReadySink ready_sink);
  void end_pass(PassTimes const& times, bool replayed);
  [[nodiscard]] bool may_replay(LossSink loss_sink, nn::ReadySink ready_sink, ReadyParameters const* ready) const {
    return !traced_ && (ready || (!loss_sink.call && !ready_sink.call));
  }
  void run_in_turns(MicroStep const& step, LossSink loss_sink, nn::ReadySink ready_sink, ShardPass const& pass);

  [[nodiscard]] static std::size_t bytes_of(Index floats) noexcept {
    return static_cast<std::size_t>(floats) * sizeof(float);
  }
  void update_shadow() {
    if constexpr (has_shadow)
      if (std::exchange(shadow_outdated_, false))
        kernel::Convert<Space>::template run<Shadow, float>(stream(), {values_.data(), {size()}},
                                                            {shadow_.data(), {size()}});
  }
  void select_shard(int shard) { shard_buffers_.select(device_, shard, buffers_.data()); }

  nn::ParameterLayout const* layout_;
  Device device_;
  detail::Arena<Space> values_, buffers_;
  memory::Buffer<Shadow, Space> shadow_;  // of the values; empty if matrix products take float
  bool shadow_outdated_ = true, traced_ = false;
  memory::Block gradients_;
  Context context_;

 private:
  [[nodiscard]] static detail::ShardSum<Space> bind_context(Context& context, float const* values, float* gradients,
                                                            nn::ParameterLayout const& layout, int shards);
  void run_last(int shard, LossSink loss_sink, nn::ReadySink ready_sink, ShardPass const& pass);
  void sum_loss();
  void sum_ready(Index offset, Index count);
  void sum_remaining();
  void sum(Index offset, Index count);
  void zero_unwritten();

  detail::ReplicaLossScale<typename Context::Scalar, Space> loss_scale_;
  detail::ShardSum<Space> shard_sum_;
  std::vector<Index> summed_;  // offsets of parameters that the current shard has already added
  detail::ShardBuffers<Space> shard_buffers_;
  std::vector<double> used_;
  detail::SequentialShards sequential_shards_;
};

template <class Context>
[[gnu::cold]] ReplicaBase<Context>::ReplicaBase(nn::ParameterLayout const& layout, Place const& place,
                                                memory::Block gradients, memory::Block values)
    : layout_(&layout),
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
  context_.parameters().bind_buffers(buffers_.data());
  if constexpr (has_shadow) {
    shadow_ = memory::Buffer<Shadow, Space>(layout.size(), memory::DefaultResource<Space>{});
    context_.parameters().bind_half_precision_values(shadow_.data());
  }
  loss_scale_.bind(device_, context_);
  context_.parts().replicas.bind_group(&sequential_shards_);
}

template <class Context>
[[gnu::cold]] ReplicaBase<Context>::~ReplicaBase() = default;

template <class Context>
detail::ShardSum<typename Context::Space> ReplicaBase<Context>::bind_context(Context& context, float const* values,
                                                                             float* gradients,
                                                                             nn::ParameterLayout const& layout,
                                                                             int shards) {
  context.parameters().bind(values, gradients, layout);
  return detail::ShardSum<Space>(shards, layout.size(), context.parameters().gradients().touched());
}

template <class Context>
typename ReplicaBase<Context>::PassTimes ReplicaBase<Context>::begin_pass(MicroStep const& step) {
  device_.enter();
  if (step.first) {
    nn::Pass(context_).begin_step();
    device_.begin_step();
    if (shards() == 1) nn::detail::step_losses(context_).begin_step(stream());
  }
  update_shadow();
  device_.begin_pass(!traced_);
  auto const begin = device_.now();
  return {begin, begin};
}

template <class Context>
void ReplicaBase<Context>::run_backward([[maybe_unused]] PassTimes& times, LossSink loss_sink,
                                        nn::ReadySink ready_sink) {
  nn::Pass(context_).end_forward();
  if (loss_sink.call) loss_sink.call(loss_sink.self);
  if constexpr (Space::host_accessible) {
    times.middle = device_.now();
    times.in_forward = context_.parts().replicas.take_exchange_seconds();
  }
  nn::Pass(context_).backward(ready_sink);
}

template <class Context>
void ReplicaBase<Context>::end_pass(PassTimes const& times, bool replayed) {
  auto const end = device_.now();
  device_.end_pass(times.begin, end, replayed);
  if constexpr (Space::host_accessible) {
    device_.add_phase(&PhaseSeconds::forward, times.begin, times.middle);
    device_.add_phase(&PhaseSeconds::backward, times.middle, end);
    device_.count_as_communication(&PhaseSeconds::forward, times.in_forward);
    device_.count_as_communication(&PhaseSeconds::backward, context_.parts().replicas.take_exchange_seconds());
  } else {
    device_.add_phase(&PhaseSeconds::pass, times.begin, end);
  }
}

template <class Context>
void ReplicaBase<Context>::run_in_turns(MicroStep const& step, LossSink loss_sink, nn::ReadySink ready_sink,
                                        ShardPass const& pass) {
  device_.enter();
  if (step.first) nn::detail::step_losses(context_).begin_step(stream());
  for (int shard = 0; shard < shards(); ++shard) {
    select_shard(shard);
    if (!step.first)
      device_.change_loss([&](double* totals) {
        context_.parameters().gradients().set_written(shard_sum_.restore(stream(), shard, gradient_data(), totals));
      });
    if (step.last) {
      shard_sum_.begin(shard);
      bool const completes = shard + 1 == shards();
      run_last(shard, completes ? loss_sink : LossSink{}, completes ? ready_sink : nn::ReadySink{}, pass);
    } else {
      pass.call(pass.self, shard, {}, {});
      device_.change_loss([&](double* totals) {
        shard_sum_.save(stream(), shard, gradient_data(), totals, context_.parameters().gradients().written());
      });
    }
  }
  select_shard(0);
}

/// Runs the last micro-batch of a shard's step and adds the sums of the shards before it.
template <class Context>
void ReplicaBase<Context>::run_last(int shard, LossSink loss_sink, nn::ReadySink ready_sink, ShardPass const& pass) {
  struct Relay {
    ReplicaBase* replica;
    LossSink loss;
    nn::ReadySink ready;
  } relay{this, loss_sink, ready_sink};
  summed_.clear();
  if (ready_sink.call) {
    pass.call(pass.self, shard,
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
    pass.call(pass.self, shard, {}, {});
    sum_loss();
  }
  auto const begin = device_.now();
  zero_unwritten();
  sum_remaining();
  device_.add_phase(Space::host_accessible ? &PhaseSeconds::backward : &PhaseSeconds::pass, begin, device_.now());
}

template <class Context>
void ReplicaBase<Context>::sum_loss() {
  device_.change_loss([this](double* totals) { shard_sum_.add_totals(stream(), totals); });
}

/// Adds a parameter's sums. Tables wait until all touched rows are known.
template <class Context>
void ReplicaBase<Context>::sum_ready(Index offset, Index count) {
  if (count == 0) return;
  for (auto const& table : touched())
    if (table.offset == offset) return;
  sum(offset, count);
  summed_.push_back(offset);
}

template <class Context>
void ReplicaBase<Context>::sum_remaining() {
  shard_sum_.unite_touched_rows(gradient_data());
  if (summed_.empty()) return sum(0, size());
  std::sort(summed_.begin(), summed_.end());
  for (auto const& entry : layout_->entries())
    if (entry.size > 0 && !std::binary_search(summed_.begin(), summed_.end(), entry.offset))
      sum(entry.offset, entry.size);
}

template <class Context>
void ReplicaBase<Context>::sum(Index offset, Index count) {
  kernel::for_written(touched(), offset, offset + nn::ParameterLayout::padded(count),
                      [this](Index begin, Index end) { shard_sum_.add(stream(), gradient_data(), begin, end); });
}

template <class Context>
void ReplicaBase<Context>::zero_unwritten() {
  device_.enter();
  auto const& entries = layout_->entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (context_.parameters().gradients().written(i))
      used_[i] = 1;
    else if (!entries[i].frozen && !(Space::host_accessible && entries[i].by_rows()))
      device_.zero(gradient_data() + entries[i].offset, entries[i].size);
  }
}

template <class Context>
void ReplicaBase<Context>::trace(Timeline* timeline) {
  traced_ = timeline != nullptr;
  device_.trace(timeline);
  nn::Pass(context_).trace(
      timeline, [](void* device) { return static_cast<double>(static_cast<Device*>(device)->now()); }, &device_);
}

template <class Context>
[[gnu::cold]] std::vector<std::string> ReplicaBase<Context>::unused(std::span<double const> used) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (auto const& entry = layout_->entries()[i]; used[i] == 0 && entry.size > 0 && !entry.frozen)
      names.push_back(entry.name);
  return names;
}

template <class Context>
void ReplicaBase<Context>::set_buffers(std::span<float const> buffers) {
  device_.write(buffers, buffers_.data());
  shard_buffers_.set(device_, buffers);
}

#if defined(LOCKSTEP_COMPILED)
extern template class ReplicaBase<nn::Context<float, HostSpace>>;
#endif

}  // namespace detail
}}}  // namespace lockstep::parallel
