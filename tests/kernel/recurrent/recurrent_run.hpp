// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <lockstep/kernel/recurrent/recurrent.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

namespace lockstep_test {

/// All steps of a recurrent layer on the host, forward and backward. Numbers that depend only on sequence and channel
/// replace products with a weight.
template <class Cell, class T>
struct RecurrentRun {
  using Index = lockstep::Index;
  lockstep::kernel::SequenceLayout<lockstep::HostSpace> layout;
  Index width, all = Cell::gates * width;
  std::vector<T> gates, kept, y, before, state, product, bias, dy, dstate, dkept, dproduct, dparts;
  std::vector<T> dstate_between;           // for cells whose state gradient passes only through the product
  std::vector<T> earlier, initial, dlast;  // the first states and a gradient of the last, which may be left out
  std::vector<T> last;
  bool begins;

  RecurrentRun(lockstep::kernel::SequenceLayout<lockstep::HostSpace> const& of, Index channels, bool with_first = false)
      : layout(of), width(channels), begins(with_first) {
    fill();
  }
  /// The input's part of the gates and the outputs' gradients are the token's, at any place; padding has other numbers.
  void fill() {
    gates.assign(size(layout.slots * all), T{55}), dy.assign(size(layout.slots * width), T{66});
    for (Index row = 0; row < layout.rows; ++row)
      for (Index t = 0; t < layout.tokens(row); ++t) {
        auto const seed = static_cast<std::uint64_t>(100 * row + t + 1);
        auto const gate = values<T>(all, seed, 2), gradient = values<T>(width, seed + 5000);
        std::copy(gate.begin(), gate.end(), gates.begin() + (layout.start(row) + t) * all);
        std::copy(gradient.begin(), gradient.end(), dy.begin() + (layout.start(row) + t) * width);
      }
    kept.assign(size(layout.slots * width), T{77}), y = before = kept, dparts = gates;
    state.assign(size(layout.rows * width), T{88}), dstate = dkept = state;
    product = values<T>(layout.rows * all, 3), bias = values<T>(all, 4), dproduct = product;
    dstate_between = values<T>(layout.rows * width, 9);
    earlier = values<T>(layout.rows * width, 10), initial = values<T>(layout.rows * width, 11);
    dlast = values<T>(layout.rows * width, 12), last = state;
    if (begins) state = initial;
  }
  void run(lockstep::memory::Stream<lockstep::HostSpace> stream, lockstep::kernel::Direction direction) {
    using Kernel = lockstep::kernel::Recurrent<lockstep::HostSpace>;
    auto const rows = layout.rows, slots = layout.slots;
    lockstep::kernel::RecurrentPass<T, lockstep::HostSpace> pass{layout, direction, view(gates, slots, all),
                                                                 view(kept, slots, width)};
    if (begins)
      pass.earlier = view(earlier, rows, width), pass.initial = view(initial, rows, width),
      pass.dlast = view(dlast, rows, width);
    for (Index t = 0; t < layout.length; ++t)
      Kernel::template forward_step<Cell, T>(stream, t, pass, view(product, rows, all), view(bias, all),
                                             view(state, rows, width), view(y, slots, width));
    Kernel::template last_kept<T>(stream, pass, view(last, rows, width));
    Kernel::template states_before<T, T>(stream, pass, view(y, slots, width), view(before, slots, width));
    for (Index t = layout.length; t-- > 0;) {
      Kernel::template backward_step<Cell, T, T>(stream, t, pass, view(dy, slots, width), view(before, slots, width),
                                                 view(dstate, rows, width), view(dkept, rows, width),
                                                 view(dproduct, rows, all), view(dparts, slots, all));
      if (!Cell::passes_state) dstate = dstate_between;
    }
  }
  [[nodiscard]] std::size_t at(Index slot, Index c) const { return size(slot * width + c); }
  [[nodiscard]] std::size_t gate(Index slot, Index g, Index c) const { return size(slot * all + g * width + c); }

 private:
  static std::size_t size(Index count) { return static_cast<std::size_t>(count); }
};

}  // namespace lockstep_test
