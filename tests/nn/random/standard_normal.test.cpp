// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/random/standard_normal.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/elementwise/exp.hpp>
#include <lockstep/nn/elementwise/multiply.hpp>

#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

/// mean + deviation * noise, as in a variational autoencoder.
struct Drawn {
  nn::Parameter mean, log_deviation;
  bool vectors;
  Drawn(TokenBatch const& batch, bool one_vector_each)
      : mean{{batch.rows * (one_vector_each ? 1 : batch.length), 10}, nn::Initializer::normal(1)},
        log_deviation{mean.shape, nn::Initializer::normal(0.5)},
        vectors(one_vector_each) {}
  void visit(auto&& each) {
    each("mean", mean);
    each("log_deviation", log_deviation);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const m = lockstep_test::learned(context, mean);
    auto const s = nn::exp(context, lockstep_test::learned(context, log_deviation));
    auto const layout = batch.layout();
    auto const noise = vectors ? nn::standard_normal_like(context, m, batch.places())
                               : nn::standard_normal_like(context, nn::SequenceOf<Context>{m, layout}).tokens;
    auto const drawn = nn::add(context, m, nn::multiply(context, s, noise));
    return vectors ? lockstep_test::irregular_loss(context, drawn)
                   : lockstep_test::irregular_loss(context, drawn, &layout);
  }
};

TokenBatch const batch({5, 0, 1, 9, 3}, 9, 11);

}  // namespace

TEST_CASE("samples from mean, deviation and noise have gradients of both") {
  for (bool vectors : {false, true}) {
    auto const result = check_model(Drawn(batch, vectors), batch);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
}

TEST_CASE("a sample gets equal noise in any row and with any padding, and new noise in every call and step") {
  Trial<Drawn, float> trial(Drawn(batch, false));
  auto& context = trial.context();
  auto const draw = [&](TokenBatch const& of) {
    auto const x = context.variable<2>(Extents<2>{of.rows * of.length, 10});
    auto const y = nn::standard_normal_like(context, nn::Sequence<float, HostSpace>{x, of.layout()}).tokens;
    CHECK(y.slot == nullptr);
    return std::vector<float>(y.value.data, y.value.data + y.value.size());
  };
  auto other = TokenBatch({9, 5}, 12, 11);  // two of its samples in another order, padded longer
  other.positions = {batch.positions[3], batch.positions[0]};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const first = draw(batch), second = draw(batch);
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const again = draw(other);
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 2);
  auto const later = draw(batch);
  CHECK(first != second);
  CHECK(first != later);
  for (Index e = 0; e < 9 * 10; ++e) {
    CHECK(again[static_cast<std::size_t>(e)] == first[static_cast<std::size_t>(3 * 90 + e)]);
    if (e < 5 * 10) CHECK(again[static_cast<std::size_t>(120 + e)] == first[static_cast<std::size_t>(e)]);
  }
}

TEST_CASE("an image gets the noise of a sequence of its places, anywhere in the batch") {
  Trial<Drawn, float> trial(Drawn(batch, true));
  auto& context = trial.context();
  auto const vector_of = [](auto const& y) {
    CHECK(y.slot == nullptr);
    return std::vector<float>(y.value.data, y.value.data + y.value.size());
  };
  std::vector<Index> const positions{7, 3, 8};
  std::vector<std::int32_t> const lengths{6, 6, 6};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const images = context.variable<4>(Extents<4>{3, 2, 3, 5});
  auto const drawn = vector_of(nn::standard_normal_like(context, images, {positions.data(), {3}}));
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  nn::Sequence<float, HostSpace> const places{
      context.variable<2>(Extents<2>{18, 5}),
      nn::SequenceLayout<HostSpace>::padded(6, {lengths.data(), {3}}, {positions.data(), {3}})};
  CHECK(vector_of(nn::standard_normal_like(context, places).tokens) == drawn);
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const one = context.variable<4>(Extents<4>{1, 2, 3, 5});
  auto const alone = vector_of(nn::standard_normal_like(context, one, {positions.data() + 1, {1}}));
  CHECK(alone == std::vector<float>(drawn.begin() + 30, drawn.begin() + 60));
  CHECK(vector_of(nn::standard_normal_like(context, context.variable<3>(Extents<3>{0, 4, 5}), {nullptr, {0}})).empty());
}

TEST_CASE("noise of a given width is the noise of a vector of this width") {
  Trial<Drawn, float> trial(Drawn(batch, true));
  auto& context = trial.context();
  std::vector<Index> const positions{7, 3, 8};
  TensorView<Index const, 1, HostSpace> const at{positions.data(), {3}};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const drawn = nn::standard_normal(context, at, 5);
  CHECK(drawn.slot == nullptr);
  CHECK(drawn.value.extent == Extents<2>{3, 5});
  std::vector<float> const of_width(drawn.value.data, drawn.value.data + 15);
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const again = nn::standard_normal_like(context, context.variable<2>(Extents<2>{3, 5}), at);
  CHECK(std::vector<float>(again.value.data, again.value.data + 15) == of_width);
  CHECK(nn::standard_normal(context, {nullptr, {0}}, 5).value.size() == 0);
}

TEST_CASE("positions that are not one for each row are refused") {
  Trial<Drawn, float> trial(Drawn(batch, true));
  auto& context = trial.context();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const x = context.variable<2>(Extents<2>{4, 10});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(nn::standard_normal_like(context, x, batch.places())),
      "standard_normal_like: x is [4, 10] and there are 5 positions; each row needs its sample's position "
      "(batch.positions())",
      ShapeError);
}
