// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/nn/loss.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/parallel/detail/arena.hpp>
#include <lockstep/parallel/detail/device.hpp>
#include <lockstep/parallel/detail/step_scalars.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// The moments of an optimizer, in arenas of the parameters' layout.
template <class Optimizer, class Space = HostSpace>
class OptimizerState {
 public:
  /// The layout outlives the state, which lies on the device that the thread has entered.
  explicit OptimizerState(nn::ParameterLayout const& layout) : layout_(&layout) {
    for (std::size_t i = 0; i < Optimizer::states; ++i) arenas_.emplace_back(layout.size());
  }

  /// Applies one step to all values of a replica, whose gradients are those of the sum `loss`: the optimizer sees them
  /// divided by the loss's weight, and clipped.
  template <class Replica>
  void update(Optimizer const& optimizer, Replica& replica, nn::Loss<Space> const& loss,
              UpdateSettings const& settings) {
    auto const* const scalars = make_scalars_(replica.stream(), settings, loss,
                                              {replica.gradient_data(), {layout_->size()}}, replica.touched());
    if (!scalars) return;
    for_ranges(optimizer, replica.touched(), [&](Range const& range) { step(optimizer, replica, scalars, range); });
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return arenas_.size() * static_cast<std::size_t>(layout_->size()) * sizeof(float);
  }
  /// The moments as the host sees them until the next call. Waits for the device.
  [[nodiscard]] std::vector<float const*> moments(detail::Device<Space> const& device) const {
    std::vector<float const*> moments;
    for (auto const& arena : arenas_) moments.push_back(arena.on_host(device).data());
    return moments;
  }
  void set_moments(SessionState& state, detail::Device<Space> const& device) {
    for (std::size_t i = 0; i < arenas_.size(); ++i) device.write(state.moments(i), arenas_[i].data());
  }

 private:
  /// Elements [begin, end) of the arena, which one call can step: of one group, and dense or of one table.
  struct Range {
    Index begin = 0, end = 0;
    bool decays = true;
    kernel::TouchedRows table = {};
  };

  /// Cuts the arena into as few ranges as there can be, in order.
  template <class F>
  void for_ranges(Optimizer const& optimizer, std::span<kernel::TouchedRows const> tables, F&& f) const {
    Range range;
    auto const& entries = layout_->entries();
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      bool decays = true;
      if constexpr (requires { optimizer.decays; }) decays = optimizer.decays(entry->name, entry->shape);
      bool const is_table = !tables.empty() && tables[0].offset == entry->offset && entry->size > 0;
      if (is_table || decays != range.decays) {
        if (range.begin < range.end) f(std::as_const(range));
        range = {entry->offset, entry->offset, decays, {}};
      }
      range.end = entry->offset + nn::ParameterLayout::padded(entry->size);
      if (!is_table) continue;
      f(Range{entry->offset, entry->offset + entry->size, decays, tables[0]});
      range.begin = range.end;
      tables = tables.subspan(1);
    }
    if (range.begin < range.end) f(std::as_const(range));
  }

  template <class Replica>
  void step(Optimizer const& optimizer, Replica& replica, optim::StepScalars<Space> const* scalars,
            Range const& range) {
    auto* const gradients = replica.gradient_data() + range.begin;
    std::array<float*, Optimizer::states> states{};
    for (std::size_t i = 0; i < states.size(); ++i) states[i] = arenas_[i].data() + range.begin;
    auto const to = replica.stepped();
    optim::Slice<float, Space> slice{range.begin, range.end - range.begin, to.values + range.begin, gradients,
                                     states.data()};
    if (to.shadow) slice.shadow = to.shadow + range.begin;
    slice.decays = range.decays;
    if constexpr (requires { requires bool{Optimizer::takes_touched_rows}; }) {
      slice.touched = range.table;
    } else if (Space::host_accessible && range.table.words != nullptr) {
      auto const width = range.table.width;
      range.table.for_runs(0, range.table.rows, [&](Index first, Index last, bool touched) {
        if (!touched) std::fill_n(gradients + first * width, (last - first) * width, 0.0f);
      });
    }
    optimizer.step(replica.stream(), slice, scalars);
  }

  nn::ParameterLayout const* layout_;
  std::vector<detail::Arena<Space>> arenas_;
  detail::MakeStepScalars<Space> make_scalars_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
