// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/loss/cross_entropy.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cross_entropy_case.hpp"

using namespace lockstep;
using lockstep_test::CrossEntropyCase;
using lockstep_test::view;
using Kernel = kernel::CrossEntropy<HostSpace>;
using Options = kernel::CrossEntropyOptions;
using Layout = kernel::SequenceLayout<HostSpace>;

namespace {

template <class T>
bool is_counted(CrossEntropyCase<T> const& batch, Index r) {
  return batch.layout.is_token(r) && batch.labels[static_cast<std::size_t>(r)] != batch.options.ignored;
}
/// Without a gradient.
template <class T>
std::vector<double> losses_of(CrossEntropyCase<T> const& batch) {
  auto out = batch.before();
  batch.on_host(out, 2, {}, Write::overwrite);
  return out.losses;
}

/// Roundings of one sum over a block of 256 (16 per lane, then 16 lanes), of an exponential (2 units), and 2 to spare.
constexpr double roundings = 16 + 16 + 4 + 2;

template <class T>
void check(CrossEntropyCase<T> const& batch, typename CrossEntropyCase<T>::Results const& result) {
  // A row's loss is total * log(sum of exp z) - label_part * z[label] - each * sum of w z, with z = logits - most.
  // Rounding of z changes an exponential by |z| halves of a unit, relatively. The logarithm then changes by the mean of
  // that over the softmax, plus the roundings of the sum, and by 4 of its own halves if it is computed in T. The other
  // terms have the rounding of z and of a sum. The double reference rounds equally.
  double const unit = std::numeric_limits<T>::epsilon() / 2 * (sizeof(T) == 8 ? 2 : 1) + 0x1p-50;
  double const tiniest = std::numeric_limits<T>::min();  // exponentials below it are 0
  auto const& options = batch.options;
  auto const w = [&](Index c) {
    return options.class_weights.empty() ? 1.0
                                         : static_cast<double>(options.class_weights[static_cast<std::size_t>(c)]);
  };
  bool losses_agree = true, weights_agree = true, gradients_agree = true;
  for (Index r = 0; r < batch.rows; ++r) {
    auto const row = static_cast<std::size_t>(r);
    auto const at = [&](Index c) {
      return static_cast<double>(batch.logits[static_cast<std::size_t>(r * batch.classes + c)]);
    };
    bool const counts = is_counted(batch, r);
    auto const label = batch.labels[row];
    double const of_row = batch.factors.empty() ? 1 : static_cast<double>(batch.factors[row]);
    double const factor = options.factor * std::abs(of_row), sign = of_row < 0 ? -1 : 1;
    double const each = counts ? factor * options.label_smoothing / static_cast<double>(batch.classes) : 0;
    double const label_part = counts ? factor * (1 - options.label_smoothing) * w(label) : 0;
    double most = at(0), sum = 0, moved = 0, spread = 0, weights = 0;
    for (Index c = 0; c < batch.classes; ++c) most = std::max(most, at(c));
    for (Index c = 0; c < batch.classes; ++c) sum += std::exp(at(c) - most);
    for (Index c = 0; c < batch.classes; ++c) {
      moved += std::exp(at(c) - most) / sum * (most - at(c));
      spread += w(c) * (most - at(c));
      weights += w(c);
    }
    double const total = label_part + each * weights, z = counts ? most - at(label) : 0;
    double const loss = total * std::log(sum) + label_part * z + each * spread;
    double const bound =
        unit * (total * (roundings + moved + 4 * std::log(sum)) + label_part * z + each * spread * roundings) +
        0x1p-50 * loss;
    losses_agree = losses_agree && std::abs(sign * result.losses[row] - loss) <= bound;
    weights_agree = weights_agree && result.weights[row] == (counts ? w(label) : 0);
    for (Index c = 0; c < batch.classes; ++c) {
      double const p = total * std::exp(at(c) - most) / sum, shared = each * w(c), own = c == label ? label_part : 0;
      double const near =
          unit * (p * (roundings + moved + (most - at(c)) + 7) + 4 * shared + 2 * own) + total * tiniest;
      auto const got = static_cast<double>(result.gradient[static_cast<std::size_t>(r * batch.classes + c)]);
      gradients_agree = gradients_agree && std::abs(sign * got - (p - shared - own)) <= near;
    }
  }
  CHECK(losses_agree);
  CHECK(weights_agree);
  CHECK(gradients_agree);
}

}  // namespace

