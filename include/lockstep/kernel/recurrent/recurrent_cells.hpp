// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include <lockstep/kernel/detail/logistic.hpp>
#include <lockstep/kernel/detail/tanh.hpp>

/// Cells of Recurrent: function objects for one channel at one step. x is the input's part of the gates, and r the
/// state's part. `before` is the previous state, and `state` the new one. A cell may keep one more number per step.
/// Cells are called on the host and on devices, so they are constexpr, and T is float or double.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Results of one step.
template <class T, int gates>
struct RecurrentStep {
  T gate[static_cast<std::size_t>(gates)];  ///< as backward needs them
  T kept, state;
};
/// Gradients of one step: of x and r, of the previous step's kept number, and of the previous state without the part
/// through r.
template <class T, int gates>
struct RecurrentGradients {
  T dx[static_cast<std::size_t>(gates)], dr[static_cast<std::size_t>(gates)];
  T dkept, dbefore;
};

/// i, f, g, o = s(x0 + r0), s(x1 + r1), tanh(x2 + r2), s(x3 + r3); c = f c' + i g; state = o tanh(c), where s is the
/// logistic function. Keeps c.
/// @source Hochreiter, Schmidhuber: Long Short-Term Memory (1997), with Gers's forget gate; order and biases as in
/// torch.nn.LSTM
struct LstmCell {
  static constexpr char const* name = "LSTM";
  static constexpr int gates = 4;
  static constexpr bool parts_differ = false;  ///< whether the gradients of x and r differ
  static constexpr bool passes_state = false;  ///< whether the state also passes to the next one without r

  template <class T>
  [[nodiscard, gnu::always_inline]] static constexpr RecurrentStep<T, gates> forward(T const (&x)[gates],
                                                                                     T const (&r)[gates], T kept,
                                                                                     T) noexcept {
    T const i = detail::logistic(x[0] + r[0]).at, f = detail::logistic(x[1] + r[1]).at;
    T const g = detail::tanh(x[2] + r[2]), o = detail::logistic(x[3] + r[3]).at;
    T const c = f * kept + i * g;
    return {{i, f, g, o}, c, o * detail::tanh(c)};
  }
  /// Computes the gradients. `kept` is this step's number, and `kept_before` the previous step's; dkept is the gradient
  /// of `kept`.
  template <class T>
  [[nodiscard, gnu::always_inline]] static constexpr RecurrentGradients<T, gates> backward(T const (&gate)[gates],
                                                                                           T kept, T kept_before, T,
                                                                                           T dstate, T dkept) noexcept {
    T const i = gate[0], f = gate[1], g = gate[2], o = gate[3], squashed = detail::tanh(kept);
    T const dc = dkept + dstate * o * ((1 - squashed) * (1 + squashed));
    T const di = dc * g * (i * (1 - i)), df = dc * kept_before * (f * (1 - f));
    T const dg = dc * i * ((1 - g) * (1 + g)), d_o = dstate * squashed * (o * (1 - o));
    return {{di, df, dg, d_o}, {di, df, dg, d_o}, dc * f, 0};
  }
};

/// r, z, n = s(x0 + r0), s(x1 + r1), tanh(x2 + r r2); state = (1 - z) n + z before. Keeps r2.
/// @source Cho et al. (2014), with the reset gate after the state's map, as in torch.nn.GRU
struct GruCell {
  static constexpr char const* name = "GRU";
  static constexpr int gates = 3;
  static constexpr bool parts_differ = true;
  static constexpr bool passes_state = true;

  template <class T>
  [[nodiscard, gnu::always_inline]] static constexpr RecurrentStep<T, gates> forward(T const (&x)[gates],
                                                                                     T const (&r)[gates], T,
                                                                                     T before) noexcept {
    T const reset = detail::logistic(x[0] + r[0]).at, update = detail::logistic(x[1] + r[1]).at;
    T const fresh = detail::tanh(x[2] + reset * r[2]);
    return {{reset, update, fresh}, r[2], fresh + update * (before - fresh)};
  }
  template <class T>
  [[nodiscard, gnu::always_inline]] static constexpr RecurrentGradients<T, gates> backward(T const (&gate)[gates],
                                                                                           T kept, T, T before,
                                                                                           T dstate, T) noexcept {
    T const reset = gate[0], update = gate[1], fresh = gate[2];
    T const dn = dstate * (1 - update) * ((1 - fresh) * (1 + fresh));
    T const dr = dn * kept * (reset * (1 - reset)), dz = dstate * (before - fresh) * (update * (1 - update));
    return {{dr, dz, dn}, {dr, dz, dn * reset}, 0, dstate * update};
  }
};

}}}  // namespace lockstep::kernel
