// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <lockstep/nn/attention/attention.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/random/dropout.hpp>

#include "malloc_count.hpp"
#include "sequence_model.hpp"

using namespace lockstep;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

struct Classifier {
  nn::FusedEmbedding embedding{{.vocabulary = 300, .length = 80, .width = 32, .dropout = 0.1}};
  nn::MultiHeadAttention attention{{.width = 32, .heads = 4, .dropout = 0.1}};
  nn::Dropout dropout{0.1};
  nn::Linear head{32, 3};
  void visit(auto&& each) {
    each("embedding", embedding);
    each("attention", attention);
    each("dropout", dropout);
    each("head", head);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const x = attention.forward(context, embedding.forward(context, batch.tokens(), batch.places()));
    auto const pooled = nn::mean_pool(context, dropout.forward(context, x));
    return nn::cross_entropy(context, head.forward(context, pooled), batch.classes());
  }
};

}  // namespace

TEST_CASE("a step does not allocate after the largest batch was seen, whatever follows") {
  TokenBatch const largest({80, 70, 0, 80, 65, 80}, 80, 300), smaller({3, 1}, 5, 300), none({}, 0, 300);
  for (int threads : {1, 2}) {
    Trial<Classifier, float> trial(Classifier{}, threads);
    trial.step(largest, 1);
    trial.step(largest, 2);  // its arena may still merge the chunks of the first one
    auto const before = lockstep_test::mallocs.load();
    std::uint64_t key = 3;
    for (auto const* batch : {&largest, &smaller, &none, &largest, &smaller, &largest}) trial.step(*batch, key++);
    auto const counted = lockstep_test::mallocs - before;
    CHECK(counted == 0);  // no allocations, because a sanitizer counts its own
  }
}

TEST_CASE("the counter counts" * doctest::skip(!lockstep_test::counts_mallocs)) {
  auto const before = lockstep_test::mallocs.load();
  nn::Context<float, HostSpace>* volatile context = nullptr;
  ThreadPool pool(1);
  context = new nn::Context<float, HostSpace>(memory::Stream<HostSpace>(pool));
  delete context;
  CHECK(lockstep_test::mallocs > before);
}
