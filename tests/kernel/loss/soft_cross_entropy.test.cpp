// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/loss/soft_cross_entropy.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/loss/cross_entropy.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Layout = kernel::SequenceLayout<HostSpace>;

namespace {

template <class T>
struct Result {
  std::vector<double> losses, weights;
  std::vector<T> gradient;
  bool operator==(Result const&) const = default;
};

template <class T>
struct Batch {
  Index rows, classes;
  std::vector<T> logits = values<T>(rows * classes, 3, 20);
  std::vector<float> shares = values<float>(rows * classes, 4), factors{};
  kernel::CrossEntropyOptions options{};
  Layout layout = Layout::vectors(rows);

  Batch(Index row_count, Index class_count) : rows(row_count), classes(class_count) {
    for (auto& share : shares) share = std::abs(share);
  }
  [[nodiscard]] Result<T> run(int threads, Write write = Write::overwrite) const {
    ThreadPool pool(threads);
    std::vector<double> const start(static_cast<std::size_t>(rows), -1);
    Result<T> out{start, start, std::vector<T>(logits.size(), T{2})};
    kernel::SoftCrossEntropy<HostSpace>::forward_backward<T, float>(
        memory::Stream<HostSpace>(pool), layout, options, view(logits, rows, classes), view(shares, std::ssize(shares)),
        view(out.losses, rows), view(out.weights, rows), view(out.gradient, rows, classes), write,
        view(factors, std::ssize(factors)));
    return out;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("results equal the definition in double, overwriting and adding", T, float, double) {
  for (Index classes : {1, 3, 16, 17, 255, 600})
    for (auto write : {Write::overwrite, Write::add}) {
      CAPTURE(classes);
      Batch<T> batch(7, classes);
      auto const class_weights = values<float>(classes, 5);  // up to 1, and here from 0 on
      std::vector<float> weighs(class_weights.size(), 1);
      batch.options.factor = 0.5;
      if (write == Write::add) {
        for (std::size_t c = 0; c < weighs.size(); ++c) weighs[c] = std::abs(class_weights[c]);
        batch.options.class_weights = weighs;
        batch.options.label_smoothing = 0.25;
      }
      for (Index r = 0; r < batch.rows; ++r) batch.factors.push_back(static_cast<float>(r) - 2);
      auto const got = batch.run(2, write);
      double const unit = static_cast<double>(std::numeric_limits<T>::epsilon());
      for (Index r = 0; r < batch.rows; ++r) {
        auto const at = [&](Index c) { return static_cast<std::size_t>(r * classes + c); };
        double total = 0, all = 0, loss = 0, size = 0;
        for (Index c = 0; c < classes; ++c) total += std::exp(static_cast<double>(batch.logits[at(c)]));
        double const by = 0.5 * static_cast<double>(batch.factors[static_cast<std::size_t>(r)]);
        auto const share = [&](Index c) {
          auto const q = static_cast<double>(batch.shares[at(c)]), smooth = batch.options.label_smoothing;
          return static_cast<double>(weighs[static_cast<std::size_t>(c)]) *
                 ((1 - smooth) * q + smooth / static_cast<double>(classes));
        };
        for (Index c = 0; c < classes; ++c) {
          auto const q = share(c);
          all += q, loss -= by * q * (static_cast<double>(batch.logits[at(c)]) - std::log(total)), size += 45 * q;
        }
        // Differences up to 40 and their exponentials have errors of some units, sums of one for each term of a block.
        CHECK(std::abs(got.losses[static_cast<std::size_t>(r)] - loss) <= 270 * unit * (1 + std::abs(by) * size));
        CHECK(got.weights[static_cast<std::size_t>(r)] == 1);
        bool near = true;
        for (Index c = 0; c < classes; ++c) {
          auto const q = share(c);
          double const slope = by * (all * std::exp(static_cast<double>(batch.logits[at(c)])) / total - q);
          double const expected = (write == Write::add ? 2 : 0) + slope;
          near = near && std::abs(static_cast<double>(got.gradient[at(c)]) - expected) <= 350 * unit * (2 + all);
        }
        CHECK(near);
      }
    }
}

TEST_CASE("a label equals a share of 1, and padding has neither loss nor weight nor gradient") {
  Batch<double> batch(6, 5);
  std::vector<std::int32_t> const lengths{2, 1, 2}, labels{4, 1, 0, 0, 2, 3};
  std::vector<Index> const positions{0, 1, 2};
  batch.layout = Layout::padded(2, view(lengths, 3), view(positions, 3));
  std::fill(batch.shares.begin(), batch.shares.end(), 0.0f);
  for (std::size_t r = 0; r < 6; ++r) batch.shares[5 * r + static_cast<std::size_t>(labels[r])] = 1;
  auto const got = batch.run(1);
  ThreadPool pool(1);
  Result<double> expected = got;
  kernel::CrossEntropy<HostSpace>::forward_backward<double>(
      memory::Stream<HostSpace>(pool), batch.layout, {}, view(batch.logits, 6, 5), view(labels, 6),
      view(expected.losses, 6), view(expected.weights, 6), view(expected.gradient, 6, 5), Write::overwrite);
  CHECK(got.weights == expected.weights);
  CHECK(got.weights[3] == 0);
  for (std::size_t r = 0; r < 6; ++r) CHECK(got.losses[r] == doctest::Approx(expected.losses[r]).epsilon(1e-12));
  for (std::size_t i = 0; i < 30; ++i) CHECK(std::abs(got.gradient[i] - expected.gradient[i]) <= 1e-14);
  for (std::size_t c = 15; c < 20; ++c) CHECK(got.gradient[c] == 0);
}

TEST_CASE("smoothing and class weights treat a share of 1 like a label, except for the weight") {
  Batch<double> batch(4, 5);
  std::vector<std::int32_t> const labels{4, 1, 0, 2};
  std::vector<float> const weighs{1, 0.5f, 2, 0, 3};
  batch.options = {.class_weights = weighs, .label_smoothing = 0.1, .factor = 0.5};
  std::fill(batch.shares.begin(), batch.shares.end(), 0.0f);
  for (std::size_t r = 0; r < 4; ++r) batch.shares[5 * r + static_cast<std::size_t>(labels[r])] = 1;
  auto const got = batch.run(1);
  ThreadPool pool(1);
  Result<double> expected = got;
  kernel::CrossEntropy<HostSpace>::forward_backward<double>(
      memory::Stream<HostSpace>(pool), batch.layout, batch.options, view(batch.logits, 4, 5), view(labels, 4),
      view(expected.losses, 4), view(expected.weights, 4), view(expected.gradient, 4, 5), Write::overwrite);
  CHECK(got.weights == std::vector<double>(4, 1));
  for (std::size_t r = 0; r < 4; ++r) CHECK(got.losses[r] == doctest::Approx(expected.losses[r]).epsilon(1e-12));
  for (std::size_t i = 0; i < 20; ++i) CHECK(std::abs(got.gradient[i] - expected.gradient[i]) <= 1e-14);
}

TEST_CASE("in place, without a gradient, and with equal bits for any number of threads") {
  Batch<float> const batch(300, 33);
  auto const one = batch.run(1);
  CHECK(batch.run(4) == one);
  ThreadPool pool(2);
  auto in_place = batch.logits;
  std::vector<double> losses(300), weights(300);
  auto const run = [&](TensorView<float, 2, HostSpace> gradient) {
    kernel::SoftCrossEntropy<HostSpace>::forward_backward<float, float>(
        memory::Stream<HostSpace>(pool), batch.layout, {}, view(in_place, 300, 33),
        view(batch.shares, std::ssize(batch.shares)), view(losses, 300), view(weights, 300), gradient,
        Write::overwrite);
  };
  run({});
  CHECK(losses == one.losses);
  run(view(in_place, 300, 33));
  CHECK(losses == one.losses);
  CHECK(in_place == one.gradient);
}

TEST_CASE("invalid inputs are refused") {
  Batch<float> batch(2, 3);
  batch.shares.pop_back();
  CHECK_THROWS_WITH_AS(batch.run(1), doctest::Contains("there are 5 class shares; each logit needs one"), ShapeError);
  batch.shares.push_back(std::nanf(""));
  CHECK_THROWS_WITH_AS(batch.run(1), doctest::Contains("row 1 of the batch gives class 2 the share nan"), RowError);
  batch.shares.back() = 1;
  batch.options.ignored = -1;
  CHECK_THROWS_WITH_AS(batch.run(1), doctest::Contains("label -1 is ignored, but the targets are class shares"),
                       ConfigError);
  batch.options = {.label_smoothing = 2};
  CHECK_THROWS_WITH_AS(batch.run(1), doctest::Contains("label smoothing is 2;"), ConfigError);
  std::vector<float> const two{1, 1};
  batch.options = {.class_weights = two};
  CHECK_THROWS_WITH_AS(batch.run(1), doctest::Contains("there are 3 classes and 2 class weights"), ShapeError);
  batch.options = {};
  batch.factors = {1, 2, 3};
  CHECK_THROWS_WITH_AS(batch.run(1), doctest::Contains("there are 3 factors; each row of logits needs one"),
                       ShapeError);
}
