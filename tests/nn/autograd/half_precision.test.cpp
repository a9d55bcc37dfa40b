// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/half_precision.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/nn/autograd/recompute.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/transformer/transformer_encoder_layer.hpp>

#include "every_operation.hpp"
#include "malloc_count.hpp"
#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::Everything;
using lockstep_test::Operations;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

constexpr Index vocabulary = 12, length = 9, width = 16;

struct Classifier {
  nn::FusedEmbedding embedding{{.vocabulary = vocabulary,
                                .length = length,
                                .width = width,
                                .dropout = 0.1,
                                .token_gradient = nn::GradientForm::dense}};
  nn::TransformerEncoderLayer first{{.width = width, .heads = 2, .feed_forward = 32, .dropout = 0.1}};
  nn::Recompute<nn::TransformerEncoderLayer> second{
      nn::TransformerEncoderLayer{{.width = width, .heads = 4, .feed_forward = 32, .norm_first = true}}};
  nn::Linear head{width, 3};

  void visit(auto&& each) {
    each("embedding", embedding);
    each("first", first);
    each("second", second);
    each("head", head);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const x = embedding.forward(context, batch.tokens(), batch.places());
    auto const y = second.forward(context, first.forward(context, x));
    return nn::cross_entropy(context, head.forward(context, nn::mean_pool(context, y)), batch.classes());
  }
};
using Low = nn::InBfloat16<Classifier>;
using Half = nn::InFloat16<Classifier>;

TokenBatch some_batch() { return {{9, 1, 5, 8, 2, 7}, length, static_cast<std::int32_t>(vocabulary)}; }

/// Mean losses of the first and of the last of some steps of gradient descent.
template <class Model>
std::pair<double, double> train(Model model) {
  Trial<Model, nn::ActivationsOf<Model>> trial(std::move(model));
  auto const batch = some_batch();
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < 60; ++step) {
    losses.push_back(trial.step(batch, step).mean());
    for (std::size_t i = 0; i < trial.values.size(); ++i) trial.values[i] -= 0.05f * trial.gradients[i];
  }
  return {losses.front(), losses.back()};
}

}  // namespace

TEST_CASE("activations are float by default") {
  static_assert(std::is_same_v<nn::ActivationsOf<Classifier>, float>);
  static_assert(std::is_same_v<nn::ActivationsOf<Low>, bfloat16>);
  static_assert(std::is_same_v<nn::ActivationsOf<Half>, float16>);
  Classifier model;
  Low low(model);
  auto const expected = nn::ParameterLayout::of(model), layout = nn::ParameterLayout::of(low);
  REQUIRE(layout.entries().size() == expected.entries().size());
  for (std::size_t i = 0; i < layout.entries().size(); ++i) {
    CHECK(layout.entries()[i].name == expected.entries()[i].name);
    CHECK(layout.entries()[i].offset == expected.entries()[i].offset);
  }
}

TEST_CASE("GEMM factors may be rounded only if activations are bfloat16") {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  CHECK(nn::Context<bfloat16, HostSpace>(stream).stream().matrix_products() == &kernel::bfloat16_products);
  CHECK(nn::Context<float, HostSpace>(stream).stream().matrix_products() == nullptr);
  CHECK(nn::Context<float16, HostSpace>(stream).stream().matrix_products() == nullptr);
}

TEST_CASE_TEMPLATE("a classifier learns in 16 bits as in float", Model, Low, Half) {
  auto const [first, last] = train(Classifier{});
  auto const [first_low, last_low] = train(Model{Classifier{}});
  // Logits of at most 8 are rounded by at most 2^-8 of themselves, or 2^-11, the label's and the others'.
  double const bound = 2 * 8 * (std::is_same_v<Model, Half> ? 0x1p-11 : 0x1p-8);
  CHECK(last < first / 10);
  CHECK(std::abs(first_low - first) <= bound);
  CHECK(std::abs(last_low - last) <= bound);
}

TEST_CASE_TEMPLATE("gradients in 16 bits have equal bits for any number of threads, and a step does not allocate",
                   Model, Low, Half) {
  auto const batch = some_batch();
  std::vector<float> expected;
  for (int threads : {1, 2, 4}) {
    Trial<Model, nn::ActivationsOf<Model>> trial(Model{Classifier{}}, threads);
    trial.step(batch, 3);
    if (expected.empty()) expected = trial.gradients;
    CHECK(std::memcmp(trial.gradients.data(), expected.data(), expected.size() * sizeof(float)) == 0);
    trial.step(batch, 3);  // several chunks of memory have become one
    auto const before = lockstep_test::mallocs.load();
    trial.step(batch, 3);
    if (lockstep_test::counts_mallocs) CHECK(lockstep_test::mallocs.load() == before);
  }
}

TEST_CASE_TEMPLATE("the gradients of every layer and operation in 16 bits equal float's within rounding", Model,
                   Everything, Operations) {
  lockstep_test::Mixed const mixed;
  auto const batch = mixed.on_host();
  Trial<Model, float> trial(Model{});
  double const loss = trial.step(batch, 3).mean();
  auto const check = [&]<class InLow>(InLow model) {
    using Scalar = nn::ActivationsOf<InLow>;
    Trial<InLow, Scalar> low(std::move(model));
    CHECK(std::abs(low.step(batch, 3).mean() - loss) <= lockstep_test::rounded_apart<Scalar> * loss);
    lockstep_test::check_rounded<Scalar>(trial.layout, trial.gradients, low.gradients);
  };
  check(nn::InBfloat16<Model>(Model{}));
  check(nn::InFloat16<Model>(Model{}));
}

namespace {

/// A loss whose gradient float16 rounds to zero.
struct Faint : Everything {
  template <class Context, class Space = typename Context::Space>
  nn::Loss<Space> forward(Context& context, lockstep_test::Mixed::Batch<Space> const& batch) const {
    return Everything::forward(context, batch, 0x1p-22);
  }
};

}  // namespace

TEST_CASE("with a loss scale, gradients too small for float16 survive in every layer") {
  lockstep_test::Mixed const mixed;
  auto const batch = mixed.on_host();
  Trial<Faint, float> trial(Faint{});
  Trial<nn::InFloat16<Faint>, float16> low(nn::InFloat16{Faint{}});
  trial.step(batch, 3);
  auto const loss = low.step(batch, 3);
  double lost = 0, all = 0;
  for (std::size_t i = 0; i < trial.gradients.size(); ++i) {
    lost += std::abs(low.gradients[i] - trial.gradients[i]);
    all += std::abs(trial.gradients[i]);
  }
  CHECK(lost > all / 10);

  float const scale = 0x1p22f;
  low.context().parts().loss_scale.bind(&scale);
  CHECK(low.step(batch, 3).sum == loss.sum);  // only its gradient is scaled
  for (auto& gradient : low.gradients) gradient /= scale;
  lockstep_test::check_rounded<float16>(trial.layout, trial.gradients, low.gradients);
}
