// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/normalization/batch_norm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <lockstep/nn/autograd/recompute.hpp>

#include "nn/sequence_model.hpp"
#include "nn/space_check.hpp"

using namespace space_check;

namespace {
auto const alone = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
auto const twice = [](auto& context, auto const& layer, auto const& x) {  // parameters and running averages used twice
  return layer.forward(context, layer.forward(context, x));
};
nn::BatchNorm rectified(Index channels) { return nn::BatchNorm(channels, {.activation = nn::Activation::relu}); }
float buffer(auto const& t, std::size_t which, Index c) {
  return static_cast<float>(t.buffers[static_cast<std::size_t>(t.layout.buffers()[which].offset + c)]);
}

/// Sequences with these numbers of tokens, padded to `length` or ragged.
struct SequenceBatch {
  lockstep_test::TokenBatch padded;
  std::vector<Index> offsets{0};
  bool ragged;

  SequenceBatch(std::vector<std::int32_t> const& lengths, Index length, bool end_to_end = false)
      : padded(lengths, length, 11), ragged(end_to_end) {
    for (auto n : lengths) offsets.push_back(offsets.back() + n);
  }
  [[nodiscard]] nn::SequenceLayout<HostSpace> layout() const {
    if (!ragged) return padded.layout();
    return nn::SequenceLayout<HostSpace>::ragged(offsets.back(), padded.length, {offsets.data(), {padded.rows + 1}},
                                                 padded.places());
  }
};

/// A layer over them as a model. The loss is an irregular combination of its outputs for the tokens, whose gradient in
/// padding is NaN.
template <class Layer>
struct SequenceModel {
  nn::Parameter x;
  Layer layer;

  SequenceModel(SequenceBatch const& batch, Layer of, Index width)
      : x{{batch.layout().slots, width}, nn::Initializer::normal(1)}, layer(std::move(of)) {}
  void visit(auto&& each) { each("x", x), each("layer", layer); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, SequenceBatch const& batch) const {
    using Scalar = typename Context::Scalar;
    nn::Sequence<Scalar, HostSpace> const in{lockstep_test::learned(context, x), batch.layout()};
    auto const y = layer.forward(context, in).tokens;
    auto const dy = context.gradient(y);
    nn::Loss<HostSpace> loss{0, 1};
    Index next = 0;
    bool clear = true;
    for (Index i = 0; i < y.value.size(); ++i) {
      bool const token = in.layout.is_token(i / y.extent(1));
      double const w = token ? number(99, next++) : std::numeric_limits<double>::quiet_NaN(),
                   value = static_cast<double>(y.value.data[i]);
      if (token) loss.sum += w * value + value * value / 2;
      clear = clear && (token || value == 0);
      if (dy) dy.data[i] = static_cast<Scalar>(w + value);
    }
    CHECK(clear);
    return loss;
  }
};

/// The model's input in a vector of parameters or gradients.
template <class T>
T* input_of(auto const& trial, std::vector<T>& all) {
  return all.data() + trial.layout.entries()[0].offset;
}
/// Both have equal tokens, and numbers in padding that would change results.
template <class Trial>
void share_tokens(SequenceBatch const& batch, Trial& padded, Trial& ragged, Index width) {
  auto const* from = input_of(ragged, ragged.values);
  for (Index i = 0; i < batch.layout().slots * width; ++i)
    input_of(padded, padded.values)[i] = batch.layout().is_token(i / width) ? *from++ : 1000;
}
}  // namespace

TEST_CASE("gradients in training mode, with and without the rectifier") {
  for (Index channels : {1, 3, 8, 17}) {
    for (auto const& layer : {nn::BatchNorm(channels), rectified(channels)}) {
      CAPTURE(channels);
      auto const matrix = trial<double>(layer, Extents<2>{31, channels}, alone).check();
      CAPTURE(matrix.where);
      CHECK(matrix.ok());
      auto const clip = trial<double>(layer, Extents<5>{2, 3, 2, 2, channels}, alone).check();
      CAPTURE(clip.where);
      CHECK(clip.ok());
    }
  }
  auto const shared = trial<double>(nn::BatchNorm(3), Extents<2>{7, 3}, twice).check();
  CAPTURE(shared.where);
  CHECK(shared.ok());
}

