// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/recurrent/recurrent_cells.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernel/values.hpp"

using namespace lockstep;

namespace {

/// A cell's concatenated inputs: x, r, the previous step's saved values, the previous state.
template <class Cell, class T>
struct Inputs {
  static constexpr auto gates = static_cast<std::size_t>(Cell::gates);
  std::vector<T> all;

  [[nodiscard]] kernel::RecurrentStep<T, Cell::gates> forward() const {
    T x[gates], r[gates];
    std::copy_n(all.begin(), gates, x);
    std::copy_n(all.begin() + Cell::gates, gates, r);
    return Cell::template forward<T>(x, r, all[2 * gates], all[2 * gates + 1]);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("gradients equal the differences of values", Cell, kernel::LstmCell, kernel::GruCell,
                   kernel::RnnCell) {
  using Case = Inputs<Cell, double>;
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    Case const at{lockstep_test::values<double>(2 * Cell::gates + 2, seed, 3)};
    double const to_state = 0.7, to_kept = -1.3;  // how the loss depends on both
    auto const made = at.forward();
    auto const d =
        Cell::template backward<double>(made.gate, made.kept, at.all[2 * Case::gates], at.all[2 * Case::gates + 1],
                                        to_state, Cell::passes_state ? 0 : to_kept);
    std::vector<double> analytic(std::begin(d.dx), std::end(d.dx));
    analytic.insert(analytic.end(), std::begin(d.dr), std::end(d.dr));
    analytic.push_back(d.dkept), analytic.push_back(d.dbefore);
    for (std::size_t i = 0; i < at.all.size(); ++i) {
      auto const loss = [&](double step) {
        Case moved = at;
        moved.all[i] += step;
        auto const now = moved.forward();
        return to_state * now.state + (Cell::passes_state ? 0 : to_kept * now.kept);
      };
      CAPTURE(i);
      CHECK(analytic[i] == doctest::Approx((loss(1e-5) - loss(-1e-5)) / 2e-5).epsilon(1e-7));
    }
    for (std::size_t g = 0; g < Case::gates; ++g) CHECK((d.dx[g] == d.dr[g] || Cell::parts_differ));
  }
}

TEST_CASE_TEMPLATE("floats are within a few roundings of doubles, also for large inputs", Cell, kernel::LstmCell,
                   kernel::GruCell, kernel::RnnCell) {
  for (double const size : {1.0, 30.0, 1e6})
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      Inputs<Cell, double> exact{lockstep_test::values<double>(2 * Cell::gates + 2, seed, static_cast<float>(size))};
      for (std::size_t i = 2 * static_cast<std::size_t>(Cell::gates); i < exact.all.size(); ++i) exact.all[i] /= size;
      Inputs<Cell, float> low;
      for (auto& number : exact.all) low.all.push_back(static_cast<float>(number)), number = low.all.back();
      auto const a = exact.forward();
      auto const b = low.forward();
      // A gate's argument is rounded twice, and its slope is at most 1; four more roundings follow.
      CHECK(std::abs(a.state - static_cast<double>(b.state)) <= 0x1p-24 * (16 + 8 * size));
      CHECK(std::isfinite(b.state));
    }
}