TEST_CASE_TEMPLATE("losses and gradients equal the definition's", T, float, double) {
  for (Index rows : {0, 1, 5, 33})
    for (Index classes : {1, 2, 4, 7, 8, 9, 15, 16, 17, 255, 256, 257, 1000})
      for (float scale : {0.1f, 5.0f, 80.0f}) {
        CAPTURE(rows);
        CAPTURE(classes);
        CAPTURE(scale);
        CrossEntropyCase<T> const batch(rows, classes, scale);
        auto const result = batch.on_host(2);
        check(batch, result);
        CHECK(losses_of(batch) == result.losses);
      }
}

TEST_CASE_TEMPLATE("huge logits neither overflow nor lose the loss", T, float, double) {
  CrossEntropyCase<T> batch(2, 3, 1);
  batch.logits = {T{1e30f}, T{0}, T{-1e30f}, T{-3e38f}, T{-3e38f}, T{-3e38f}};
  batch.labels = {0, 1};
  auto const result = batch.on_host(1);
  CHECK(result.losses[0] == 0);
  CHECK(result.losses[1] == doctest::Approx(std::log(3.0)));
  CHECK(result.gradient[0] == 0);
  CHECK(result.gradient[4] == doctest::Approx(1.0 / 3 - 1));
}

TEST_CASE_TEMPLATE("class weights, label smoothing, an ignored label and a factor, alone and together", T, float,
                   double) {
  for (Index classes : {1, 2, 3, 15, 16, 300}) {
    std::vector<float> weights;
    for (Index c = 0; c < classes; ++c) weights.push_back(0.25f + static_cast<float>(c % 5));
    for (Index rows : {1, 63, 64, 65, 130})
      for (Options const& options :
           {Options{.class_weights = weights}, Options{.label_smoothing = 0.1}, Options{.label_smoothing = 1},
            Options{.ignored = 0}, Options{.factor = 0.3},
            Options{.class_weights = weights, .label_smoothing = 0.25, .ignored = 1, .factor = 2}}) {
        CAPTURE(classes);
        CAPTURE(rows);
        CrossEntropyCase<T> const batch(rows, classes, 5, options);
        auto const result = batch.on_host(1);
        check(batch, result);
        CHECK(losses_of(batch) == result.losses);
      }
  }
}

TEST_CASE_TEMPLATE("rows have factors of either sign or none, which do not change weights", T, float, double) {
  for (Index classes : {3, 300})
    for (Options const& options : {Options{}, Options{.label_smoothing = 0.25, .ignored = 1, .factor = 2}}) {
      CrossEntropyCase<T> batch(70, classes, 5, options);
      auto const without = batch.on_host(1);
      batch.factors.assign(70, 1.0f);
      CHECK(batch.on_host(1) == without);
      for (std::size_t r = 0; r < 70; ++r) batch.factors[r] = static_cast<float>(r % 7) / 2 - 1;
      auto const result = batch.on_host(2);
      check(batch, result);
      CHECK(result.weights == without.weights);
      CHECK(losses_of(batch) == result.losses);
      auto const added = batch.on_host(1, Write::add);
      for (std::size_t i = 0; i < added.gradient.size(); ++i)
        CHECK(std::abs(added.gradient[i] - (T{2} + result.gradient[i])) <= 16 * std::numeric_limits<T>::epsilon());
    }
  CrossEntropyCase<T> few(5, 3, 1);
  few.factors.assign(4, 1.0f);
  CHECK_THROWS_WITH_AS(static_cast<void>(few.on_host(1)),
                       "cross_entropy: logits are [5, 3] and there are 4 factors; each row of logits needs one, or "
                       "leave them out",
                       ShapeError);
}

TEST_CASE_TEMPLATE("ignored labels may be outside the classes, and padding is not read", T, float, double) {
  std::vector<std::int32_t> const lengths{2, 0, 3};
  std::vector<Index> const positions{0, 1, 2};
  for (Index classes : {4, 40}) {
    CrossEntropyCase<T> batch(9, classes, 2, {.ignored = -100});
    batch.layout = Layout::padded(3, view(lengths, 3), view(positions, 3));
    batch.labels = {1, -100, 77, -5, 99, 1 << 30, 3, -100, 0};
    check(batch, batch.on_host(1));
    CHECK(batch.on_host(1).weights == std::vector<double>{1, 0, 0, 0, 0, 0, 1, 0, 1});
    auto const added = batch.on_host(1, Write::add);
    for (Index r = 0; r < 9; ++r)
      CHECK((added.gradient[static_cast<std::size_t>(r * classes)] == 2) == !is_counted(batch, r));
  }
}