TEST_CASE("gradients of sequences of unequal lengths, padded and ragged, with and without the rectifier") {
  for (bool ragged : {false, true})
    for (Index channels : {1, 8, 17})
      for (auto const& layer : {nn::BatchNorm(channels), rectified(channels)}) {
        CAPTURE(ragged);
        CAPTURE(channels);
        SequenceBatch const batch({5, 0, 1, 9, 3}, 9, ragged);
        auto const result = lockstep_test::check_model(SequenceModel{batch, layer, channels}, batch);
        CAPTURE(result.where);
        CHECK(result.ok());
      }
}

TEST_CASE("padded sequences equal ragged ones within rounding, for any padding") {
  std::vector<std::int32_t> const lengths{5, 0, 1, 9, 3};
  SequenceBatch const ragged(lengths, 9, true);
  for (Index length : {9, 30})
    for (auto const& layer : {nn::BatchNorm(8), rectified(8)}) {
      SequenceBatch const padded(lengths, length);
      lockstep_test::Trial<SequenceModel<nn::BatchNorm>, double> a(SequenceModel{padded, layer, 8}),
          b(SequenceModel{ragged, layer, 8});
      share_tokens(padded, a, b, 8);
      auto const same = [](double of_a, double of_b) { return std::abs(of_a - of_b) <= 1e3 * 0x1p-52; };
      // Sums of up to 144 terms of size one to ten, each rounded by a unit of that.
      CHECK(same(a.step(padded).sum, b.step(ragged).sum));
      for (Index i = 0; i < b.layout.buffer_size(); ++i)
        CHECK(same(a.buffers[static_cast<std::size_t>(i)], b.buffers[static_cast<std::size_t>(i)]));
      auto const* next = input_of(b, b.gradients);
      for (Index i = 0; i < padded.layout().slots * 8; ++i) {
        auto const here = input_of(a, a.gradients)[i];
        if (padded.layout().is_token(i / 8))
          CHECK(same(here, *next++));
        else
          CHECK(here == 0);
      }
      for (std::size_t p : {1u, 2u})
        for (Index c = 0; c < 8; ++c)
          CHECK(same(a.gradients[static_cast<std::size_t>(a.layout.entries()[p].offset + c)],
                     b.gradients[static_cast<std::size_t>(b.layout.entries()[p].offset + c)]));
      CHECK(same(a.evaluate(padded).sum, b.evaluate(ragged).sum));
    }
}

TEST_CASE("the running statistics of sequences are their tokens', also with recomputation") {
  SequenceBatch const batch({1, 0, 3}, 4);
  auto const check = [&](auto layer) {
    lockstep_test::Trial<SequenceModel<decltype(layer)>, float> t(SequenceModel{batch, std::move(layer), 1});
    auto* const x = input_of(t, t.values);
    x[0] = 1, x[8] = 2, x[9] = 3, x[10] = 6;
    for (auto padding : {1, 4, 7, 11}) x[padding] = 1000;
    t.step(batch);
    CHECK(buffer(t, 0, 0) == doctest::Approx(0.3).epsilon(1e-6));  // as of the matrix below
    CHECK(buffer(t, 1, 0) == doctest::Approx(0.9 + 1.4 / 3).epsilon(1e-6));
  };
  check(nn::BatchNorm(1));
  check(nn::Recompute{nn::BatchNorm(1)});
}

TEST_CASE("sequences without tokens, and one token alone, do not change the running statistics") {
  for (auto const& lengths : {std::vector<std::int32_t>{0, 0}, {0, 1}, {}}) {
    SequenceBatch const batch(lengths, 3);
    lockstep_test::Trial<SequenceModel<nn::BatchNorm>, float> t(SequenceModel{batch, rectified(5), 5});
    auto const before = t.buffers;
    t.gradients.assign(t.gradients.size(), 7.0f);
    t.step(batch);
    CHECK(t.buffers == before);
    for (Index c = 0; c < 5; ++c) CHECK(t.gradients[static_cast<std::size_t>(t.layout.entries()[1].offset + c)] == 0);
    for (Index i = 0; i < batch.layout().slots * 5; ++i) CHECK(input_of(t, t.gradients)[i] == 0);
  }
}

