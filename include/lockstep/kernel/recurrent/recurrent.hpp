// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <type_traits>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/recurrent/recurrent_cells.hpp>
#include <lockstep/kernel/sequence_layout.hpp>

// Placed before a loop over many arrays whose iterations are independent. Without it, g++ 12 generates a second loop
// without vectors, which a test at run time may choose even if the arrays do not overlap. clang warns of a loop that it
// then does not vectorize.
#if defined(__clang__)
#define LOCKSTEP_RECURRENT_LOOP
#else
#define LOCKSTEP_RECURRENT_LOOP _Pragma("GCC ivdep")
#endif

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Order in which a recurrent layer reads the tokens of a sequence.
enum class Direction {
  forward,   ///< the first token first
  backward,  ///< the last token first
};

/// Arguments that the steps of a recurrent layer's pass share.
template <class Scalar, class Space>
struct RecurrentPass {
  SequenceLayout<Space> layout;  ///< of the tokens
  Direction direction;           ///< order of the tokens
  /// [slots, gates * width], gate by gate: the input's part, then as backward needs it.
  TensorView<Scalar, 2, Space> gates;
  TensorView<Scalar, 2, Space> kept;             ///< [slots, width]
  TensorView<Scalar const, 2, Space> earlier{};  ///< [rows, width]: kept before the first token; null without a start
  TensorView<Scalar const, 2, Space> initial{};  ///< [rows, width]: the state before the first token; null for 0
  TensorView<Scalar const, 2, Space> dlast{};    ///< [rows, width]: gradient of kept after the last token; null for 0

  /// Returns the width of the state.
  [[nodiscard]] constexpr Index width() const noexcept { return kept.extent[1]; }
  /// Returns the slot of a sequence that step t reads, for a sequence with such a step.
  [[nodiscard]] constexpr Index slot(Index row, Index t) const noexcept {
    return layout.start(row) + (direction == Direction::forward ? t : layout.tokens(row) - 1 - t);
  }
  /// Returns the offset from a slot to the slot that was read before it.
  [[nodiscard]] constexpr Index to_before() const noexcept { return direction == Direction::forward ? -1 : 1; }
  /// Returns the padding slot after the tokens for a step t that a shorter sequence does not have, or -1 for a ragged
  /// layout.
  [[nodiscard]] constexpr Index padding(Index row, Index t) const noexcept {
    return layout.is_ragged() ? -1 : layout.start(row) + t;
  }
};

/// The steps of a recurrent layer: a cell of recurrent_cells.hpp for each channel of each sequence. Between the steps,
/// the caller multiplies the state by its weight.
template <class Space>
struct Recurrent : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Recurrent<HostSpace> : detail::KernelTypes<HostSpace> {
  template <class Scalar>
  using Pass = RecurrentPass<Scalar, HostSpace>;  ///< arguments that the steps share

