// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/sha256.hpp>
#include <lockstep/parallel/gradient_buckets.hpp>
#include <lockstep/parallel/optimizer_state.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica.hpp>
#include <lockstep/parallel/row_exchange.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// One device per rank: every rank computes its own batch, gradients are summed over ranks bucket by bucket while
/// backward still runs, and every rank makes the same update. The policy owns the communicator.
/// @collective constructing a session, micro_step with `last`, update, all_reduce and share_buffers are, on all ranks
/// in the same order
/// @determinism bitwise, and equal to DataParallel over as many devices
template <comm::Communicator Communicator>
struct DistributedDataParallel {
  Communicator communicator;
  std::size_t bucket_bytes = std::size_t{4} << 20;  ///< the first bucket takes a quarter, so that it leaves early
  int threads = 0;                                  ///< of this rank; 0 shares the cores with the other ranks

  [[nodiscard]] int shards() const noexcept { return 1; }
  [[nodiscard]] int first_shard() const noexcept { return communicator.rank(); }
  [[nodiscard]] int all_shards() const noexcept { return communicator.size(); }
  [[nodiscard]] int threads_each() const { return threads_per_device(threads, communicator.size()); }
  [[nodiscard]] static constexpr char const* name() noexcept { return "ddp"; }
  [[nodiscard]] char const* engine() const noexcept { return communicator.name(); }

  template <class Model, class Optimizer>
  class Session {
   public:
    /// `values` is the arena's start; rank 0's counts.
    /// @throws CollectiveMismatch when another rank has other parameters; names the rank
    Session(DistributedDataParallel& policy, Model const& model, nn::ParameterLayout const& layout,
            std::span<float const> values)
        : communicator_(policy.communicator),
          replica_(model, layout, policy.threads_each(),
                   communicator_.allocate(static_cast<std::size_t>(layout.size()) * sizeof(float))),
          state_(layout),
          buckets_({replica_.gradient_data(), static_cast<std::size_t>(layout.size())}, policy.bucket_bytes,
                   replica_.touched()),
          rows_(replica_.touched(), communicator_.size()) {
      compare_layouts(layout);
      std::copy(values.begin(), values.end(), replica_.values().begin());
      communicator_.broadcast(replica_.values().data(), replica_.values().size_bytes(), 0);
    }

    template <class Batch>
    void micro_step(std::span<Batch const> batches, MicroStep const& step) {
      if (!step.last) return replica_.run(batches[0], step);
      buckets_.begin_step();
      replica_.run(batches[0], step, {[](void* self) { static_cast<Session*>(self)->loss_is_known(); }, this},
                   {[](void* self, Index offset, Index count) {
                      auto& session = *static_cast<Session*>(self);
                      session.buckets_.ready(session.communicator_, offset, count);
                    },
                    this});
    }

    nn::Loss<HostSpace> update(Optimizer const& optimizer, UpdateSettings const& settings) {
      auto const begin = Clock::seconds();
      replica_.zero_unused();
      buckets_.finish(communicator_);
      rows_.sum(communicator_, replica_.gradient_data());
      auto const reduced = Clock::seconds();
      nn::Loss<HostSpace> const loss{buckets_.rider()[0], buckets_.rider()[1]};
      state_.update(optimizer, replica_, loss, settings);
      phases_.communication += reduced - begin;
      phases_.optimizer += Clock::seconds() - reduced;
      return loss;
    }

    template <class F>
    void each(F&& f) {
      f(0, replica_);
    }
    void all_reduce(std::span<double> numbers) {
      comm::Piece piece{
          ElementType::float64, numbers.data(), static_cast<Index>(numbers.size()), comm::Operation::sum, {}};
      communicator_.start(piece);
      communicator_.finish();
    }

    /// Every rank takes the buffers of rank 0.
    void share_buffers() {
      auto const buffers = replica_.buffers();
      if (!buffers.empty()) communicator_.broadcast(buffers.data(), buffers.size_bytes(), 0);
    }
    [[nodiscard]] std::span<float const> buffers() const noexcept { return replica_.buffers(); }

    [[nodiscard]] std::span<float const> values() const noexcept { return replica_.values(); }
    /// What communication took out of backward counts as communication.
    [[nodiscard]] PhaseSeconds take_phases() {
      auto phases = std::exchange(phases_, {});
      auto const inside = buckets_.take_seconds_in_backward();
      phases.communication += inside;
      phases.forward = replica_.take_forward_seconds();
      phases.backward = replica_.take_backward_seconds() - inside;
      return phases;
    }
    [[nodiscard]] SessionReport report() {
      std::vector<double> peak(static_cast<std::size_t>(communicator_.size()), 0.0);
      peak[static_cast<std::size_t>(communicator_.rank())] = static_cast<double>(replica_.bytes() + state_.bytes());
      all_reduce(peak);
      SessionReport report{buckets_.times(), {}};
      if (communicator_.size() > 1) rows_.add_times(report.buckets);
      for (auto bytes : peak) report.peak_bytes_per_device.push_back(static_cast<std::size_t>(bytes));
      return report;
    }

   private:
    void loss_is_known() {
      buckets_.rider()[0] = replica_.loss().sum;
      buckets_.rider()[1] = replica_.loss().weight;
    }

    void compare_layouts(nn::ParameterLayout const& layout) {
      Sha256 hash;
      for (auto const* entries : {&layout.entries(), &layout.buffers()}) {
        for (auto const& entry : *entries) {
          hash.update(std::as_bytes(std::span(entry.name.data(), entry.name.size() + 1)));
          hash.update(std::as_bytes(std::span(entry.shape)));
        }
      }
      auto const mine = hash.digest();
      std::vector<std::remove_const_t<decltype(mine)>> all(static_cast<std::size_t>(communicator_.size()));
      communicator_.all_gather(mine.data(), all.data(), sizeof mine);
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (all[rank] != all[0])
          throw CollectiveMismatch(
              "rank " + std::to_string(rank) +
              " has a model with other parameter names or shapes than rank 0; start all ranks with "
              "the same program, flags and data");
      }
    }

    Communicator& communicator_;
    Replica<Model> replica_;
    OptimizerState<Optimizer> state_;
    GradientBuckets buckets_;
    RowExchange rows_;
    PhaseSeconds phases_;
  };
};
template <class C>
DistributedDataParallel(C) -> DistributedDataParallel<C>;
template <class C>
DistributedDataParallel(C, std::size_t) -> DistributedDataParallel<C>;
template <class C>
DistributedDataParallel(C, std::size_t, int) -> DistributedDataParallel<C>;

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