TEST_CASE("one value per channel is normalized to zero and does not change the running statistics") {
  auto t = trial<double>(nn::BatchNorm(3), Extents<2>{1, 3}, alone);
  auto const before = t.buffers;
  auto const result = t.check();
  CAPTURE(result.where);
  CHECK(result.ok());
  t.run(1);
  CHECK(t.buffers == before);
}

TEST_CASE("an empty batch gives gradients of zero and does not change the running statistics") {
  auto t = trial<float>(rectified(5), Extents<3>{0, 4, 5}, alone);
  auto const before = t.buffers;
  t.gradients.assign(t.gradients.size(), 7.0f);
  CHECK(t.run(2) == 0);
  for (std::size_t p : {1u, 2u})
    for (Index c = 0; c < 5; ++c) CHECK(t.gradients[static_cast<std::size_t>(t.layout.entries()[p].offset + c)] == 0);
  CHECK(t.buffers == before);
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  auto const make = [] { return trial<T>(rectified(20), Extents<3>{60, 50, 20}, alone); };
  auto one = make();
  double const loss = one.run(1);
  for (int threads : {1, 2, 4}) {
    auto other = make();
    CHECK(other.run(threads) == loss);
    CHECK(same_bits(other.gradients, one.gradients));
    CHECK(same_bits(other.buffers, one.buffers));
  }
}

TEST_CASE("the running statistics follow PyTorch: momentum 0.1, variance over n - 1") {
  auto t = trial<float>(nn::BatchNorm(1), Extents<2>{4, 1}, alone);
  for (std::size_t i = 0; i < 4; ++i)
    t.values[static_cast<std::size_t>(t.layout.entries()[0].offset) + i] = std::array{1.f, 2.f, 3.f, 6.f}[i];
  t.run(1);
  // BatchNorm1d(1) after one batch of 1, 2, 3, 6: 0.1 * 3 and 0.9 + 0.1 * 14 / 3
  CHECK(buffer(t, 0, 0) == doctest::Approx(0.3).epsilon(1e-6));
  CHECK(buffer(t, 1, 0) == doctest::Approx(0.9 + 1.4 / 3).epsilon(1e-6));
  t.run(1, 1, nn::Mode::evaluation);
  CHECK(buffer(t, 0, 0) == doctest::Approx(0.3).epsilon(1e-6));
  CHECK(t.layout.buffers()[0].name == "layer.running_mean");
  CHECK(t.layout.buffers()[1].name == "layer.running_var");
}

TEST_CASE("momentum is the weight of the new statistics, from none to all; weights start at one, biases at zero") {
  for (double momentum : {0.0, 0.25, 1.0}) {
    auto t = trial<double>(nn::BatchNorm(1, {.momentum = momentum}), Extents<2>{4, 1}, alone);
    for (std::size_t i = 0; i < 4; ++i)
      t.values[static_cast<std::size_t>(t.layout.entries()[0].offset) + i] = std::array{1., 2., 3., 6.}[i];
    t.run(1);
    CHECK(buffer(t, 0, 0) == static_cast<float>(momentum * 3));
    CHECK(t.layout.entries()[1].initializer.scale == 1);
    CHECK(t.layout.entries()[2].initializer.scale == 0);
  }
}

TEST_CASE("recomputed rows count once in the running statistics") {
  auto once = trial<float>(nn::BatchNorm(3), Extents<2>{7, 3}, alone);
  auto again = trial<float>(nn::Recompute{nn::BatchNorm(3)}, Extents<2>{7, 3}, alone);
  CHECK(once.run(1) == again.run(1));
  CHECK(once.gradients == again.gradients);
  CHECK(once.buffers == again.buffers);
}

