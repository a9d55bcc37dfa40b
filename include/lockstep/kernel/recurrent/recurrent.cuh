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
  template <class Scalar>
  using Pass = RecurrentPass<Scalar, CudaSpace>;

  template <class Cell, class Scalar, class Out>
  static void forward_step(Stream stream, Index t, Pass<Scalar> const& pass, Matrix<Scalar const> product,
                           Vector<Scalar const> bias, Matrix<Scalar> state, Matrix<Out> y) {
    auto const width = pass.width();
    detail::for_elements("kernel::Recurrent", stream, pass.layout.rows * width, [=] __device__(Index i) {
      auto const row = i / width, c = i % width;
      if (t >= pass.layout.tokens(row)) {
        if (auto const slot = pass.padding(row, t); slot >= 0) y.data[slot * width + c] = static_cast<Out>(Scalar{0});
        if (t == 0) state.data[i] = Scalar{0};
        return;
      }
      bool const first = t == 0;
      auto const slot = pass.slot(row, t);
      auto* const gates = pass.gates.data + slot * Cell::gates * width + c;
      auto* const kept = pass.kept.data + slot * width + c;
      Scalar x[Cell::gates], r[Cell::gates];
      for (int g = 0; g < Cell::gates; ++g) {
        x[g] = gates[g * width];
        auto const of_bias = bias.data[g * width + c];
        r[g] = first ? of_bias : product.data[(row * Cell::gates + g) * width + c] + of_bias;
      }
      auto const made = Cell::template forward<Scalar>(x, r, first ? Scalar{0} : kept[pass.to_before() * width],
                                                       first ? Scalar{0} : state.data[i]);
      for (int g = 0; g < Cell::gates; ++g) gates[g * width] = made.gate[g];
      *kept = made.kept;
      state.data[i] = made.state;
      y.data[slot * width + c] = static_cast<Out>(made.state);
    });
  }

  template <class Cell, class Scalar, class Out>
  static void backward_step(Stream stream, Index t, Pass<Scalar> const& pass, Matrix<Out const> dy,
                            Matrix<Scalar const> before, Matrix<Scalar> dstate, Matrix<Scalar> dkept,
                            Matrix<Scalar> dproduct, Matrix<Scalar> dparts) {
    auto const width = pass.width();
    detail::for_elements("kernel::Recurrent", stream, pass.layout.rows * width, [=] __device__(Index i) {
      auto const row = i / width, c = i % width, tokens = pass.layout.tokens(row);
      auto* const products = dproduct.data + row * Cell::gates * width + c;
      auto const put = [&](Scalar* gates, Scalar* parts, Scalar const* dx, Scalar const* dr) {
        for (int g = 0; g < Cell::gates; ++g) {
          gates[g * width] = dx ? dx[g] : Scalar{0};
          if (Cell::parts_differ) parts[g * width] = dr ? dr[g] : Scalar{0};
        }
      };
      if (t >= tokens) {
        if (auto const slot = pass.padding(row, t); slot >= 0) {
          auto const at = slot * Cell::gates * width + c;
          put(pass.gates.data + at, Cell::parts_differ ? dparts.data + at : nullptr, nullptr, nullptr);
        }
        if (t + 1 == pass.layout.length) {
          for (int g = 0; g < Cell::gates; ++g) products[g * width] = Scalar{0};
          dstate.data[i] = Scalar{0};
        }
        return;
      }
      bool const first = t == 0, last = t + 1 == tokens;
      auto const slot = pass.slot(row, t), at = slot * Cell::gates * width + c;
      auto const* const kept = pass.kept.data + slot * width + c;
      Scalar gate[Cell::gates];
      for (int g = 0; g < Cell::gates; ++g) gate[g] = pass.gates.data[at + g * width];
      auto const gradient = static_cast<Scalar>(dy.data[slot * width + c]);
      auto const d = Cell::template backward<Scalar>(
          gate, *kept, first ? Scalar{0} : kept[pass.to_before() * width], before.data[slot * width + c],
          last ? gradient : gradient + dstate.data[i], last ? Scalar{0} : dkept.data[i]);
      put(pass.gates.data + at, Cell::parts_differ ? dparts.data + at : nullptr, d.dx, d.dr);
      for (int g = 0; g < Cell::gates; ++g) products[g * width] = d.dr[g];
      dkept.data[i] = d.dkept;
      if (Cell::passes_state) dstate.data[i] = d.dbefore;
    });
  }

  template <class Scalar, class Out>
  static void states_before(Stream stream, Pass<Scalar> const& pass, Matrix<Out const> y, Matrix<Scalar> before) {
    auto const width = pass.width();
    detail::for_elements(
        "kernel::Recurrent", stream, pass.layout.rows * pass.layout.length * width, [=] __device__(Index i) {
          auto const c = i % width, t = i / width % pass.layout.length, row = i / width / pass.layout.length;
          bool const is_token = t < pass.layout.tokens(row);
          auto const slot = is_token ? pass.slot(row, t) : pass.padding(row, t);
          if (slot < 0) return;
          before.data[slot * width + c] =
              is_token && t > 0 ? static_cast<Scalar>(y.data[(slot + pass.to_before()) * width + c]) : Scalar{0};
        });
  }
};

}}}  // namespace lockstep::kernel
