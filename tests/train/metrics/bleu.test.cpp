// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include <lockstep/train/metrics/bleu.hpp>
#include <lockstep/train/metrics/metric.hpp>

#include "translations.hpp"

using namespace lockstep;
using lockstep_test::Translation;

static_assert(train::Metric<train::Bleu>);

namespace {

double bleu(std::vector<Translation> const& all) {
  train::Bleu metric;
  for (auto const& each : all) metric.add(each.hypothesis, each.reference);
  return metric.value();
}

}  // namespace

TEST_CASE("BLEU and its tokens equal sacrebleu 2.6.0") {
  for (auto const& each : lockstep_test::translations) {
    CAPTURE(each.hypothesis);
    CHECK(train::Bleu::tokenize(each.hypothesis) == each.tokens);
    CHECK(bleu({each}) == doctest::Approx(each.bleu).epsilon(1e-12));
  }
  CHECK(bleu(lockstep_test::translations) == doctest::Approx(lockstep_test::corpus_bleu).epsilon(1e-12));
}

TEST_CASE("BLEU's totals add up, and without counts it is 0") {
  CHECK(train::Bleu().value() == 0);
  train::Bleu whole, parts[2];
  auto const& all = lockstep_test::translations;
  for (std::size_t i = 0; i < all.size(); ++i) {
    whole.add(all[i].hypothesis, all[i].reference);
    parts[i % 2].add(all[i].hypothesis, all[i].reference);
  }
  for (std::size_t i = 0; i < whole.totals().size(); ++i) parts[0].totals()[i] += parts[1].totals()[i];
  CHECK(parts[0].value() == whole.value());
}

TEST_CASE("BLEU equals the installed sacrebleu's on generated texts") {
  lockstep_test::check_against_sacrebleu("BLEU", [](auto const& all) { return bleu(all); });
}