TEST_CASE("evaluation uses the running statistics, whatever the batch") {
  auto t = trial<double>(nn::BatchNorm(2), Extents<2>{1, 2}, alone);
  std::vector<double> const mean{0.5, -2}, variance{4, 0.25};
  double expected = 0;
  for (Index c = 0; c < 2; ++c) {
    auto const at = static_cast<std::size_t>(c);
    t.buffers[static_cast<std::size_t>(t.layout.buffers()[0].offset + c)] = mean[at];
    t.buffers[static_cast<std::size_t>(t.layout.buffers()[1].offset + c)] = variance[at];
    auto const value = [&](std::size_t p) {
      return t.values[static_cast<std::size_t>(t.layout.entries()[p].offset + c)];
    };
    expected += number(99, c) * (value(1) * (value(0) - mean[at]) / std::sqrt(variance[at] + 1e-5) + value(2));
  }
  CHECK(t.run(1, 1, nn::Mode::evaluation) == doctest::Approx(expected).epsilon(1e-14));
}

TEST_CASE("a mean far above the deviation loses no digits: 1e4 with deviation 1 over many chunks") {
  nn::BatchNorm layer(1);
  auto t = trial<float>(layer, Extents<2>{100'000, 1}, alone);
  auto const input = static_cast<std::size_t>(t.layout.entries()[0].offset);
  double mean = 0, squares = 0;
  for (std::size_t i = 0; i < 100'000; ++i) {
    t.values[input + i] = 1e4f + static_cast<float>(number(1, static_cast<Index>(i)));
    mean += static_cast<double>(t.values[input + i]) / 1e5;
  }
  for (std::size_t i = 0; i < 100'000; ++i) squares += std::pow(static_cast<double>(t.values[input + i]) - mean, 2);
  t.run(2);
  // A chunk's mean has an error of at most its 16384 float additions, 16384 * 2^-24 * 1e4 = 10 in the worst case and
  // about sqrt(16384) of them, 0.08, in practice. Its variance has the square of that, which merging corrects except
  // for rounding: 1 % of a variance of 1/3 bounds it, while the textbook formula would lose all of it.
  CHECK(buffer(t, 1, 0) == doctest::Approx(0.9 + 0.1 * squares / 99'999).epsilon(0.001));
}

TEST_CASE("a batch's tensor gets no gradient, and the parameters get theirs") {
  auto const of_batch = [](auto& context, auto const& layer, auto x) {
    x.slot = nullptr;
    return layer.forward(context, x);
  };
  auto learned = trial<double>(rectified(3), Extents<2>{7, 3}, alone);
  auto given = trial<double>(rectified(3), Extents<2>{7, 3}, of_batch);
  CHECK(learned.run(1) == given.run(1));
  for (std::size_t p : {1u, 2u})
    for (Index c = 0; c < 3; ++c) {
      auto const at = static_cast<std::size_t>(learned.layout.entries()[p].offset + c);
      CHECK(learned.gradients[at] == given.gradients[at]);
    }
}

TEST_CASE("NaN passes the rectifier") {
  auto t = trial<float>(rectified(1), Extents<2>{3, 1}, alone);
  t.values[static_cast<std::size_t>(t.layout.entries()[0].offset)] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(t.run(1)));
}

TEST_CASE("invalid sizes are refused") {
  CHECK_THROWS_AS(nn::BatchNorm(0), ConfigError);
  CHECK_THROWS_AS(nn::BatchNorm(1, {.epsilon = 0}), ConfigError);
  CHECK_THROWS_WITH_AS(nn::BatchNorm(1, {.momentum = 1.5}), doctest::Contains("momentum in [0, 1]"), ConfigError);
  CHECK_THROWS_WITH_AS(nn::BatchNorm(1, {.activation = nn::Activation::gelu}), doctest::Contains("activation gelu;"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(trial<float>(nn::BatchNorm(3), Extents<2>{4, 2}, alone).run(1),
                       "BatchNorm layer: the input is [4, 2] and the layer has 3 channels; the last extent must be 3",
                       ShapeError);
}
