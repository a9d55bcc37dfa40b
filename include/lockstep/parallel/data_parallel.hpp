// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/tree_sum.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/parallel/device_threads.hpp>
#include <lockstep/parallel/optimizer_state.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica.hpp>
#include <lockstep/parallel/take_union.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// Several devices of one process, a replica on each: every step computes one batch per device at the same time, sums
/// the gradients into the first device's, updates there, and copies the parameters back to the others. The optimizer's
/// state lives on the first device only, which therefore needs more memory than the rest.
/// @determinism bitwise, and equal to DistributedDataParallel over as many ranks
struct DataParallel {
  int devices = 2;
  int threads = 0;  ///< of each device; 0 shares the cores equally

  [[nodiscard]] int shards() const noexcept { return devices; }
  [[nodiscard]] int first_shard() const noexcept { return 0; }
  [[nodiscard]] int all_shards() const noexcept { return devices; }
  [[nodiscard]] int threads_each() const { return threads_per_device(threads, devices); }
  [[nodiscard]] static constexpr char const* name() noexcept { return "dp"; }
  [[nodiscard]] static constexpr char const* engine() noexcept { return "self"; }

  template <class Model, class Optimizer>
  class Session {
    using DeviceReplica = Replica<Model>;

   public:
    /// `values` is the arena's start, `layout.size()` floats.
    /// @throws ConfigError when the policy has no device
    Session(DataParallel& policy, Model const& model, nn::ParameterLayout const& layout, std::span<float const> values)
        : threads_(checked(policy.devices)), state_(layout), busy_(static_cast<std::size_t>(policy.devices)) {
      replicas_.resize(static_cast<std::size_t>(policy.devices));
      threads_.run([&](int device) {  // each device's memory is touched first by its own thread
        auto& replica = replicas_[static_cast<std::size_t>(device)];
        replica = std::make_unique<DeviceReplica>(model, layout, policy.threads_each(), gradient_arena(layout));
        std::copy(values.begin(), values.end(), replica->values().begin());
      });
      for (auto const& replica : replicas_) gradients_.push_back(replica->gradient_data());
    }

    template <class Batch>
    void micro_step(std::span<Batch const> batches, MicroStep const& step) {
      auto const begin = Clock::seconds();
      threads_.run([&](int device) {
        auto const at = static_cast<std::size_t>(device);
        replicas_[at]->run(batches[at], step);
        busy_[at] += Clock::seconds() - begin;
      });
    }

    nn::Loss<HostSpace> update(Optimizer const& optimizer, UpdateSettings const& settings) {
      auto const begin = Clock::seconds();
      auto const count = static_cast<int>(replicas_.size());
      auto const size = static_cast<Index>(first().values().size());
      unite_rows();
      threads_.run([&](int device) {
        auto const at = static_cast<std::size_t>(device);
        replicas_[at]->zero_unused();
        auto const* united = united_.data();
        for (auto const& table : replicas_[at]->touched()) {
          take_union(table, united, gradients_[at]);
          united += table.bits().size();
        }
      });
      threads_.run([&](int device) {
        kernel::for_written(first().touched(), size * device / count, size * (device + 1) / count,
                            [&](Index from, Index to) { tree_sum_into_first<float>(gradients_, from, to); });
      });
      nn::Loss<HostSpace> const loss{
          tree_sum(count, [&](int i) { return replicas_[static_cast<std::size_t>(i)]->loss().sum; }),
          tree_sum(count, [&](int i) { return replicas_[static_cast<std::size_t>(i)]->loss().weight; })};
      auto const reduced = Clock::seconds();
      state_.update(optimizer, first(), loss, settings);
      auto const updated = Clock::seconds();
      threads_.run([&](int device) {
        if (device > 0)
          std::copy(values().begin(), values().end(), replicas_[static_cast<std::size_t>(device)]->values().begin());
      });
      phases_.communication += (reduced - begin) + (Clock::seconds() - updated);
      phases_.optimizer += updated - reduced;
      return loss;
    }

    template <class F>
    void each(F&& f) {
      threads_.run([&](int device) { f(device, *replicas_[static_cast<std::size_t>(device)]); });
    }
    void all_reduce(std::span<double>) {}

    /// Every replica takes the buffers of the first one.
    void share_buffers() {
      if (buffers().empty()) return;
      each([&](int device, DeviceReplica& replica) {
        if (device > 0) std::copy(buffers().begin(), buffers().end(), replica.buffers().begin());
      });
    }
    [[nodiscard]] std::span<float const> buffers() const noexcept { return replicas_[0]->buffers(); }

    [[nodiscard]] std::span<float const> values() const noexcept { return replicas_[0]->values(); }
    /// Forward and backward are the first device's; its wait for slower devices counts as communication.
    [[nodiscard]] PhaseSeconds take_phases() {
      auto phases = std::exchange(phases_, {});
      phases.communication += *std::max_element(busy_.begin(), busy_.end()) - busy_[0];
      std::fill(busy_.begin(), busy_.end(), 0.0);
      phases.forward = first().take_forward_seconds();
      phases.backward = first().take_backward_seconds();
      return phases;
    }
    [[nodiscard]] SessionReport report() const {
      SessionReport report;
      for (auto const& replica : replicas_) report.peak_bytes_per_device.push_back(replica->bytes());
      report.peak_bytes_per_device[0] += state_.bytes();
      return report;
    }

   private:
    static int checked(int devices) {
      if (devices < 1) throw ConfigError("DataParallel: " + std::to_string(devices) + " devices; at least 1 is needed");
      return devices;
    }
    /// The rows that any device has touched, of all tables.
    void unite_rows() {
      united_.clear();
      for (std::size_t i = 0; i < first().touched().size(); ++i) {
        auto const at = united_.size();
        for (auto const& replica : replicas_) {
          auto const bits = replica->touched()[i].bits();
          united_.resize(at + bits.size());
          for (std::size_t word = 0; word < bits.size(); ++word) united_[at + word] |= bits[word];
        }
      }
    }
    [[nodiscard]] DeviceReplica& first() const noexcept { return *replicas_[0]; }

    DeviceThreads threads_;
    std::vector<std::unique_ptr<DeviceReplica>> replicas_;
    std::vector<float*> gradients_;
    std::vector<std::uint64_t> united_;
    OptimizerState<Optimizer> state_;
    std::vector<double> busy_;  // seconds in micro-steps, per device
    PhaseSeconds phases_;
  };
};
static_assert(ParallelPolicy<DataParallel>);

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
