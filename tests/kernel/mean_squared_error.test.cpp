// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/mean_squared_error.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::MeanSquaredError<HostSpace>;
using Layout = kernel::SequenceLayout<HostSpace>;

namespace {

template <class T>
struct Result {
  std::vector<double> losses, weights;
  std::vector<T> gradient;
  bool operator==(Result const&) const = default;
  [[nodiscard]] double loss() const { return sum(losses); }
  [[nodiscard]] double weight() const { return sum(weights); }

 private:
  static double sum(std::vector<double> const& parts) {
    double total = 0;
    for (double part : parts) total += part;
    return total;
  }
};

template <class T>
struct Pair {
  Layout layout;
  Index width;
  std::vector<T> prediction, target;

  Pair(Layout l, Index w)
      : layout(l), width(w), prediction(values<T>(l.slots * w, 3, 4)), target(values<T>(l.slots * w, 5, 4)) {}

  [[nodiscard]] Result<T> run(int threads, T factor = 1, Write write = Write::overwrite) const {
    ThreadPool pool(threads);
    auto const parts = static_cast<std::size_t>(Kernel::chunks(layout.slots, width));
    Result<T> out{std::vector<double>(parts), std::vector<double>(parts), std::vector<T>(prediction.size(), T{2})};
    Kernel::forward_backward<T, T>(memory::Stream<HostSpace>(pool), layout, factor,
                                   view(prediction, layout.slots, width), view(target, layout.slots, width),
                                   view(out.losses, parts), view(out.weights, parts),
                                   view(out.gradient, layout.slots, width), write);
    return out;
  }
  /// Differences round once, which squaring doubles, and squares once; the sum of a block of 256 adds 32 roundings and
  /// that of the blocks one each, in double.
  [[nodiscard]] bool agrees(Result<T> const& result) const {
    double const unit = std::numeric_limits<T>::epsilon() / 2;
    long double sum = 0;
    Index counted = 0;
    bool gradients = true;
    for (Index i = 0; i < layout.slots * width; ++i) {
      auto const at = static_cast<std::size_t>(i);
      bool const counts = layout.is_token(i / width);
      double const d = counts ? static_cast<double>(prediction[at]) - static_cast<double>(target[at]) : 0;
      sum += d * d;
      counted += counts;
      gradients = gradients && std::abs(static_cast<double>(result.gradient[at]) - 2 * d) <= 3 * unit * std::abs(2 * d);
    }
    auto const blocks = static_cast<double>(layout.slots * (1 + width / 256));
    double const bound = (unit * (3 + 32) + 0x1p-53 * blocks) * static_cast<double>(sum);
    return gradients && std::abs(result.loss() - static_cast<double>(sum)) <= bound &&
           result.weight() == static_cast<double>(counted);
  }
};

std::vector<std::int32_t> const lengths{3, 0, 5, 1};
std::vector<Index> const offsets{0, 3, 3, 8, 9}, positions{7, 8, 9, 10};
Layout padded(Index length) { return Layout::padded(length, view(lengths, 4), view(positions, 4)); }

}  // namespace

TEST_CASE_TEMPLATE("loss, weight and gradient are those of the definition", T, float, double) {
  for (Index rows : {0, 1, 31, 32, 33, 300})
    for (Index width : {1, 2, 31, 32, 33, 255, 256, 257}) {
      CAPTURE(rows);
      CAPTURE(width);
      Pair<T> const pair(Layout::vectors(rows), width);
      CHECK(pair.agrees(pair.run(2)));
    }
  for (Index width : {1, 5, 600, 5000}) {
    Pair<T> const with_padding(padded(5), width),
        ragged(Layout::ragged(9, 5, view(offsets, 5), view(positions, 4)), width);
    CHECK(with_padding.agrees(with_padding.run(1)));
    CHECK(ragged.agrees(ragged.run(1)));
    CHECK(ragged.run(1).weight() == with_padding.run(1).weight());
  }
}

TEST_CASE("what stands in padding is not read") {
  Pair<float> pair(padded(5), 3);
  for (Index i = 0; i < 60; ++i)
    if (!pair.layout.is_token(i / 3)) pair.target[static_cast<std::size_t>(i)] = std::nanf("");
  CHECK(pair.agrees(pair.run(1)));
}

TEST_CASE_TEMPLATE("the factor scales loss and gradient, and the gradient may be added", T, float, double) {
  Pair<T> const pair(padded(6), 40);
  auto const plain = pair.run(1), half = pair.run(1, T{0.5}), added = pair.run(1, T{1}, Write::add);
  CHECK(half.loss() == plain.loss() / 2);
  CHECK(half.weights == plain.weights);
  CHECK(added.losses == plain.losses);
  bool halves = true, sums = true;
  for (std::size_t i = 0; i < plain.gradient.size(); ++i) {
    halves = halves && half.gradient[i] == plain.gradient[i] / 2;
    sums = sums && added.gradient[i] == T{2} + plain.gradient[i];
  }
  CHECK(halves);
  CHECK(sums);
}

TEST_CASE("the same bits for any number of threads") {
  Pair<float> const pair(Layout::vectors(700), 33);
  auto const one = pair.run(1);
  for (int threads : {2, 3, 4}) CHECK(pair.run(threads) == one);
}
