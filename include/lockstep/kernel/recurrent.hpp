// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <type_traits>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/of_space.hpp>
#include <lockstep/kernel/recurrent_cells.hpp>
#include <lockstep/kernel/sequence_layout.hpp>

// Before a loop over so many arrays whose iterations do not meet: g++ 12 makes a second loop without vectors, and a
// test at run time that chooses it where the arrays are apart, too. clang warns of a loop that it then does not
// vectorise.
#if defined(__clang__)
#define LOCKSTEP_RECURRENT_LOOP
#else
#define LOCKSTEP_RECURRENT_LOOP _Pragma("GCC ivdep")
#endif

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// In which order a recurrent layer reads the tokens of a sequence.
enum class Direction {
  forward,   ///< the first token first
  backward,  ///< the last token first
};

/// What the steps of a pass of a recurrent layer share.
template <class T, class Space>
struct RecurrentPass {
  SequenceLayout<Space> layout;
  Direction direction;
  TensorView<T, 2, Space> gates;  ///< [slots, gates * width], gate by gate: the input's part, then as backward needs it
  TensorView<T, 2, Space> kept;   ///< [slots, width]
  TensorView<T, 2, Space> earlier{};  ///< [rows, width], on the host: kept behind earlier tokens; null: none are

  [[nodiscard]] constexpr Index width() const noexcept { return kept.extent[1]; }
  /// The slot of a sequence that is read at step t, of a sequence that has such a step.
  [[nodiscard]] constexpr Index slot(Index row, Index t) const noexcept {
    return layout.start(row) + (direction == Direction::forward ? t : layout.tokens(row) - 1 - t);
  }
  /// From it to the slot that was read before.
  [[nodiscard]] constexpr Index to_before() const noexcept { return direction == Direction::forward ? -1 : 1; }
  /// The padding slot behind the tokens that no step t reads, of a sequence shorter than the batch's longest; -1 where
  /// the layout has none.
  [[nodiscard]] constexpr Index padding(Index row, Index t) const noexcept {
    return layout.is_ragged() ? -1 : layout.start(row) + t;
  }
};

/// The steps of a recurrent layer, which is a cell of recurrent_cells.hpp at every channel of every sequence. Between
/// them the state is multiplied by its weight: those products are the caller's.
template <class Space>
struct Recurrent : detail::NotIncluded<Space> {};

template <>
struct Recurrent<HostSpace> : detail::OfSpace<HostSpace> {
  template <class T>
  using Pass = RecurrentPass<T, HostSpace>;

  /// Step t of all sequences that have one: `state` becomes the next, and is y's row of the token that is read; y is
  /// zero in padding. The state's part of the gates is its `product` with its weight, plus the bias; at step 0, unless
  /// there are earlier tokens, it is the bias alone, and `product` and `state` are not read.
  /// @shape product [rows, gates * width]   @shape bias [gates * width]   @shape state [rows, width]
  /// @shape y [slots, width], of the same type or one that it is rounded to
  /// @determinism bitwise, for any number of threads
  template <class Cell, class T, class Out>
  static void forward_step(Stream stream, Index t, Pass<T> const& pass, Matrix<T const> product, Vector<T const> bias,
                           Matrix<T> state, Matrix<Out> y) {
    auto const width = pass.width();
    for_rows(stream, pass, [&](Index row) {
      if (t >= pass.layout.tokens(row)) {
        if (auto const slot = pass.padding(row, t); slot >= 0) std::fill_n(y.data + slot * width, width, Out{});
        if (t == 0) std::fill_n(state.data + row * width, width, T{0});  // it is multiplied all the same
        return;
      }
      auto const slot = pass.slot(row, t);
      auto* const gates = pass.gates.data + slot * Cell::gates * width;
      auto* const kept = pass.kept.data + slot * width;
      auto const step = [&](auto first) {
        auto const* const of_state = first ? nullptr : product.data + row * Cell::gates * width;
        auto const* const kept_before = first    ? nullptr
                                        : t == 0 ? pass.earlier.data + row * width
                                                 : kept + pass.to_before() * width;
        forward_row<Cell, first>(width, gates, of_state, bias.data, kept_before, kept, state.data + row * width,
                                 y.data + slot * width);
      };
      t == 0 && !pass.earlier.data ? step(std::true_type{}) : step(std::false_type{});
    });
  }

  /// The gradients of step t, which take the place of the gates: of the input's part. `dparts` gets those of the
  /// state's part, where the cell has others, and `dproduct` the same by sequence. `dstate` is that of the state, as
  /// far as later steps have it; it becomes that of the state before, or what of it does not come by the product. Both
  /// are zero in padding. `dkept` passes on that of what the cell keeps.
  /// @shape dy, before [slots, width]: before is the state that each token was read in   @shape dstate, dkept [rows,
  /// width]   @shape dproduct [rows, gates * width]   @shape dparts [slots, gates * width]
  /// @determinism bitwise, for any number of threads
  template <class Cell, class T, class Out>
  static void backward_step(Stream stream, Index t, Pass<T> const& pass, Matrix<Out const> dy, Matrix<T const> before,
                            Matrix<T> dstate, Matrix<T> dkept, Matrix<T> dproduct, Matrix<T> dparts) {
    auto const width = pass.width(), all = Cell::gates * width;
    for_rows(stream, pass, [&](Index row) {
      auto const tokens = pass.layout.tokens(row);
      if (t >= tokens) {
        if (auto const slot = pass.padding(row, t); slot >= 0) {
          std::fill_n(pass.gates.data + slot * all, all, T{0});
          if constexpr (Cell::parts_differ) std::fill_n(dparts.data + slot * all, all, T{0});
        }
        if (t + 1 == pass.layout.length) {  // multiplied all the same
          std::fill_n(dproduct.data + row * all, all, T{0});
          std::fill_n(dstate.data + row * width, width, T{0});
        }
        return;
      }
      auto const slot = pass.slot(row, t);
      auto const* const kept = pass.kept.data + slot * width;
      auto const step = [&](auto first, auto last) {
        backward_row<Cell, first, last>(width, pass.gates.data + slot * all, kept,
                                        first ? nullptr : kept + pass.to_before() * width, before.data + slot * width,
                                        dy.data + slot * width, dstate.data + row * width, dkept.data + row * width,
                                        dproduct.data + row * all, dparts.data + slot * all);
      };
      if (t + 1 == tokens)
        t == 0 ? step(std::true_type{}, std::true_type{}) : step(std::false_type{}, std::true_type{});
      else
        t == 0 ? step(std::true_type{}, std::false_type{}) : step(std::false_type{}, std::false_type{});
    });
  }

