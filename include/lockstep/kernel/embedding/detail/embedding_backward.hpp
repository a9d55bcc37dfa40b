// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/detail/apply_dropout.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/detail/token_runs.hpp>
#include <lockstep/kernel/embedding/detail/embedding_row.hpp>
#include <lockstep/kernel/embedding/embedding_gradients.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Computes all gradients of an embedding except those of the tables, in one pass over dy. Tasks are blocks of 64
/// sequences by 8 positions. A task sums the gradients of its positions, types and norm in the order of the sequences.
/// The sums of the tasks are then added in order.
template <class Scalar>
struct EmbeddingBackward {
  using Inputs = EmbeddingInputs<Scalar, HostSpace>;
  using Location = Assembly<HostSpace>::Location;

  Inputs const& in;
  EmbeddingGradients<Scalar, HostSpace> const& to;
  Scalar const* dy;
  Scalar* dx;
  Index width;
  Scalar* memory;  // the sums of each task: rows of `width`, see Sums

  [[nodiscard]] static Index scratch(Inputs const& in, Index width) noexcept {
    return row_blocks(in) * step_blocks(in) * Sums(in).rows * width;
  }

  void run(ThreadPool& pool) const {
    Sums const at(in);
    auto const blocks = step_blocks(in), tasks = row_blocks(in) * blocks;
    pool.run(tasks, [=, this](Index task) {
      auto* const sums = memory + task * at.rows * width;
      std::fill_n(sums, at.rows * width, Scalar{0});
      auto const first_row = task / blocks * rows_per_task, first_step = task % blocks * steps_per_task;
      auto const end_row = std::min(in.assembly.layout.rows, first_row + rows_per_task);
      with_best_instructions([=, this](auto vectors) {
        for (auto row = first_row; row < end_row; ++row) this->backward_row(vectors, row, first_step, sums);
      });
    });
    if (to.position.data) sum_positions(pool, at);
    auto const sum_tasks = [&](Index row, Scalar* target, Write write) {
      auto const* const first = tasks > 0 ? memory + row * width : target;  // without tasks, nothing is read
      if (target) sum_rows(first, at.rows * width, width, tasks, target, write);
    };
    for (int segment = 0; to.type.data && segment < in.assembly.count; ++segment)
      sum_tasks(at.types + segment, to.type.data + segment * width, to.type.write);
    if (to.type.data && to.type.write == Write::overwrite)  // types that no segment has
      std::fill(to.type.data + in.assembly.count * width, to.type.data + in.type.size(), Scalar{0});
    sum_tasks(at.weight, to.weight.data, to.weight.write);
    sum_tasks(at.bias, to.bias.data, to.bias.write);
    for (int segment = 0; segment < in.assembly.count; ++segment) zero_padding(pool, segment);
  }

 private:
  static constexpr Index rows_per_task = 64, steps_per_task = 8;

  /// Rows of a task's memory.
  struct Sums {
    Index positions = 0, types = 0, weight = 0, bias = 0, normalized = 0, dropped = 0, rows = 0;
    explicit Sums(Inputs const& in) noexcept {
      types = positions + (in.position.data ? steps_per_task : 0);
      weight = types + (in.type.data ? in.assembly.count : 0);
      bias = weight + 1;
      normalized = bias + 1;
      dropped = normalized + 1;
      rows = in.norm == Norm::none ? weight : dropped + 1;
    }
  };

  [[nodiscard]] static Index steps(Inputs const& in) noexcept {
    if (in.position_unit == PositionUnit::tokens) return in.assembly.layout.length;
    Index longest = 0;
    for (int segment = 0; segment < in.assembly.count; ++segment)
      longest = std::max(longest, in.assembly.segments[segment].length);
    return longest;
  }
  [[nodiscard]] static Index step_blocks(Inputs const& in) noexcept {
    return (steps(in) + steps_per_task - 1) / steps_per_task;
  }
  [[nodiscard]] static Index row_blocks(Inputs const& in) noexcept {
    return (in.assembly.layout.rows + rows_per_task - 1) / rows_per_task;
  }

