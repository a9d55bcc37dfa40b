// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/float16.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/optim/loss_scaler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// A replica's loss scale in the replica's space, for its context and the optimizer. Empty unless activations are
/// float16.
template <class Scalar, class Space>
class ReplicaLossScale {
 public:
  template <class Device, class Context>
  static void bind(Device const&, Context&) noexcept {}
  [[nodiscard]] static optim::LossScaler::State* data() noexcept { return nullptr; }
};

template <class Space>
class ReplicaLossScale<float16, Space> {
 public:
  using State = optim::LossScaler::State;

  template <class Device, class Context>
  void bind(Device const& device, Context& context) {
    context.parts().loss_scale.bind(&data()->scale);
    set(device, optim::LossScaler{}.begin());
  }
  [[nodiscard]] State* data() noexcept { return state_.data(); }
  /// Copies the state to the device (set) or from it (get). Both wait for the device.
  template <class Device>
  void set(Device const& device, State const& state) {
    device.put(state, data());
  }
  template <class Device>
  [[nodiscard]] State get(Device const& device) const {
    return device.get(state_.data());
  }

 private:
  memory::Buffer<State, Space> state_{1, memory::DefaultResource<Space>{}};
};

}}}  // namespace lockstep::parallel::detail