  /// Computes step t of all sequences that have one. `state` becomes the next state, and is also the token's row of y;
  /// y is zero in padding. The state's part of the gates is `product`, the state times its weight, plus the bias. At
  /// step 0, unless the pass has `earlier`, it is only the bias, and `product` and `state` are not read.
  /// @shape product [rows, gates * width]   @shape bias [gates * width]   @shape state [rows, width]
  /// @shape y [slots, width], of Scalar or a type to which Scalar is rounded
  /// @determinism bitwise, for any number of threads
  template <class Cell, class Scalar, class Out>
  static void forward_step(Stream stream, Index t, Pass<Scalar> const& pass, Matrix<Scalar const> product,
                           Vector<Scalar const> bias, Matrix<Scalar> state, Matrix<Out> y) {
    auto const width = pass.width();
    for_rows(stream, pass, [&](Index row) {
      if (t >= pass.layout.tokens(row)) {
        if (auto const slot = pass.padding(row, t); slot >= 0) std::fill_n(y.data + slot * width, width, Out{});
        if (t == 0) std::fill_n(state.data + row * width, width, Scalar{0});  // its product is computed anyway
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

  /// Computes the gradients of step t. The gradients of the input's part overwrite the gates. If the gradients of the
  /// state's part differ for this cell, `dparts` receives them. `dproduct` receives them by sequence. On entry,
  /// `dstate` is the gradient of the state from later steps. It becomes the gradient of the state before, without the
  /// part through the product. All are zero in padding. `dkept` passes on the gradient of the cell's kept number. After
  /// step 0, `dstate` and `dkept` belong to `initial` and `earlier`. They begin as zero and `dlast`.
  /// @shape dy, before [slots, width]: before is the state before each token   @shape dstate, dkept [rows, width]
  /// @shape dproduct [rows, gates * width]   @shape dparts [slots, gates * width]
  /// @determinism bitwise, for any number of threads
  template <class Cell, class Scalar, class Out>
  static void backward_step(Stream stream, Index t, Pass<Scalar> const& pass, Matrix<Out const> dy,
                            Matrix<Scalar const> before, Matrix<Scalar> dstate, Matrix<Scalar> dkept,
                            Matrix<Scalar> dproduct, Matrix<Scalar> dparts) {
    auto const width = pass.width(), all = Cell::gates * width;
    for_rows(stream, pass, [&](Index row) {
      auto const tokens = pass.layout.tokens(row);
      if (t >= tokens) {
        if (auto const slot = pass.padding(row, t); slot >= 0) {
          std::fill_n(pass.gates.data + slot * all, all, Scalar{0});
          if constexpr (Cell::parts_differ) std::fill_n(dparts.data + slot * all, all, Scalar{0});
        }
        if (t + 1 == pass.layout.length) {  // their product is computed anyway
          std::fill_n(dproduct.data + row * all, all, Scalar{0});
          std::fill_n(dstate.data + row * width, width, Scalar{0});
          std::fill_n(dkept.data + row * width, width, Scalar{0});
          if (tokens == 0) begin_from_last(pass, row, dkept);
        }
        return;
      }
      auto const slot = pass.slot(row, t);
      auto const* const kept = pass.kept.data + slot * width;
      auto const step = [&](auto first, auto last) {
        backward_row<Cell, first, last>(width, pass.gates.data + slot * all, kept,
                                        first    ? nullptr
                                        : t == 0 ? pass.earlier.data + row * width
                                                 : kept + pass.to_before() * width,
                                        before.data + slot * width, dy.data + slot * width, dstate.data + row * width,
                                        dkept.data + row * width, dproduct.data + row * all, dparts.data + slot * all);
      };
      bool const from_zero = t == 0 && !pass.earlier.data, is_last = t + 1 == tokens;
      if (is_last && pass.dlast.data) {
        std::fill_n(dstate.data + row * width, width, Scalar{0});
        begin_from_last(pass, row, dkept);
      }
      if (is_last && !pass.dlast.data)
        from_zero ? step(std::true_type{}, std::true_type{}) : step(std::false_type{}, std::true_type{});
      else
        from_zero ? step(std::true_type{}, std::false_type{}) : step(std::false_type{}, std::false_type{});
    });
  }

  /// Copies the number that is kept after the last token: `earlier`, or zero, for a sequence without tokens.
  /// @shape last [rows, width]
  template <class Scalar, class Out>
  static void last_kept(Stream stream, Pass<Scalar> const& pass, Matrix<Out> last) {
    auto const width = pass.width();
    for_rows(stream, pass, [&](Index row) {
      auto const tokens = pass.layout.tokens(row);
      auto const* const from = tokens > 0          ? pass.kept.data + pass.slot(row, tokens - 1) * width
                               : pass.earlier.data ? pass.earlier.data + row * width
                                                   : nullptr;
      for (Index c = 0; c < width; ++c) last.data[row * width + c] = from ? static_cast<Out>(from[c]) : Out{};
    });
  }

  /// Copies the state before each token: y of the token that was read before it, `initial` for the first, and zero in
  /// padding.
  /// @shape y, before [slots, width]
  template <class Scalar, class Out>
  static void states_before(Stream stream, Pass<Scalar> const& pass, Matrix<Out const> y, Matrix<Scalar> before) {
    auto const width = pass.width();
    for_rows(stream, pass, [&](Index row) {
      for (Index t = 0; t < pass.layout.length; ++t) {
        bool const is_token = t < pass.layout.tokens(row);
        auto const slot = is_token ? pass.slot(row, t) : pass.padding(row, t);
        if (slot < 0) break;
        auto* const to = before.data + slot * width;
        if (is_token && t > 0)
          std::copy_n(y.data + (slot + pass.to_before()) * width, width, to);
        else if (is_token && pass.initial.data)
          std::copy_n(pass.initial.data + row * width, width, to);
        else
          std::fill_n(to, width, Scalar{0});
      }
    });
  }

 private:
  /// Sets the gradient of a sequence's kept number to that after its last token.
  template <class Scalar>
  static void begin_from_last(Pass<Scalar> const& pass, Index row, Matrix<Scalar> dkept) {
    auto const width = pass.width();
    if (pass.dlast.data) std::copy_n(pass.dlast.data + row * width, width, dkept.data + row * width);
  }
  template <class Scalar, class Function>
  static void for_rows(Stream stream, Pass<Scalar> const& pass, Function const& f) {
    constexpr Index channels_per_task = 1024;
    auto const rows_per_task = std::max<Index>(1, channels_per_task / std::max<Index>(1, pass.width()));
    stream.pool().for_ranges(pass.layout.rows, rows_per_task, [&](Index row, Index end) {
      for (; row < end; ++row) f(row);
    });
  }

  template <class Cell, bool first, class Scalar, class Out>
  static void forward_row(Index width, Scalar* gates, Scalar const* product, Scalar const* bias,
                          Scalar const* kept_before, Scalar* kept, Scalar* state, Out* y) {
    with_best_instructions(
        [=] { forward_channels<Cell, first>(width, gates, product, bias, kept_before, kept, state, y); });
  }
  template <class Cell, bool first, class Scalar, class Out>
  [[gnu::always_inline]] static void forward_channels(Index width, Scalar* __restrict gates,
                                                      Scalar const* __restrict product, Scalar const* __restrict bias,
                                                      Scalar const* __restrict kept_before, Scalar* __restrict kept,
                                                      Scalar* __restrict state, Out* __restrict y) {
    LOCKSTEP_RECURRENT_LOOP
    for (Index c = 0; c < width; ++c) {
      Scalar x[Cell::gates], r[Cell::gates];
      for (int g = 0; g < Cell::gates; ++g) {
        x[g] = gates[g * width + c];
        r[g] = first ? bias[g * width + c] : product[g * width + c] + bias[g * width + c];
      }
      auto const made =
          Cell::template forward<Scalar>(x, r, first ? Scalar{0} : kept_before[c], first ? Scalar{0} : state[c]);
      for (int g = 0; g < Cell::gates; ++g) gates[g * width + c] = made.gate[g];
      kept[c] = made.kept;
      state[c] = made.state;
      y[c] = static_cast<Out>(made.state);
    }
  }

  template <class Cell, bool first, bool last, class Scalar, class Out>
  static void backward_row(Index width, Scalar* gates, Scalar const* kept, Scalar const* kept_before,
                           Scalar const* before, Out const* dy, Scalar* dstate, Scalar* dkept, Scalar* dproduct,
                           Scalar* dparts) {
    with_best_instructions([=] {
      backward_channels<Cell, first, last>(width, gates, kept, kept_before, before, dy, dstate, dkept, dproduct,
                                           dparts);
    });
  }
  template <class Cell, bool first, bool last, class Scalar, class Out>
  [[gnu::always_inline]] static void backward_channels(Index width, Scalar* __restrict gates,
                                                       Scalar const* __restrict kept,
                                                       Scalar const* __restrict kept_before,
                                                       Scalar const* __restrict before, Out const* __restrict dy,
                                                       Scalar* __restrict dstate, Scalar* __restrict dkept,
                                                       Scalar* __restrict dproduct, Scalar* __restrict dparts) {
    LOCKSTEP_RECURRENT_LOOP
    for (Index c = 0; c < width; ++c) {
      Scalar gate[Cell::gates];
      for (int g = 0; g < Cell::gates; ++g) gate[g] = gates[g * width + c];
      auto const d = Cell::template backward<Scalar>(gate, kept[c], first ? Scalar{0} : kept_before[c], before[c],
                                                     static_cast<Scalar>(dy[c]) + (last ? Scalar{0} : dstate[c]),
                                                     last ? Scalar{0} : dkept[c]);
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

}}}  // namespace lockstep::kernel

#undef LOCKSTEP_RECURRENT_LOOP