  /// Processes the tokens of a row whose position is in the block from `step` on.
  [[gnu::always_inline]] void backward_row(auto vectors, Index row, Index step, Scalar* sums) const noexcept {
    auto const& assembly = in.assembly;
    bool const by_tokens = in.position_unit == PositionUnit::tokens,
               interleaved = assembly.arrangement == Arrangement::interleaved;
    for (int segment = 0; segment < (by_tokens || interleaved ? 1 : assembly.count); ++segment) {
      auto const& steps = by_tokens ? assembly.layout : assembly.segments[segment];
      auto const last = std::min(step + steps_per_task, steps.tokens(row));
      auto const first_token = by_tokens ? step : assembly.token(row, {segment, step});
      Index const each = !by_tokens && interleaved ? assembly.count : 1;
      backward_run(vectors, row, first_token, first_token + (last - step) * each, sums, step);
    }
  }
  /// Processes consecutive tokens of a row.
  [[gnu::always_inline]] void backward_run(auto vectors, Index row, Index token, Index end, Scalar* sums,
                                           Index first_step) const noexcept {
    if (token >= end) return;
    Sums const at(in);
    auto const start = in.assembly.layout.start(row);
    bool const normed = in.norm != Norm::none;
    if (in.mask.active() && !normed)
      drop(row, token, end - token, dy + (start + token) * width, dx + (start + token) * width);
    if (only_positions()) {
      auto const* const d = (in.mask.active() ? dx : dy) + (start + token) * width;
      return add(d, sums + (at.positions + token - first_step) * width, (end - token) * width);
    }
    for (; token < end; ++token) {
      auto const slot = (start + token) * width;
      auto const location = in.assembly.locate(row, token);
      auto const* d = (in.mask.active() && !normed ? dx : dy) + slot;
      if (normed) {
        if (in.mask.active()) {
          drop(row, token, 1, d, sums + at.dropped * width);
          d = sums + at.dropped * width;
        }
        differentiate(vectors, row, location, token, d, sums, at, dx + slot);
        d = dx + slot;
      }
      auto const step = (in.position_unit == PositionUnit::tokens ? token : location.step) - first_step;
      if (in.position.data) add(d, sums + (at.positions + step) * width, width);
      if (in.type.data) add(d, sums + (at.types + location.segment) * width, width);
      write_dense_gradients(row, location, d);
      if (in.scale != Scalar(1))
        for (Index c = 0; c < width; ++c) dx[slot + c] = in.scale * d[c];
    }
  }
  [[gnu::always_inline]] void drop(Index row, Index token, Index count, Scalar const* from,
                                   Scalar* target) const noexcept {
    detail::apply_dropout(in.mask, static_cast<std::uint64_t>(in.assembly.layout.positions.data[row]),
                          static_cast<std::uint64_t>(token * width), count * width, from, target);
  }
  /// Computes the gradient through the norm, whose input is recomputed.
  [[gnu::always_inline]] void differentiate(auto vectors, Index row, Location location, Index token, Scalar const* d,
                                            Scalar* sums, Sums const& at, Scalar* target) const noexcept {
    auto* const x = sums + at.normalized * width;
    TokenRows<Scalar>(in, row, token, {location.segment, location.step, 0, 1, 1}, width).sum_general(vectors, x);
    auto const reciprocal = normalize(vectors, in, x, width);
    auto means = add_row(vectors, d, x, in.weight.data, sums + at.weight * width, sums + at.bias * width, width);
    if (in.norm == Norm::rms) means.gradient = 0;  // no mean was subtracted
    differentiate_row(d, x, in.weight.data, means, reciprocal, target, width, Write::overwrite);
  }
  /// Whether d is only the gradient of positions, which count tokens: a run of tokens is then one sum.
  [[nodiscard]] bool only_positions() const noexcept {
    if (in.norm != Norm::none || in.scale != Scalar(1) || in.type.data || !in.position.data ||
        in.position_unit != PositionUnit::tokens)
      return false;
    return std::none_of(to.dense, to.dense + in.first_part[in.assembly.count], [](auto part) { return part.data; });
  }
  [[gnu::always_inline]] void add(Scalar const* d, Scalar* __restrict sum, Index count) const noexcept {
    for (Index c = 0; c < count; ++c) sum[c] += d[c];
  }
  /// Passes the gradient to the dense parts of the token.
  [[gnu::always_inline]] void write_dense_gradients(Index row, Location location, Scalar const* d) const noexcept {
    for (int p = in.first_part[location.segment]; p < in.first_part[location.segment + 1]; ++p) {
      auto const [data, write] = to.dense[p];
      if (!data) continue;
      auto* const target = data + in.assembly.entry(row, location) * width;
      if (write == Write::overwrite)
        for (Index c = 0; c < width; ++c) target[c] = in.scale * d[c];
      else
        for (Index c = 0; c < width; ++c) target[c] += in.scale * d[c];
    }
  }

  void sum_positions(ThreadPool& pool, Sums const& at) const {
    auto const used = in.assembly.layout.rows == 0 ? 0 : std::min(steps(in), in.position.extent[0]);
    auto const blocks = step_blocks(in), count = row_blocks(in);
    bool const whole = to.position.write == Write::overwrite;
    pool.run(whole ? in.position.extent[0] : used, [=, this](Index step) {
      auto* const target = to.position.data + step * width;
      if (step >= used) return static_cast<void>(std::fill_n(target, width, Scalar{0}));
      auto const* const sums =
          memory + (step / steps_per_task * at.rows + at.positions + step % steps_per_task) * width;
      sum_rows(sums, blocks * at.rows * width, width, count, target, to.position.write);
    });
  }

  void zero_padding(ThreadPool& pool, int segment) const {
    for (int p = in.first_part[segment]; p < in.first_part[segment + 1]; ++p) {
      auto const [data, write] = to.dense[p];
      if (!data || write == Write::add || in.assembly.segments[segment].is_ragged()) continue;
      for_token_runs(
          pool, in.assembly.segments[segment], [](Index, Index, Index, Index) {},
          [=, target = data, this](Index slot, Index padding) {
            std::fill_n(target + slot * width, padding * width, Scalar{0});
          });
    }
  }
};

}}}  // namespace lockstep::kernel::detail
