// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/ctc_error_rate.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/nn/autograd/sequence.hpp>

using namespace lockstep;

namespace {

struct Clip {
  std::vector<std::int32_t> words;
};
using Rate = train::CtcErrorRate<Clip, std::vector<std::int32_t>>;
static_assert(train::Metric<Rate>);

/// The texts, as tokens whose largest logit is that class, with a blank after each.
double rate(std::vector<std::vector<int>> const& read, std::vector<Clip> const& clips, auto collate, Index blank = 0) {
  std::vector<float> logits;
  std::vector<Index> offsets{0};
  for (auto const& row : read) {
    for (int const word : row)
      for (int const printed : {word, 0})
        for (int k = 0; k < 5; ++k) logits.push_back(k == printed ? 1.0f : 0.0f);
    offsets.push_back(offsets.back() + 2 * std::ssize(row));
  }
  data::Collated const held{collate, clips};
  auto const& batch = held.batch();
  auto const rows = std::ssize(read);
  nn::Sequence<float, HostSpace> const prediction{
      {{logits.data(), {offsets.back(), 5}}, nullptr},
      nn::SequenceLayout<HostSpace>::ragged(offsets.back(), 8, {offsets.data(), {rows + 1}}, batch.positions())};
  Rate metric(&Clip::words, blank);
  metric.add(prediction, batch);
  return metric.value();
}

}  // namespace

TEST_CASE("missing, additional and changed labels, as a fraction of all") {
  std::vector<Clip> const clips{{{1, 2, 3}}, {{4}}, {{}}, {{1, 1}}};
  data::RaggedCollate const collate;
  CHECK(rate({{1, 2, 3}, {4}, {}, {1, 1}}, clips, collate) == 0);
  CHECK(rate({{1, 3}, {4}, {}, {1, 1}}, clips, collate) == doctest::Approx(1.0 / 6));
  CHECK(rate({{2, 2, 3}, {4, 2}, {1}, {1, 1}}, clips, collate) == doctest::Approx(3.0 / 6));
  CHECK(rate({{}, {}, {}, {}}, clips, collate) == 1);
  CHECK(rate({{3, 1, 2}, {4}, {}, {1, 1}}, clips, collate) == doctest::Approx(2.0 / 6));
  CHECK(rate({{1, 3}, {4}, {}, {1, 1}}, clips, data::PadCollate{}) == doctest::Approx(1.0 / 6));
  CHECK(std::isnan(Rate(&Clip::words).value()));
  CHECK_THROWS_WITH_AS(rate({{1}, {4}, {}, {1}}, clips, collate, 5),
                       "CtcErrorRate: the blank is 5 and the model predicts 5 classes; it must be one of them, the "
                       "blank of nn::ctc_loss",
                       ConfigError);
  CHECK_FALSE(Rate::higher_is_better);
  CHECK(std::string(Rate::name()) == "error_rate");
}

TEST_CASE("a logit that is NaN is no class, as it would be read as the first or as none") {
  std::vector<Clip> const clips{{{1}}};
  data::Collated const held{data::RaggedCollate{}, clips};
  std::vector<Index> const offsets{0, 1};
  for (std::size_t bad = 0; bad < 3; ++bad) {
    std::vector<float> logits{0, 1, 0};
    logits[bad] = std::numeric_limits<float>::quiet_NaN();
    nn::Sequence<float, HostSpace> const prediction{
        {{logits.data(), {1, 3}}, nullptr},
        nn::SequenceLayout<HostSpace>::ragged(1, 1, {offsets.data(), {2}}, held.batch().positions())};
    Rate metric(&Clip::words);
    CHECK_THROWS_WITH_AS(metric.add(prediction, held.batch()),
                         doctest::Contains("ctc_best_path: the model predicts a logit that is nan"), DataError);
  }
}
