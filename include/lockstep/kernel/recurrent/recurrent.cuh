// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/recurrent/recurrent.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream: one thread for each channel of each
/// sequence.
template <>
struct Recurrent<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class T>
  using Pass = RecurrentPass<T, CudaSpace>;

  template <class Cell, class T, class Out>
  static void forward_step(Stream stream, Index t, Pass<T> const& pass, Matrix<T const> product, Vector<T const> bias,
                           Matrix<T> state, Matrix<Out> y) {
    auto const width = pass.width();
    detail::for_elements("kernel::Recurrent", stream, pass.layout.rows * width, [=] __device__(Index i) {
      auto const row = i / width, c = i % width;
      if (t >= pass.layout.tokens(row)) {
        if (auto const slot = pass.padding(row, t); slot >= 0) y.data[slot * width + c] = static_cast<Out>(T{0});
        if (t == 0) state.data[i] = T{0};
        return;
      }
      bool const first = t == 0;
      auto const slot = pass.slot(row, t);
      auto* const gates = pass.gates.data + slot * Cell::gates * width + c;
      auto* const kept = pass.kept.data + slot * width + c;
      T x[Cell::gates], r[Cell::gates];
      for (int g = 0; g < Cell::gates; ++g) {
        x[g] = gates[g * width];
        auto const of_bias = bias.data[g * width + c];
        r[g] = first ? of_bias : product.data[(row * Cell::gates + g) * width + c] + of_bias;
      }
      auto const made =
          Cell::template forward<T>(x, r, first ? T{0} : kept[pass.to_before() * width], first ? T{0} : state.data[i]);
      for (int g = 0; g < Cell::gates; ++g) gates[g * width] = made.gate[g];
      *kept = made.kept;
      state.data[i] = made.state;
      y.data[slot * width + c] = static_cast<Out>(made.state);
    });
  }

  template <class Cell, class T, class Out>
  static void backward_step(Stream stream, Index t, Pass<T> const& pass, Matrix<Out const> dy, Matrix<T const> before,
                            Matrix<T> dstate, Matrix<T> dkept, Matrix<T> dproduct, Matrix<T> dparts) {
    auto const width = pass.width();
    detail::for_elements("kernel::Recurrent", stream, pass.layout.rows * width, [=] __device__(Index i) {
      auto const row = i / width, c = i % width, tokens = pass.layout.tokens(row);
      auto* const products = dproduct.data + row * Cell::gates * width + c;
      auto const put = [&](T* gates, T* parts, T const* dx, T const* dr) {
        for (int g = 0; g < Cell::gates; ++g) {
          gates[g * width] = dx ? dx[g] : T{0};
          if (Cell::parts_differ) parts[g * width] = dr ? dr[g] : T{0};
        }
      };
      if (t >= tokens) {
        if (auto const slot = pass.padding(row, t); slot >= 0) {
          auto const at = slot * Cell::gates * width + c;
          put(pass.gates.data + at, Cell::parts_differ ? dparts.data + at : nullptr, nullptr, nullptr);
        }
        if (t + 1 == pass.layout.length) {
          for (int g = 0; g < Cell::gates; ++g) products[g * width] = T{0};
          dstate.data[i] = T{0};
        }
        return;
      }
      bool const first = t == 0, last = t + 1 == tokens;
      auto const slot = pass.slot(row, t), at = slot * Cell::gates * width + c;
      auto const* const kept = pass.kept.data + slot * width + c;
      T gate[Cell::gates];
      for (int g = 0; g < Cell::gates; ++g) gate[g] = pass.gates.data[at + g * width];
      auto const gradient = static_cast<T>(dy.data[slot * width + c]);
      auto const d = Cell::template backward<T>(
          gate, *kept, first ? T{0} : kept[pass.to_before() * width], before.data[slot * width + c],
          last ? gradient : gradient + dstate.data[i], last ? T{0} : dkept.data[i]);
      put(pass.gates.data + at, Cell::parts_differ ? dparts.data + at : nullptr, d.dx, d.dr);
      for (int g = 0; g < Cell::gates; ++g) products[g * width] = d.dr[g];
      dkept.data[i] = d.dkept;
      if (Cell::passes_state) dstate.data[i] = d.dbefore;
    });
  }

  template <class T, class Out>
  static void states_before(Stream stream, Pass<T> const& pass, Matrix<Out const> y, Matrix<T> before) {
    auto const width = pass.width();
    detail::for_elements(
        "kernel::Recurrent", stream, pass.layout.rows * pass.layout.length * width, [=] __device__(Index i) {
          auto const c = i % width, t = i / width % pass.layout.length, row = i / width / pass.layout.length;
          bool const is_token = t < pass.layout.tokens(row);
          auto const slot = is_token ? pass.slot(row, t) : pass.padding(row, t);
          if (slot < 0) return;
          before.data[slot * width + c] =
              is_token && t > 0 ? static_cast<T>(y.data[(slot + pass.to_before()) * width + c]) : T{0};
        });
  }
};

}}}  // namespace lockstep::kernel
