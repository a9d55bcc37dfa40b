// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/autograd/replica_group.hpp>
#include <lockstep/parallel/detail/replica_groups.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Runs and records passes of a replica on a GPU whose results are discarded. While it exists, the replica exchanges
/// nothing with others.
template <class Replica>
class Rehearsal {
  using Device = std::remove_reference_t<decltype(std::declval<Replica&>().device())>;

 public:
  explicit Rehearsal(Replica& replica) : replica_(replica), group_(replica.context_.parts().replicas.group()) {
    device().enter();
    auto const buffers = replica_.buffers();
    buffers_.assign(buffers.begin(), buffers.end());
    if (group_) replica_.context_.parts().replicas.bind_group(&no_exchange_.emplace(*group_));
    replica_.update_shadow();
  }
  Rehearsal(Rehearsal const&) = delete;
  Rehearsal& operator=(Rehearsal const&) = delete;
  ~Rehearsal() { replica_.context_.parts().replicas.bind_group(group_); }

  /// Runs all passes, so that memory gets its final size, then records them if asked to. Returns the number of batches
  /// whose passes are recorded.
  template <class Batch, class PassKind>
  [[nodiscard]] Index run(std::span<Batch const> batches, std::vector<PassKind> const& kinds, Rehearse makes) {
    Index recorded = 0;
    try {
      for (auto const& batch : batches) run_once(batch, kinds);
      restore_buffers();
      if (makes == Rehearse::plans) return 0;
      while (recorded < std::ssize(batches) && record(batches[static_cast<std::size_t>(recorded)], kinds)) ++recorded;
    } catch (CudaError const&) {
      throw;
    } catch (Error const&) {  // the model exchanges data, or refuses such a batch
      restore_buffers();
    }
    return recorded;
  }

 private:
  [[nodiscard]] Device& device() const noexcept { return replica_.device(); }
  void restore_buffers() {
    if (!buffers_.empty()) device().write(buffers_, replica_.buffers_.data());
  }

  /// Runs the passes for one address, and gets memory for the batch at all addresses.
  template <class Batch, class PassKind>
  void run_once(Batch const& batch, std::vector<PassKind> const& kinds) {
    for (std::size_t address = 0; address < Device::batch_addresses; ++address)
      at_next_address(batch, [&](auto const& device_batch) {
        if (address > 0) return;
        for (auto const& kind : kinds) {
          begin(kind);
          run_pass(batch, device_batch, kind);
        }
      });
  }
  /// Records the passes for all addresses. Returns whether it succeeded.
  template <class Batch, class PassKind>
  [[nodiscard]] bool record(Batch const& batch, std::vector<PassKind> const& kinds) {
    bool succeeded = true;
    for (std::size_t address = 0; address < Device::batch_addresses; ++address)
      at_next_address(batch, [&](auto const& device_batch) {
        for (auto const& kind : kinds) {
          begin(kind);
          succeeded = succeeded && device().prepare_recording(replica_.context_, device_batch, kind.ready,
                                                              [&] { run_pass(batch, device_batch, kind); });
        }
      });
    return succeeded;
  }
  template <class Batch, class Function>
  void at_next_address(Batch const& batch, Function const& f) {
    typename Replica::ReleaseGuard const release{device()};
    f(device().copy_to_device(batch));
  }
  template <class Batch, class OnDevice, class PassKind>
  void run_pass(Batch const& batch, OnDevice const& device_batch, PassKind const& kind) {
    typename Replica::PassTimes unused{};
    replica_.run_pass(unused, batch, device_batch, kind.loss_sink, kind.ready_sink);
  }
  template <class PassKind>
  void begin(PassKind const& kind) {
    if (kind.first) {
      nn::Pass(replica_.context_).begin_step();
      device().begin_step();
    }
    nn::Pass(replica_.context_).begin_micro_batch(nn::Mode::training, 0);
  }

  Replica& replica_;
  nn::ReplicaGroup* group_;
  std::optional<NoExchange> no_exchange_;
  std::vector<float> buffers_;
};

}}}  // namespace lockstep::parallel::detail