  /// The state that each token was read in: y of the one that was read before, zero for the first, and in padding.
  /// @shape y, before [slots, width]
  template <class T, class Out>
  static void states_before(Stream stream, Pass<T> const& pass, Matrix<Out const> y, Matrix<T> before) {
    auto const width = pass.width();
    for_rows(stream, pass, [&](Index row) {
      for (Index t = 0; t < pass.layout.length; ++t) {
        bool const is_token = t < pass.layout.tokens(row);
        auto const slot = is_token ? pass.slot(row, t) : pass.padding(row, t);
        if (slot < 0) break;
        auto* const to = before.data + slot * width;
        if (is_token && t > 0)
          std::copy_n(y.data + (slot + pass.to_before()) * width, width, to);
        else
          std::fill_n(to, width, T{0});
      }
    });
  }

 private:
  template <class T, class F>
  static void for_rows(Stream stream, Pass<T> const& pass, F const& f) {
    constexpr Index channels_per_task = 1024;
    auto const rows_per_task = std::max<Index>(1, channels_per_task / std::max<Index>(1, pass.width()));
    stream.pool().for_ranges(pass.layout.rows, rows_per_task, [&](Index row, Index end) {
      for (; row < end; ++row) f(row);
    });
  }

  template <class Cell, bool first, class T, class Out>
  static void forward_row(Index width, T* gates, T const* product, T const* bias, T const* kept_before, T* kept,
                          T* state, Out* y) {
    with_best_instructions(
        [=] { forward_channels<Cell, first>(width, gates, product, bias, kept_before, kept, state, y); });
  }
  template <class Cell, bool first, class T, class Out>
  [[gnu::always_inline]] static void forward_channels(Index width, T* __restrict gates, T const* __restrict product,
                                                      T const* __restrict bias, T const* __restrict kept_before,
                                                      T* __restrict kept, T* __restrict state, Out* __restrict y) {
    LOCKSTEP_RECURRENT_LOOP
    for (Index c = 0; c < width; ++c) {
      T x[Cell::gates], r[Cell::gates];
      for (int g = 0; g < Cell::gates; ++g) {
        x[g] = gates[g * width + c];
        r[g] = first ? bias[g * width + c] : product[g * width + c] + bias[g * width + c];
      }
      auto const made = Cell::template forward<T>(x, r, first ? T{0} : kept_before[c], first ? T{0} : state[c]);
      for (int g = 0; g < Cell::gates; ++g) gates[g * width + c] = made.gate[g];
      kept[c] = made.kept;
      state[c] = made.state;
      y[c] = static_cast<Out>(made.state);
    }
  }

  template <class Cell, bool first, bool last, class T, class Out>
  static void backward_row(Index width, T* gates, T const* kept, T const* kept_before, T const* before, Out const* dy,
                           T* dstate, T* dkept, T* dproduct, T* dparts) {
    with_best_instructions([=] {
      backward_channels<Cell, first, last>(width, gates, kept, kept_before, before, dy, dstate, dkept, dproduct,
                                           dparts);
    });
  }
  template <class Cell, bool first, bool last, class T, class Out>
  [[gnu::always_inline]] static void backward_channels(Index width, T* __restrict gates, T const* __restrict kept,
                                                       T const* __restrict kept_before, T const* __restrict before,
                                                       Out const* __restrict dy, T* __restrict dstate,
                                                       T* __restrict dkept, T* __restrict dproduct,
                                                       T* __restrict dparts) {
    LOCKSTEP_RECURRENT_LOOP
    for (Index c = 0; c < width; ++c) {
      T gate[Cell::gates];
      for (int g = 0; g < Cell::gates; ++g) gate[g] = gates[g * width + c];
      auto const d =
          Cell::template backward<T>(gate, kept[c], first ? T{0} : kept_before[c], before[c],
                                     static_cast<T>(dy[c]) + (last ? T{0} : dstate[c]), last ? T{0} : dkept[c]);
      for (int g = 0; g < Cell::gates; ++g) {
        gates[g * width + c] = d.dx[g];
        dproduct[g * width + c] = d.dr[g];
        if constexpr (Cell::parts_differ) dparts[g * width + c] = d.dr[g];
      }
      dkept[c] = d.dkept;
      if constexpr (Cell::passes_state) dstate[c] = d.dbefore;
    }
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel

#undef LOCKSTEP_RECURRENT_LOOP
