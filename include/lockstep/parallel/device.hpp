// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/memory/any_host_resource.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/parallel/device_facts.hpp>
#include <lockstep/parallel/device_work.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {
namespace detail {

/// Parameters whose gradients a pass has reported as complete, in order: offset and size.
using ReadyParameters = std::vector<std::pair<Index, Index>>;

/// Placeholders for a batch, a context and functions in the concepts below.
struct MovableBatch {
  template <class Move>
  friend MovableBatch moved(MovableBatch batch, Move const&) {
    return batch;
  }
};
struct AnyContext {};
struct AnyPass {
  void operator()() const {}
};
struct AnyTotals {
  void operator()(double*) const {}
};

}  // namespace detail

/// Requires a constructor from a Place, the `stream()` for the device's work, and `enter()`, which makes the device
/// current in the calling thread.
template <class Candidate>
concept QueuesWork = std::constructible_from<Candidate, Place const&> && requires(Candidate& device) {
  typename Candidate::Event;  // a point in the queued work, for other streams
  device.stream().synchronize();
  device.enter();
};

/// Requires copies between the host and the device's memory: `write` of floats, `zero` of floats, and `put` and `get`
/// of a plain value.
template <class Candidate>
concept MovesValues = requires(Candidate const& device, std::span<float const> from, float* to, double const& number,
                               double* there) {
  device.write(from, to);
  device.zero(to, Index{});
  device.put(number, there);
  { device.get(&number) } -> std::same_as<double>;
};

/// Requires `copy_to_device(batch)`, which returns a loader's batch as the model sees it, a DeviceBatch; `release()`,
/// which waits until the host's batch is free; and `copy_to_host(prediction)`, for metrics.
template <class Candidate>
concept TakesBatches = requires(Candidate& device, detail::MovableBatch const& batch) {
  {
    device.copy_to_device(batch)
    } -> std::convertible_to<typename Candidate::template DeviceBatch<detail::MovableBatch>>;
  { device.copy_to_host(batch) } -> std::convertible_to<detail::MovableBatch>;
  device.release();
};

/// Requires `run_recorded(context, batch, ready, pass)`, which runs a pass as a recording and returns true, or returns
/// false if the pass must run as usual; and `expect_not_recorded(what)`, which ends a recording by an exception.
template <class Candidate>
concept RunsRecordings = requires(Candidate& device, detail::AnyContext& context, detail::MovableBatch const& batch,
                                  detail::ReadyParameters* ready, detail::AnyPass const& pass) {
  { device.run_recorded(context, batch, ready, pass) } -> std::same_as<bool>;
  device.expect_not_recorded("");
};

/// Requires times of the queued work: `now()`, a TimePoint; `add_phase` and `take_phases`, which sum phases; `trace`,
/// which also records them; `begin_pass`, `end_pass` and `take_work`, which measure a GPU's passes; and `facts`.
template <class Candidate>
concept MeasuresWork = requires(Candidate& device, double PhaseSeconds::*phase, typename Candidate::TimePoint time,
                                Timeline* timeline) {
  { device.now() } -> std::same_as<typename Candidate::TimePoint>;
  device.add_phase(phase, time, time);
  { device.take_phases() } -> std::same_as<PhaseSeconds>;
  device.trace(timeline);
  device.begin_pass(true);
  device.end_pass(time, time, false);
  { device.take_work(0.0) } -> std::same_as<DeviceWork>;
  { device.facts() } -> std::same_as<DeviceFacts>;
};

/// Requires the loss of a step in the device's memory: `begin_step` resets it, `add_loss` adds a batch's, `change_loss`
/// passes its sum and weight to a function, and `loss` returns it. `read` waits for it on the host; `begin_read` and
/// `end_read` are its halves.
template <class Candidate>
concept HoldsLoss = requires(Candidate& device, typename Candidate::Loss const& loss, detail::AnyTotals const& f) {
  device.begin_step();
  device.add_loss(loss);
  device.change_loss(f);
  { device.loss() } -> std::convertible_to<typename Candidate::Loss>;
  { device.read(loss) } -> std::convertible_to<nn::Loss<HostSpace>>;
  device.begin_read(loss);
  { device.end_read() } -> std::convertible_to<nn::Loss<HostSpace>>;
};

/// Requires all that a replica asks of the place where it computes: the host or a GPU. Used by one thread at a time.
template <class Candidate>
concept Device = QueuesWork<Candidate> && MovesValues<Candidate> && TakesBatches<Candidate> &&
    RunsRecordings<Candidate> && MeasuresWork<Candidate> && HoldsLoss<Candidate>;

/// Requires also what a replica asks of a device whose memory the host cannot access. `prefetch` starts to copy a batch
/// from `batch_memory()`, and `cancel_prefetch` discards it. `read`, `copy_to_host` and `copy_from_host` wait for a
/// copy. `prepare_recording` records a pass without running it; batches of one shape have `batch_addresses` addresses
/// in turns. `record` and `await` mark and wait for a point in the queued work. `begin_sum`, `summed` and `write_sum`
/// hold the loss over all devices. `choose_gemm_algorithms` and `set_gemm_algorithms` tune matrix products. `gpu` is
/// the device's number, and `free_memory` the memory of a device.
template <class Candidate>
concept DeviceWithMemory = Device<Candidate> &&
    requires(Candidate& device, detail::AnyContext& context, detail::MovableBatch const& batch,
             detail::ReadyParameters* ready, float* floats, std::span<float> to, typename Candidate::Event& event,
             nn::Loss<HostSpace> const& loss, detail::AnyPass const& poll) {
  { Candidate::batch_memory() } -> std::same_as<memory::AnyHostResource>;
  device.prefetch(batch);
  device.cancel_prefetch();
  { Candidate::batch_addresses } -> std::convertible_to<std::size_t>;
  { device.prepare_recording(context, batch, ready, poll) } -> std::same_as<bool>;
  device.read(floats, to);
  device.copy_to_host(floats, floats, std::size_t{});
  device.copy_from_host(floats, floats, std::size_t{});
  device.record(event);
  Candidate::await(event, poll);
  device.begin_sum();
  { device.summed() } -> std::convertible_to<typename Candidate::Loss>;
  { device.write_sum(loss) } -> std::convertible_to<typename Candidate::Loss>;
  { device.choose_gemm_algorithms() } -> std::same_as<std::string>;
  device.set_gemm_algorithms(std::string());
  { device.gpu() } -> std::same_as<int>;
  Candidate::free_memory(0).free_bytes;
};

}}}  // namespace lockstep::parallel
