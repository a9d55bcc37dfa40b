// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/optim/adam.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/decay_rule.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/optim/rate_rule.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/detail/optimizer_moments.hpp>
#include <lockstep/parallel/detail/step_scalars.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica/detail/replica_base.hpp>
#include <lockstep/parallel/session_base.hpp>

// The functions of an optimizer for float on the host, which the library instantiates.
#define LOCKSTEP_OPTIMIZER_STATE(Template, Optimizer)                                          \
  Template void OptimizerState<Optimizer, HostSpace>::update(                                  \
      Optimizer const& optimizer, detail::ReplicaBase<nn::Context<float, HostSpace>>& replica, \
      nn::Loss<HostSpace> const& loss, UpdateSettings const& settings);                        \
  Template bool OptimizerState<Optimizer, HostSpace>::measures(                                \
      Optimizer const& optimizer, detail::ReplicaBase<nn::Context<float, HostSpace>>& replica, \
      UpdateSettings const& settings) const;                                                   \
  Template bool OptimizerState<Optimizer, HostSpace>::update(                                  \
      Optimizer const& optimizer, detail::ReplicaBase<nn::Context<float, HostSpace>>& replica, \
      nn::Loss<HostSpace> const& loss, UpdateSettings const& settings,                         \
      detail::MakeStepScalars<HostSpace>::Norm const& norm)

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Moments of an optimizer, in arenas of the parameters' layout or of parts of it. Updates only these parts.
template <class Optimizer, class Space = HostSpace>
class OptimizerState : public detail::OptimizerMoments<Space> {
  using Moments = detail::OptimizerMoments<Space>;

 public:
  /// Holds all moments of learned parameters. Allocates on the device that the thread has entered. The layout must
  /// outlive the state.
  explicit OptimizerState(nn::ParameterLayout const& layout)
      : OptimizerState(layout, std::vector<detail::ArenaPart>(1, {0, layout.learned_size()})) {}
  /// Holds only these parts, which must be in order.
  OptimizerState(nn::ParameterLayout const& layout, std::vector<detail::ArenaPart> parts)
      : Moments(layout, std::move(parts), Optimizer::states) {}

  /// Applies one step to a replica's values. The optimizer gets the gradients of the sum `loss`, divided by the loss's
  /// weight and the replica's loss scale, and clipped. Updates the loss scale.
  template <class Context>
  void update(Optimizer const& optimizer, detail::ReplicaBase<Context>& replica, nn::Loss<Space> const& loss,
              UpdateSettings const& settings);
  /// Returns whether the step needs a gradient norm. If so, zeroes the gradients of parameters whose rate is 0 in this
  /// optimizer, for example frozen ones, so that they do not count. Frozen gradients that were never written are
  /// already zero.
  template <class Context>
  bool measures(Optimizer const& optimizer, detail::ReplicaBase<Context>& replica,
                UpdateSettings const& settings) const;
  /// Applies one step with a given norm of all gradients, which is used if the settings clip or the loss is scaled. For
  /// sharded gradients.   @returns whether the step changes anything; always true on a device, which alone knows
  template <class Context>
  bool update(Optimizer const& optimizer, detail::ReplicaBase<Context>& replica, nn::Loss<Space> const& loss,
              UpdateSettings const& settings, typename detail::MakeStepScalars<Space>::Norm const& norm);

 private:
  using Moments::arenas_;
  using Moments::layout_;
  using Moments::make_scalars_;
  using Moments::parts_;
  using Moments::work_;

  using Entry = nn::ParameterLayout::Entry;

  /// Elements [begin, end) of the arena that one call can update: of one parameter group, dense or of one table; and
  /// one parameter without padding if the optimizer needs whole ones.
  struct Range {
    Index begin = 0, end = 0;
    int part = 0;  ///< number of the optimizer, for optim::with_part
    double rate = 1;
    double decays = 1;
    Entry const* entry = nullptr;  ///< the last parameter
    kernel::TouchedRows table = {};
  };

  /// Splits the arena into as few ranges as possible, in order.
  template <class Function>
  void for_ranges(Optimizer const& optimizer, std::span<kernel::TouchedRows const> tables, Function&& f) const {
    Range range;
    auto const& entries = layout_->entries();
    for (auto i = entries.size(); i-- > 0;) {
      auto const& entry = entries[i];
      auto const part = optim::part_of(optimizer, entry);
      auto const decays = optim::decay_of(optimizer, entry);
      auto const rate = optim::rate_of(optimizer, entry);
      bool const whole = optim::with_part(
          optimizer, part, []<class Part>(Part const&) { return optim::steps_whole_parameters<Part>(); });
      bool const is_table = !tables.empty() && tables[0].offset == entry.offset && entry.size > 0;
      if (is_table || whole || part != range.part || decays != range.decays || rate != range.rate) {
        if (range.begin < range.end) f(std::as_const(range));
        range = {entry.offset, entry.offset, part, rate, decays, nullptr, {}};
      }
      range.entry = &entry;
      range.end = entry.offset + (whole ? entry.size : nn::ParameterLayout::padded(entry.size));
      if (!is_table) continue;
      auto of_table = range;
      of_table.end = entry.offset + entry.size;
      of_table.table = tables[0];
      f(std::as_const(of_table));
      range.begin = range.end;
      tables = tables.subspan(1);
    }
    if (range.begin < range.end) f(std::as_const(range));
  }

  /// Returns the elements of work memory that the steps of an optimizer of whole parameters need.
  [[nodiscard]] Index work_elements(Optimizer const& optimizer) const {
    Index most = 0;
    for (auto const& entry : layout_->entries())
      optim::with_part(optimizer, optim::part_of(optimizer, entry), [&]<class Part>(Part const&) {
        most = std::max(most, optim::work_elements<Part>(entry.shape));
      });
    return most;
  }

