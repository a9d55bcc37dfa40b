// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/loss/elementwise_loss.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::ElementwiseLoss<HostSpace>;
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

/// Predictions in [-4, 4] and targets in [0, 1], which every rule accepts.
template <class T, class Rule = kernel::SquaredError>
struct Pair {
  Layout layout;
  Index width;
  Rule rule;
  std::vector<T> prediction, target;

  Pair(Layout l, Index w, Rule r = {})
      : layout(l), width(w), rule(r), prediction(values<T>(l.slots * w, 3, 4)), target(values<T>(l.slots * w, 5)) {
    for (auto& t : target) t = std::abs(t);
  }

  [[nodiscard]] Result<T> run(int threads, T factor = 1, Write write = Write::overwrite) const {
    ThreadPool pool(threads);
    auto const parts = static_cast<std::size_t>(Kernel::chunks(layout.slots, width));
    Result<T> out{std::vector<double>(parts), std::vector<double>(parts), std::vector<T>(prediction.size(), T{2})};
    Kernel::forward_backward<T, T>(memory::Stream<HostSpace>(pool), layout, rule, factor,
                                   view(prediction, layout.slots, width), view(target, layout.slots, width),
                                   view(out.losses, parts), view(out.weights, parts),
                                   view(out.gradient, layout.slots, width), write);
    return out;
  }
  /// Gradients are the rule's slopes. The sum of a block of 256 values, none negative, has 32 roundings and the sum of
  /// the blocks one each, in double.
  [[nodiscard]] bool agrees(Result<T> const& result) const {
    long double sum = 0;
    Index counted = 0;
    bool gradients = true;
    for (Index i = 0; i < layout.slots * width; ++i) {
      auto const at = static_cast<std::size_t>(i);
      bool const counts = layout.is_token(i / width);
      kernel::LossAt<T> here{};
      if constexpr (kernel::LossByColumn<Rule>) {
        if (counts) here = rule(prediction[at], target[at], T{rule.columns[at % rule.columns.size()]});
      } else if (counts) {
        here = rule(prediction[at], target[at]);
      }
      sum += here.value;
      counted += counts;
      gradients = gradients && result.gradient[at] == here.slope;
    }
    auto const blocks = static_cast<double>(layout.slots * (1 + width / 256));
    double const unit = std::numeric_limits<T>::epsilon() / 2, bound = unit * 32 + 0x1p-53 * blocks;
    return gradients && std::abs(result.loss() - static_cast<double>(sum)) <= bound * static_cast<double>(sum) &&
           result.weight() == static_cast<double>(counted);
  }
};

std::vector<std::int32_t> const lengths{3, 0, 5, 1};
std::vector<Index> const offsets{0, 3, 3, 8, 9}, positions{7, 8, 9, 10};
Layout padded(Index length) { return Layout::padded(length, view(lengths, 4), view(positions, 4)); }

}  // namespace

TEST_CASE_TEMPLATE("loss, weight and gradient equal the rule's", T, float, double) {
  auto const check = [](auto rule) {
    using Checked = Pair<T, decltype(rule)>;
    for (Index rows : {0, 1, 31, 32, 33, 300})
      for (Index width : {1, 2, 31, 32, 33, 255, 256, 257}) {
        CAPTURE(rows);
        CAPTURE(width);
        Checked const pair(Layout::vectors(rows), width, rule);
        CHECK(pair.agrees(pair.run(2)));
      }
    for (Index width : {1, 5, 600, 5000}) {
      Checked const with_padding(padded(5), width, rule),
          ragged(Layout::ragged(9, 5, view(offsets, 5), view(positions, 4)), width, rule);
      CHECK(with_padding.agrees(with_padding.run(1)));
      CHECK(ragged.agrees(ragged.run(1)));
      CHECK(ragged.run(1).weight() == with_padding.run(1).weight());
    }
  };
  check(kernel::SquaredError{});
  check(kernel::AbsoluteError{});
  check(kernel::HuberLoss{0.5});
  check(kernel::BinaryCrossEntropy{3});
}

TEST_CASE_TEMPLATE("a rule gets the column number of each element", T, float, double) {
  for (Index width : {1, 5, 33, 256, 257, 600}) {
    CAPTURE(width);
    auto const weights = values<float>(width, 7, 4);
    using Checked = Pair<T, kernel::BinaryCrossEntropyByColumn>;
    std::vector<float> columns;
    for (auto w : weights) columns.push_back(std::abs(w));
    Checked const rows(Layout::vectors(33), width, {columns}), with_padding(padded(5), width, {columns});
    CHECK(rows.agrees(rows.run(2)));
    CHECK(with_padding.agrees(with_padding.run(1)));
    std::vector<float> const equal(static_cast<std::size_t>(width), 3);
    Pair<T, kernel::BinaryCrossEntropy> const all(padded(5), width, {3});
    CHECK(Checked(padded(5), width, {equal}).run(1) == all.run(1));
  }
}

TEST_CASE("an invalid target is named with its place, except in padding") {
  Pair<float, kernel::BinaryCrossEntropy> pair(padded(5), 3);
  pair.target[12] = 7;  // in row 0, which has 3 of 5 tokens
  CHECK(pair.agrees(pair.run(1)));
  for (float wrong : {1.5f, -0.25f, std::numeric_limits<float>::quiet_NaN()}) {
    pair.target[35] = wrong;
    try {
      static_cast<void>(pair.run(1));
      FAIL("taken");
    } catch (RowError const& error) {
      CHECK(std::string(error.what()) ==
            "binary_cross_entropy_with_logits: element 2 of token 1 of row 2 of the batch has target " +
                shortest(wrong) + ", outside [0, 1]; give 0 or 1, or the probability of 1");
      CHECK(error.row() == 2);
    }
  }
}

TEST_CASE("padding is not read") {
  Pair<float> pair(padded(5), 3);
  for (Index i = 0; i < 60; ++i)
    if (!pair.layout.is_token(i / 3)) pair.target[static_cast<std::size_t>(i)] = std::nanf("");
  CHECK(pair.agrees(pair.run(1)));
}

TEST_CASE_TEMPLATE("the factor scales loss and gradient, and the gradient can be added", T, float, double) {
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

TEST_CASE("bits are equal for any number of threads") {
  Pair<float> const pair(Layout::vectors(700), 33);
  auto const one = pair.run(1);
  for (int threads : {2, 3, 4}) CHECK(pair.run(threads) == one);
}
