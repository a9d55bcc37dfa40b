// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/detail/team.cuh>
#include <lockstep/kernel/loss/ctc.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// One row of the batch, which a team processes token by token.
template <class Team, class Scalar, class Label>
struct CtcRow {
  using Sum = Accumulate<Scalar>;
  Index classes, tokens;
  CtcPath<Label> path;
  Scalar const* x;
  Scalar* dx;
  Write write;
  Sum factor;
  Sum *log_alpha, *normalizers, *log_beta, *next_log_beta, *emissions;

  /// Subtracts the largest number from all, and returns it.
  [[nodiscard]] __device__ Sum subtract_largest(Sum* numbers, Index count) const {
    Sum maximum = -std::numeric_limits<Sum>::infinity();
    for (auto i = Team::member(); i < count; i += Team::size) maximum = numbers[i] > maximum ? numbers[i] : maximum;
    maximum = Team::largest(maximum);
    for (auto i = Team::member(); i < count; i += Team::size) numbers[i] -= maximum;
    Team::synchronize();
    return maximum;
  }

  [[nodiscard]] __device__ double forward() const {
    auto const states = path.states();
    double subtracted = 0;
    for (Index t = 0; t < tokens; ++t) {
      auto const* const here = x + t * classes;
      Sum maximum = -std::numeric_limits<Sum>::infinity(), sum = 0;
      for (auto k = Team::member(); k < classes; k += Team::size)
        maximum = static_cast<Sum>(here[k]) > maximum ? static_cast<Sum>(here[k]) : maximum;
      maximum = Team::largest(maximum);
      for (auto k = Team::member(); k < classes; k += Team::size) sum += std::exp(static_cast<Sum>(here[k]) - maximum);
      Sum const normalizer = maximum + std::log(Team::sum(sum));
      if (Team::member() == 0) normalizers[t] = normalizer;
      auto* const now = log_alpha + t * states;
      auto const* const before = now - states;
      for (auto s = Team::member(); s < states; s += Team::size) {
        auto const reached = t == 0 ? (s < 2 ? Sum{0} : ctc_log_zero<Sum>)
                                    : log_sum(before[s], s > 0 ? before[s - 1] : ctc_log_zero<Sum>,
                                              path.skips(s) ? before[s - 2] : ctc_log_zero<Sum>);
        now[s] = reached + (static_cast<Sum>(here[path.label(s)]) - normalizer);
      }
      subtracted += static_cast<double>(subtract_largest(now, states));
    }
    auto const* const last = log_alpha + (tokens - 1) * states;
    auto const before_last = states > 1 ? last[states - 2] : ctc_log_zero<Sum>;
    return subtracted + static_cast<double>(log_sum(last[states - 1], before_last, ctc_log_zero<Sum>));
  }

  /// Computes the gradient. `dx` may be the logits: all threads read a token's logits before one is overwritten.
  __device__ void backward() const {
    auto const states = path.states();
    auto *from = log_beta, *to = next_log_beta;
    Team::synchronize();  // wait until all have read the end of forward()
    for (auto s = Team::member(); s < states; s += Team::size) from[s] = s + 2 >= states ? Sum{0} : ctc_log_zero<Sum>;
    for (auto t = tokens; t-- > 0;) {
      auto const* const here = x + t * classes;
      auto* const now = log_alpha + t * states;
      Sum const normalizer = normalizers[t];
      for (auto s = Team::member(); s < states; s += Team::size) {
        emissions[s] = from[s] + (static_cast<Sum>(here[path.label(s)]) - normalizer);
        now[s] += from[s];
      }
      Team::synchronize();
      static_cast<void>(subtract_largest(now, states));
      Sum sum = 0, of_blank = 0;
      for (auto s = Team::member(); s < states; s += Team::size) {
        now[s] = std::exp(now[s]);
        sum += now[s];
        of_blank += s % 2 == 0 ? now[s] : Sum{0};
      }
      sum = Team::sum(sum);
      of_blank = Team::sum(of_blank);
      Team::synchronize();
      for (auto k = Team::member(); k < classes; k += Team::size) {
        auto share = k == path.blank ? of_blank : Sum{0};
        for (Index i = 0; i < path.count; ++i)
          if (static_cast<Index>(path.labels[i]) == k) share += now[2 * i + 1];
        auto& out = dx[t * classes + k];
        auto const gradient = factor * (std::exp(static_cast<Sum>(here[k]) - normalizer) - share / sum);
        out = static_cast<Scalar>(write == Write::add ? static_cast<Sum>(out) + gradient : gradient);
      }
      for (auto s = Team::member(); s < states; s += Team::size)
        to[s] = log_sum(emissions[s], s + 1 < states ? emissions[s + 1] : ctc_log_zero<Sum>,
                        s + 2 < states && path.skips(s + 2) ? emissions[s + 2] : ctc_log_zero<Sum>);
      Team::synchronize();
      static_cast<void>(subtract_largest(to, states));
      auto* const done = from;
      from = to;
      to = done;
    }
  }
};

