// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/kernel/copy/copy.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/detail/arena.hpp>
#include <lockstep/parallel/detail/arena_ranges.hpp>
#include <lockstep/parallel/detail/device.hpp>
#include <lockstep/parallel/detail/step_scalars.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Part of an OptimizerState that does not depend on the optimizer.
template <class Space>
class OptimizerMoments {
 public:
  /// Returns whether the last update was skipped because a required norm was not finite. Waits for the device.
  [[nodiscard]] bool skipped(Device<Space> const& device) const { return make_scalars_.skipped(device); }
  /// Returns the norm of the last update's mean gradient before clipping, or 0 if it was not measured. Waits for the
  /// device.
  [[nodiscard]] double gradient_norm(Device<Space> const& device) const { return make_scalars_.gradient_norm(device); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return (arenas_.size() * static_cast<std::size_t>(size_) + static_cast<std::size_t>(work_.size())) * sizeof(float);
  }
  /// Returns a moment on the host, as concatenated parts, valid until the next call. Waits for the device.
  [[nodiscard]] std::span<float const> moment(std::size_t i, Device<Space> const& device) const {
    return arenas_[i].on_host(device);
  }
  /// Writes a moment's parts to their offsets in an arena of the layout in host memory. Waits for the device.
  void write_parts(std::size_t i, Device<Space> const& device, float* arena) const;
  /// Queues the same for an arena in this state's space.
  void copy_parts(std::size_t i, memory::Stream<Space> stream, float* arena) const;
  void set_moments(SessionState& state, Device<Space> const& device);

 protected:
  OptimizerMoments(nn::ParameterLayout const& layout, std::vector<ArenaPart> parts, int states);
  ~OptimizerMoments() = default;

  nn::ParameterLayout const* layout_;
  std::vector<ArenaPart> parts_;
  Index size_ = 0;  // elements of all parts
  std::vector<Arena<Space>> arenas_;
  Arena<Space> work_{0};  // of steps of whole parameters
  MakeStepScalars<Space> make_scalars_;
};

template <class Space>
[[gnu::cold]] OptimizerMoments<Space>::OptimizerMoments(nn::ParameterLayout const& layout, std::vector<ArenaPart> parts,
                                                        int states)
    : layout_(&layout), parts_(std::move(parts)) {
  for (auto const& part : parts_) size_ += part.end - part.begin;
  for (int i = 0; i < states; ++i) arenas_.emplace_back(size_);
}

template <class Space>
void OptimizerMoments<Space>::write_parts(std::size_t i, Device<Space> const& device, float* arena) const {
  auto const* from = moment(i, device).data();
  for (auto const& part : parts_) {
    std::copy_n(from, part.end - part.begin, arena + part.begin);
    from += part.end - part.begin;
  }
}

template <class Space>
void OptimizerMoments<Space>::copy_parts(std::size_t i, memory::Stream<Space> stream, float* arena) const {
  float const* from = arenas_[i].data();
  for (auto const& part : parts_) {
    kernel::Copy<Space>::template run<float>(stream, from, arena + part.begin, part.end - part.begin);
    from += part.end - part.begin;
  }
}

template <class Space>
[[gnu::cold]] void OptimizerMoments<Space>::set_moments(SessionState& state, Device<Space> const& device) {
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    auto* to = arenas_[i].data();
    for (auto const& part : parts_) {
      auto const count = part.end - part.begin;
      device.write(state.moments(i).subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(count)), to);
      to += count;
    }
  }
}

#if defined(LOCKSTEP_COMPILED)
extern template class OptimizerMoments<HostSpace>;
#endif

}}}  // namespace lockstep::parallel::detail