TEST_CASE_TEMPLATE("NaN logits give a NaN loss, at any class", T, float, double) {
  for (std::size_t at : {0u, 1u, 4u, 16u, 19u}) {
    CrossEntropyCase<T> batch(1, at == 4 ? 5 : 20, 1);
    batch.logits[at] = std::numeric_limits<T>::quiet_NaN();
    CHECK(std::isnan(batch.on_host(1).losses[0]));
    CHECK(std::isnan(losses_of(batch)[0]));
  }
}

TEST_CASE_TEMPLATE("the gradient may replace the logits, or be added", T, float, double) {
  for (Index classes : {5, 300}) {
    CrossEntropyCase<T> batch(9, classes, 4, {.label_smoothing = 0.1});
    auto const expected = batch.on_host(1), added = batch.on_host(1, Write::add);
    for (std::size_t i = 0; i < expected.gradient.size(); ++i) {
      // T{2} + p rounds once, and once for each of the two subtractions.
      CHECK(std::abs(added.gradient[i] - (T{2} + expected.gradient[i])) <= 3 * std::numeric_limits<T>::epsilon());
    }
    CHECK(added.losses == expected.losses);
    auto in_place = batch.before();
    batch.on_host(in_place, 1, view(batch.logits, 9, classes), Write::overwrite);
    CHECK(batch.logits == expected.gradient);
    CHECK(in_place.losses == expected.losses);
  }
}

TEST_CASE("bits are equal for any number of threads and at any row") {
  for (Index classes : {3, 300}) {
    CrossEntropyCase<float> const batch(70, classes, 4, {.label_smoothing = 0.1});
    auto const one = batch.on_host(1);
    for (int threads : {2, 3, 4}) CHECK(batch.on_host(threads) == one);
    CrossEntropyCase<float> last(1, classes, 4, {.label_smoothing = 0.1});
    std::copy_n(batch.logits.end() - classes, classes, last.logits.begin());
    last.labels[0] = batch.labels[69];
    CHECK(last.on_host(1).losses[0] == one.losses[69]);
    CHECK(std::equal(batch.logits.end() - classes, batch.logits.end(), last.logits.begin()));
    auto const alone = last.on_host(1).gradient;
    CHECK(std::equal(alone.begin(), alone.end(), one.gradient.end() - classes));
  }
}

TEST_CASE("labels outside the classes are refused with row, label and range") {
  for (std::int32_t label : {-1, 4, 2'000'000'000}) {
    CrossEntropyCase<float> batch(6, 4, 1);
    batch.labels[5] = label;
    CHECK_THROWS_WITH_AS(
        static_cast<void>(batch.on_host(1)),
        doctest::Contains(("row 5 of the batch has label " + std::to_string(label) + ", outside [0, 4)").c_str()),
        DataError);
    CHECK_THROWS_WITH_AS(static_cast<void>(batch.on_host(1)), doctest::Contains("cross_entropy: row 5"), DataError);
  }
  CrossEntropyCase<float> tokens(6, 4, 1);
  std::vector<std::int32_t> const lengths{2, 3};
  std::vector<Index> const positions{0, 1};
  tokens.layout = Layout::padded(3, view(lengths, 2), view(positions, 2));
  tokens.labels[2] = -1;  // padding
  CHECK_NOTHROW(static_cast<void>(tokens.on_host(1)));
  tokens.labels[5] = 9;
  CHECK_THROWS_WITH_AS(static_cast<void>(tokens.on_host(1)),
                       doctest::Contains("cross_entropy: token 2 of row 1 of the batch has label 9, outside [0, 4)"),
                       DataError);
}

TEST_CASE("a label per row and a weight per class are required") {
  CrossEntropyCase<float> batch(6, 4, 1);
  std::vector<float> const weights{1, 2, 3};
  ThreadPool pool(1);
  std::vector<double> losses(6);
  auto const run = [&](Index labels, Options const& options) {
    Kernel::forward_backward<float>(memory::Stream<HostSpace>(pool), batch.layout, options, view(batch.logits, 6, 4),
                                    view(batch.labels, labels), view(losses, 6), view(losses, 6), {}, Write::overwrite);
  };
  CHECK_THROWS_WITH_AS(run(5, {}), doctest::Contains("there are 5 labels"), ShapeError);
  CHECK_THROWS_WITH_AS(run(6, {.class_weights = weights}), doctest::Contains("3 class weights"), ShapeError);
  for (float const wrong : {-0.5f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> const four{1, 1, wrong, 1};
    CHECK_THROWS_WITH_AS(run(6, {.class_weights = four}), doctest::Contains("the weight of class 2 is"), ConfigError);
  }
}