  template <class Context>
  void step_all(Optimizer const& optimizer, detail::ReplicaBase<Context>& replica,
                optim::StepScalars<Space> const* scalars);

  /// Updates a range, whose moments begin at `at`, by its optimizer.
  template <class Part, class Context>
  void step(Part const& optimizer, detail::ReplicaBase<Context>& replica, optim::StepScalars<Space> const* scalars,
            Range const& range, Index at);
  /// Zeroes untouched rows, for optimizers without support for rows.
  static void zero_untouched(Range const& range, float* gradients) {
    auto const& table = range.table;
    table.for_runs((range.begin - table.offset) / table.width, (range.end - table.offset - 1) / table.width + 1,
                   [&](Index first, Index last, bool touched) {
                     auto const begin = std::max(range.begin, table.offset + first * table.width),
                                end = std::min(range.end, table.offset + last * table.width);
                     if (!touched) std::fill_n(gradients + (begin - range.begin), end - begin, 0.0f);
                   });
  }
};

template <class Optimizer, class Space>
template <class Context>
void OptimizerState<Optimizer, Space>::update(Optimizer const& optimizer, detail::ReplicaBase<Context>& replica,
                                              nn::Loss<Space> const& loss, UpdateSettings const& settings) {
  measures(optimizer, replica, settings);
  step_all(optimizer, replica,
           make_scalars_(replica.stream(), settings, loss, {replica.gradient_data(), {layout_->size()}},
                         replica.touched(), replica.loss_scale().data()));
}

template <class Optimizer, class Space>
template <class Context>
bool OptimizerState<Optimizer, Space>::measures(Optimizer const& optimizer, detail::ReplicaBase<Context>& replica,
                                                UpdateSettings const& settings) const {
  if (settings.clip_norm == 0 && !detail::ReplicaBase<Context>::scales_loss) return false;
  auto const& entries = layout_->entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    bool const written = !entries[i].frozen || entries[i].offset < layout_->learned_size() || replica.used()[i] != 0;
    if (written && optim::rate_of(optimizer, entries[i]) == 0)
      replica.device().zero(replica.gradient_data() + entries[i].offset, entries[i].size);
  }
  return true;
}

template <class Optimizer, class Space>
template <class Context>
bool OptimizerState<Optimizer, Space>::update(Optimizer const& optimizer, detail::ReplicaBase<Context>& replica,
                                              nn::Loss<Space> const& loss, UpdateSettings const& settings,
                                              typename detail::MakeStepScalars<Space>::Norm const& norm) {
  auto const* const scalars =
      make_scalars_.complete(replica.stream(), settings, loss, norm, replica.loss_scale().data());
  step_all(optimizer, replica, scalars);
  return scalars != nullptr;
}

template <class Optimizer, class Space>
template <class Context>
void OptimizerState<Optimizer, Space>::step_all(Optimizer const& optimizer, detail::ReplicaBase<Context>& replica,
                                                optim::StepScalars<Space> const* scalars) {
  if (!scalars) return;
  if constexpr (optim::steps_whole_parameters<Optimizer>()) work_.reserve(work_elements(optimizer));
  auto part = parts_.begin();
  Index at = 0;  // offset of the part in the arenas
  for_ranges(optimizer, replica.touched(), [&](Range const& range) {
    for (; part != parts_.end() && part->begin < range.end; at += part->end - part->begin, ++part) {
      auto stepped = range;
      stepped.begin = std::max(range.begin, part->begin), stepped.end = std::min(range.end, part->end);
      if (stepped.begin < stepped.end && stepped.rate != 0)
        optim::with_part(optimizer, stepped.part, [&](auto const& each) {
          step(each, replica, scalars, stepped, at + stepped.begin - part->begin);
        });
      if (part->end > range.end) break;
    }
  });
}

template <class Optimizer, class Space>
template <class Part, class Context>
void OptimizerState<Optimizer, Space>::step(Part const& optimizer, detail::ReplicaBase<Context>& replica,
                                            optim::StepScalars<Space> const* scalars, Range const& range, Index at) {
  auto* const gradients = replica.gradient_data() + range.begin;
  std::array<float*, Part::states> states{};
  for (std::size_t i = 0; i < states.size(); ++i)  // the last ones, so that an average is the last of all
    states[i] = arenas_[arenas_.size() - states.size() + i].data() + at;
  auto const to = replica.update_target();
  optim::Slice<float, Space> slice{range.begin, range.end - range.begin, to.values + range.begin, gradients,
                                   states.data()};
  slice.half_precision = to.shadow + range.begin;
  slice.rate = range.rate;
  slice.decays = range.decays;
  if constexpr (optim::steps_whole_parameters<Part>()) {
    slice.name = range.entry->name;
    slice.shape = range.entry->shape;
    slice.work = work_.data();
  }
  if constexpr (optim::takes_touched_rows<Part>())
    slice.touched = range.table;
  else if (Space::host_accessible && range.table.words != nullptr)
    zero_untouched(range, gradients);
  optimizer.step(replica.stream(), slice, scalars);
}

#if defined(LOCKSTEP_COMPILED)
extern template class detail::ReplicaSession<detail::ReplicaBase<nn::Context<float, HostSpace>>>;
LOCKSTEP_OPTIMIZER_STATE(extern template, optim::SGD);
LOCKSTEP_OPTIMIZER_STATE(extern template, optim::Adam);
LOCKSTEP_OPTIMIZER_STATE(extern template, optim::AdamW);
#endif

}}}  // namespace lockstep::parallel
