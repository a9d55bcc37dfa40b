// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include <lockstep/kernel/detail/logistic.hpp>
#include <lockstep/kernel/detail/tanh.hpp>

// Cells of Recurrent: function objects for one channel at one step. x is the input's part of the gates, and r the
// state's part. `before` is the previous state, and `state` the new one. A cell may keep one more number per step.
// Cells are called on the host and on devices, so they are constexpr, and Scalar is float or double.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Results of one step.
template <class Scalar, int gates>
struct RecurrentStep {
  Scalar gate[static_cast<std::size_t>(gates)];  ///< as backward needs them
  Scalar kept;                                   ///< number for the next step and for backward
  Scalar state;                                  ///< the new state
};
/// Gradients of one step: of x and r, of the previous step's kept number, and of the previous state without the part
/// through r.
template <class Scalar, int gates>
struct RecurrentGradients {
  Scalar dx[static_cast<std::size_t>(gates)];  ///< of the input's parts
  Scalar dr[static_cast<std::size_t>(gates)];  ///< of the state's parts
  Scalar dkept;                                ///< of the previous step's kept number
  Scalar dbefore;                              ///< of the state before
};

/// i, f, g, o = s(x0 + r0), s(x1 + r1), tanh(x2 + r2), s(x3 + r3); c = f c' + i g; state = o tanh(c), where s is the
/// logistic function. Keeps c.
/// @source Hochreiter, Schmidhuber: Long Short-Term Memory (1997), with Gers's forget gate; order and biases as in
/// torch.nn.LSTM
struct LstmCell {
  static constexpr char const* name = "LSTM";  ///< for messages
  static constexpr int gates = 4;              ///< parts of the product
  static constexpr bool parts_differ = false;  ///< whether the gradients of x and r differ
  static constexpr bool passes_state = false;  ///< whether the state also passes to the next one without r

  /// Computes a step. `kept` is the previous step's number; the state before is not read.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr RecurrentStep<Scalar, gates> forward(Scalar const (&x)[gates],
                                                                                          Scalar const (&r)[gates],
                                                                                          Scalar kept,
                                                                                          Scalar) noexcept {
    Scalar const i = detail::logistic(x[0] + r[0]).at, f = detail::logistic(x[1] + r[1]).at;
    Scalar const g = detail::tanh(x[2] + r[2]), o = detail::logistic(x[3] + r[3]).at;
    Scalar const c = f * kept + i * g;
    return {{i, f, g, o}, c, o * detail::tanh(c)};
  }
  /// Computes the gradients. `kept` is this step's number, and `kept_before` the previous step's; dkept is the gradient
  /// of `kept`.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr RecurrentGradients<Scalar, gates> backward(
      Scalar const (&gate)[gates], Scalar kept, Scalar kept_before, Scalar, Scalar dstate, Scalar dkept) noexcept {
    Scalar const i = gate[0], f = gate[1], g = gate[2], o = gate[3], squashed = detail::tanh(kept);
    Scalar const dc = dkept + dstate * o * ((1 - squashed) * (1 + squashed));
    Scalar const di = dc * g * (i * (1 - i)), df = dc * kept_before * (f * (1 - f));
    Scalar const dg = dc * i * ((1 - g) * (1 + g)), d_o = dstate * squashed * (o * (1 - o));
    return {{di, df, dg, d_o}, {di, df, dg, d_o}, dc * f, 0};
  }
};

/// r, z, n = s(x0 + r0), s(x1 + r1), tanh(x2 + r r2); state = (1 - z) n + z before. Keeps r2.
/// @source Cho et al. (2014), with the reset gate after the state's map, as in torch.nn.GRU
struct GruCell {
  static constexpr char const* name = "GRU";  ///< for messages
  static constexpr int gates = 3;             ///< parts of the product
  static constexpr bool parts_differ = true;  ///< whether the gradients of x and r differ
  static constexpr bool passes_state = true;  ///< whether the state also passes to the next one without r

  /// Computes a step. `before` is the state before; the kept number is not read.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr RecurrentStep<Scalar, gates> forward(Scalar const (&x)[gates],
                                                                                          Scalar const (&r)[gates],
                                                                                          Scalar,
                                                                                          Scalar before) noexcept {
    Scalar const reset = detail::logistic(x[0] + r[0]).at, update = detail::logistic(x[1] + r[1]).at;
    Scalar const fresh = detail::tanh(x[2] + reset * r[2]);
    return {{reset, update, fresh}, r[2], fresh + update * (before - fresh)};
  }
  /// Computes the gradients. `kept` is this step's number, and `before` the state before it; dkept is not read.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr RecurrentGradients<Scalar, gates> backward(
      Scalar const (&gate)[gates], Scalar kept, Scalar, Scalar before, Scalar dstate, Scalar) noexcept {
    Scalar const reset = gate[0], update = gate[1], fresh = gate[2];
    Scalar const dn = dstate * (1 - update) * ((1 - fresh) * (1 + fresh));
    Scalar const dr = dn * kept * (reset * (1 - reset)), dz = dstate * (before - fresh) * (update * (1 - update));
    return {{dr, dz, dn}, {dr, dz, dn * reset}, 0, dstate * update};
  }
};

/// state = tanh(x + r). Keeps nothing.
/// @source Elman: Finding structure in time (1990), as torch.nn.RNN
struct RnnCell {
  static constexpr char const* name = "RNN";   ///< for messages
  static constexpr int gates = 1;              ///< parts of the product
  static constexpr bool parts_differ = false;  ///< whether the gradients of x and r differ
  static constexpr bool passes_state = false;  ///< whether the state also passes to the next one without r

  /// Computes a step. Neither the state before nor a kept number is read.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr RecurrentStep<Scalar, gates> forward(Scalar const (&x)[gates],
                                                                                          Scalar const (&r)[gates],
                                                                                          Scalar, Scalar) noexcept {
    Scalar const state = detail::tanh(x[0] + r[0]);
    return {{state}, 0, state};
  }
  /// Computes the gradients; dkept is not read.
  template <class Scalar>
  [[nodiscard, gnu::always_inline]] static constexpr RecurrentGradients<Scalar, gates> backward(
      Scalar const (&gate)[gates], Scalar, Scalar, Scalar, Scalar dstate, Scalar) noexcept {
    Scalar const d = dstate * ((1 - gate[0]) * (1 + gate[0]));
    return {{d}, {d}, 0, 0};
  }
};

}}}  // namespace lockstep::kernel