template <class Team, class Scalar, class Label>
LOCKSTEP_CUDA_KERNEL void ctc_rows(SequenceLayout<CudaSpace> layout, SequenceLayout<CudaSpace> label_layout,
                                   CtcOptions options, Index classes, Scalar const* logits, Label const* labels,
                                   double* losses, double* weights, Scalar* gradient, Write write,
                                   Accumulate<Scalar>* memory) {
  using Memory = CtcMemory<Accumulate<Scalar>>;
  auto const all = Memory::states(label_layout.length);
  auto const buffers = Memory::of(memory, layout.slots, label_layout.length);
  for (auto row = Team::first(); row < layout.rows; row += Team::count()) {
    auto const first = layout.start(row), tokens = layout.tokens(row);
    CtcPath<Label> const path{labels + label_layout.start(row), label_layout.tokens(row), options.blank};
    auto* const dx = gradient ? gradient + first * classes : nullptr;
    bool known = true;
    for (Index i = 0; i < path.count; ++i) {
      auto const label = static_cast<Index>(path.labels[i]);
      known = known && label >= 0 && label < classes && label != options.blank;
    }
    bool const possible = known && tokens >= path.min_tokens();
    bool const counts = possible || !known || options.impossible == ImpossibleAlignment::reject;
    auto const zeros = [&](Index from, Index end) {
      for (auto i = from + Team::member(); dx && write == Write::overwrite && i < end; i += Team::size)
        dx[i] = Scalar(0.0f);
    };
    zeros(tokens * classes, (layout.end(row) - first) * classes);
    double loss = 0;
    if (!possible) {
      zeros(0, tokens * classes);
      if (counts) loss = known ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    } else if (tokens > 0) {
      auto* const own = buffers.row_memory + row * Memory::row_elements(label_layout.length, classes);
      CtcRow<Team, Scalar, Label> const at{classes,
                                           tokens,
                                           path,
                                           logits + first * classes,
                                           dx,
                                           write,
                                           static_cast<Accumulate<Scalar>>(options.factor),
                                           buffers.token_states + first * all,
                                           buffers.normalizers + first,
                                           own,
                                           own + all,
                                           own + 2 * all};
      loss = -options.factor * at.forward();
      if (dx) at.backward();
    }
    if (Team::member() == 0) {
      losses[row] = loss;
      weights[row] = counts ? 1 : 0;
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// CUDA version with the host's shapes and formulas, queued on the stream. Labels and lengths are not checked with an
/// exception, which would have to wait for the device. A label outside the classes makes the loss NaN, and too few
/// tokens make it infinite.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct Ctc<CudaSpace> : detail::KernelTypes<CudaSpace> {
  using Layout = SequenceLayout<CudaSpace>;

  [[nodiscard]] static Index memory_elements(Index slots, Index rows, Index longest_labels, Index classes) noexcept {
    return Ctc<HostSpace>::memory_elements(slots, rows, longest_labels, classes);
  }

  /// @shape memory [memory_elements(...)], in the type in which Scalar is summed
  template <class Scalar, class Label>
  static void forward_backward(Stream stream, Layout layout, Layout label_layout, CtcOptions const& options,
                               Matrix<Scalar const> logits, Vector<Label const> labels, Vector<double> losses,
                               Vector<double> weights, Matrix<Scalar> gradient, Write write,
                               Vector<Accumulate<Scalar>> memory) {
    detail::check_ctc(layout, label_layout, options, logits.extent, labels.size());
    auto const classes = logits.extent[1];
    auto const run = [&](auto team) {
      using Team = decltype(team);
      detail::launch("kernel::Ctc", stream, layout.rows * Team::size, detail::ctc_rows<Team, Scalar, Label>, layout,
                     label_layout, options, classes, logits.data, labels.data, losses.data, weights.data, gradient.data,
                     write, memory.data);
    };
    if (classes <= numbers_per_warp && 2 * label_layout.length < numbers_per_warp)
      run(detail::WarpTeam{});
    else
      run(detail::BlockTeam{});
  }

 private:
  static constexpr Index numbers_per_warp = 128;
};

}}}  // namespace lockstep::kernel
