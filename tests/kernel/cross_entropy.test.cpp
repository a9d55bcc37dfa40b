// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>
#include <lockstep/kernel/cross_entropy.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::CrossEntropy<HostSpace>;

namespace {

template <class T>
struct Result {
  std::vector<double> losses;
  std::vector<T> gradient;
  bool operator==(Result const&) const = default;
};

template <class T>
struct Batch {
  Index rows, classes;
  std::vector<T> logits;
  std::vector<std::int32_t> labels;

  Batch(Index row_count, Index class_count, float scale)
      : rows(row_count), classes(class_count), logits(values<T>(rows * classes, 3, scale)) {
    for (Index r = 0; r < rows; ++r) labels.push_back(static_cast<std::int32_t>(7 * r % classes));
  }
  [[nodiscard]] Result<T> run(int threads, Write write = Write::overwrite) const {
    ThreadPool pool(threads);
    Result<T> out{std::vector<double>(static_cast<std::size_t>(rows)), std::vector<T>(logits.size(), T{2})};
    Kernel::forward_backward<T>(memory::Stream<HostSpace>(pool), view(logits, rows, classes), view(labels, rows),
                                view(out.losses, rows), view(out.gradient, rows, classes), write);
    return out;
  }
  [[nodiscard]] std::vector<double> forward() const {
    ThreadPool pool(2);
    std::vector<double> losses(static_cast<std::size_t>(rows));
    Kernel::forward<T>(memory::Stream<HostSpace>(pool), view(logits, rows, classes), view(labels, rows),
                       view(losses, rows));
    return losses;
  }
};

/// Roundings of one sum over a block of 256 (16 per lane, then 16 lanes), of an exponential (2 units), and 2 to spare.
constexpr double roundings = 16 + 16 + 4 + 2;

template <class T>
void check(Batch<T> const& batch, Result<T> const& result) {
  // Rounding x - max moves an exponential by |x - max| halves of a unit, relatively; log(total) then moves by the mean
  // of that over the softmax, plus the roundings of the sum. The double reference rounds in the same way.
  double const unit = std::numeric_limits<T>::epsilon() / 2 * (sizeof(T) == 8 ? 2 : 1) + 0x1p-50;
  bool losses_agree = true, gradients_agree = true;
  for (Index r = 0; r < batch.rows; ++r) {
    auto const at = [&](Index c) {
      return static_cast<double>(batch.logits[static_cast<std::size_t>(r * batch.classes + c)]);
    };
    double most = at(0), total = 0, moved = 0;
    for (Index c = 0; c < batch.classes; ++c) most = std::max(most, at(c));
    for (Index c = 0; c < batch.classes; ++c) total += std::exp(at(c) - most);
    for (Index c = 0; c < batch.classes; ++c) moved += std::exp(at(c) - most) / total * (most - at(c));
    auto const label = batch.labels[static_cast<std::size_t>(r)];
    double const loss = std::log(total) + (most - at(label));
    losses_agree = losses_agree && std::abs(result.losses[static_cast<std::size_t>(r)] - loss) <=
                                       unit * (roundings + moved) + 0x1p-50 * std::abs(loss);
    for (Index c = 0; c < batch.classes; ++c) {
      double const p = std::exp(at(c) - most) / total, expected = p - (c == label);
      double const bound = unit * (p * (roundings + moved + (most - at(c)) + 4) + 1);
      auto const got = static_cast<double>(result.gradient[static_cast<std::size_t>(r * batch.classes + c)]);
      gradients_agree = gradients_agree && std::abs(got - expected) <= bound;
    }
  }
  CHECK(losses_agree);
  CHECK(gradients_agree);
}

}  // namespace

TEST_CASE_TEMPLATE("losses and gradients are those of the definition", T, float, double) {
  for (Index rows : {0, 1, 5, 33})
    for (Index classes : {1, 2, 4, 15, 16, 17, 255, 256, 257, 1000})
      for (float scale : {0.1f, 5.0f, 80.0f}) {
        CAPTURE(rows);
        CAPTURE(classes);
        CAPTURE(scale);
        Batch<T> const batch(rows, classes, scale);
        auto const result = batch.run(2);
        check(batch, result);
        CHECK(batch.forward() == result.losses);
      }
}

TEST_CASE_TEMPLATE("huge logits neither overflow nor lose the loss", T, float, double) {
  Batch<T> batch(2, 3, 1);
  batch.logits = {T{1e30f}, T{0}, T{-1e30f}, T{-3e38f}, T{-3e38f}, T{-3e38f}};
  batch.labels = {0, 1};
  auto const result = batch.run(1);
  CHECK(result.losses[0] == 0);
  CHECK(result.losses[1] == doctest::Approx(std::log(3.0)));
  CHECK(result.gradient[0] == 0);
  CHECK(result.gradient[4] == doctest::Approx(1.0 / 3 - 1));
}

TEST_CASE_TEMPLATE("nan logits give a nan loss, wherever they stand", T, float, double) {
  for (std::size_t at : {0u, 1u, 16u, 19u}) {
    Batch<T> batch(1, 20, 1);
    batch.logits[at] = std::numeric_limits<T>::quiet_NaN();
    CHECK(std::isnan(batch.run(1).losses[0]));
    CHECK(std::isnan(batch.forward()[0]));
  }
}

TEST_CASE_TEMPLATE("the gradient may take the logits' place, or be added", T, float, double) {
  Batch<T> batch(9, 300, 4);
  auto const expected = batch.run(1), added = batch.run(1, Write::add);
  for (std::size_t i = 0; i < expected.gradient.size(); ++i) {
    // T{2} + p rounds once, before 1 is taken from the label's.
    CHECK(std::abs(added.gradient[i] - (T{2} + expected.gradient[i])) <= 2 * std::numeric_limits<T>::epsilon());
  }
  CHECK(added.losses == expected.losses);
  ThreadPool pool(1);
  std::vector<double> losses(9);
  Kernel::forward_backward<T>(memory::Stream<HostSpace>(pool), view(batch.logits, 9, 300), view(batch.labels, 9),
                              view(losses, 9), view(batch.logits, 9, 300), Write::overwrite);
  CHECK(batch.logits == expected.gradient);
  CHECK(losses == expected.losses);
}

TEST_CASE("the same bits for any number of threads") {
  Batch<float> const batch(70, 300, 4);
  auto const one = batch.run(1);
  for (int threads : {2, 3, 4}) CHECK(batch.run(threads) == one);
}

TEST_CASE("labels outside the classes are refused with row, label and range") {
  for (std::int32_t label : {-1, 4, 2'000'000'000}) {
    Batch<float> batch(6, 4, 1);
    batch.labels[5] = label;
    CHECK_THROWS_WITH_AS(
        static_cast<void>(batch.run(1)),
        doctest::Contains(("row 5 of the batch has label " + std::to_string(label) + ", outside [0, 4)").c_str()),
        DataError);
  }
}

TEST_CASE("a label per row is needed") {
  Batch<float> batch(6, 4, 1);
  ThreadPool pool(1);
  std::vector<double> losses(6);
  CHECK_THROWS_WITH_AS(Kernel::forward<float>(memory::Stream<HostSpace>(pool), view(batch.logits, 6, 4),
                                              view(batch.labels, 5), view(losses, 6)),
                       doctest::Contains("there are 5 labels"), ShapeError);
}
