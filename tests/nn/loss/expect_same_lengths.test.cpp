// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss/expect_same_lengths.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/autograd/sequence_of.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/train/metrics/accuracy.hpp>

using namespace lockstep;

namespace {
struct Text {
  std::vector<float> tokens;
  std::vector<std::int32_t> labels;
  std::vector<float> targets;
};

/// A loss or a metric of two classes, of a batch of texts with these numbers of tokens and labels.
template <class Collate, class F>
void with(Collate const& collate, std::vector<std::array<std::size_t, 2>> const& sizes, F const& f) {
  std::vector<Text> texts;
  for (auto const& [tokens, labels] : sizes)
    texts.push_back(
        {std::vector<float>(tokens, 1), std::vector<std::int32_t>(labels, 1), std::vector<float>(labels, 1)});
  data::Collated const held{collate, texts};
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const& batch = held.batch();
  auto const x = nn::sequence_of(context, batch[&Text::tokens], batch.positions());
  auto const logits = x.with(context.template variable<2>({x.layout.slots, 2}));
  std::fill_n(logits.tokens.value.data, logits.tokens.value.size(), 0.5f);
  f(context, logits, x, batch);
}
}  // namespace

TEST_CASE("a sequence with another number of labels than tokens is refused, padded or ragged") {
  auto const every = [](auto& context, auto const& logits, auto const& x, auto const& batch) {
    CHECK(nn::cross_entropy(context, logits, batch[&Text::labels]).weight == 20);
    CHECK(nn::cross_entropy(context, logits, batch[&Text::labels], batch[&Text::targets]).weight == 20);
    CHECK(nn::mean_squared_error(context, x, batch[&Text::targets]).weight == 20);
    train::Accuracy metric{&Text::labels};
    metric.add(logits, batch);
    CHECK(metric.totals()[1] == 20);
  };
  auto const none = [](auto& context, auto const& logits, auto const& x, auto const& batch) {
    CHECK_THROWS_WITH_AS(static_cast<void>(nn::cross_entropy(context, logits, batch[&Text::labels])),
                         "cross_entropy: sequence 1 has 8 tokens and 7 elements of the column; each token needs "
                         "one",
                         ShapeError);
    CHECK_THROWS_AS(static_cast<void>(nn::cross_entropy(context, logits, batch[&Text::labels], batch[&Text::targets])),
                    ShapeError);
    CHECK_THROWS_WITH_AS(static_cast<void>(nn::mean_squared_error(context, x, batch[&Text::targets])),
                         doctest::Contains("mean_squared_error: sequence 1 has 8 tokens"), ShapeError);
    train::Accuracy metric{&Text::labels};
    CHECK_THROWS_WITH_AS(metric.add(logits, batch), doctest::Contains("Accuracy: sequence 1 has 8 tokens"), ShapeError);
  };
  data::PadCollate const padded{.multiple = 8};
  with(padded, {{12, 12}, {8, 8}}, every);
  with(padded, {{12, 12}, {8, 7}}, none);
  with(data::RaggedCollate{}, {{12, 12}, {8, 8}}, every);
  with(data::RaggedCollate{}, {{12, 12}, {8, 7}, {3, 4}}, none);  // the total is correct
}
