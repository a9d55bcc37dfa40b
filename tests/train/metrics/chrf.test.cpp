// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include <lockstep/train/metrics/chrf.hpp>
#include <lockstep/train/metrics/metric.hpp>

#include "translations.hpp"

using namespace lockstep;
using lockstep_test::Translation;

static_assert(train::Metric<train::Chrf>);

namespace {

double chrf(std::vector<Translation> const& all) {
  train::Chrf metric;
  for (auto const& each : all) metric.add(each.hypothesis, each.reference);
  return metric.value();
}

}  // namespace

TEST_CASE("chrF equals sacrebleu 2.6.0") {
  for (auto const& each : lockstep_test::translations) {
    CAPTURE(each.hypothesis);
    CHECK(chrf({each}) == doctest::Approx(each.chrf).epsilon(1e-12));
  }
  CHECK(chrf(lockstep_test::translations) == doctest::Approx(lockstep_test::corpus_chrf).epsilon(1e-12));
}

TEST_CASE("chrF's totals add up, and without counts it is 0") {
  CHECK(train::Chrf().value() == 0);
  train::Chrf whole, parts[2];
  auto const& all = lockstep_test::translations;
  for (std::size_t i = 0; i < all.size(); ++i) {
    whole.add(all[i].hypothesis, all[i].reference);
    parts[i % 2].add(all[i].hypothesis, all[i].reference);
  }
  for (std::size_t i = 0; i < whole.totals().size(); ++i) parts[0].totals()[i] += parts[1].totals()[i];
  CHECK(parts[0].value() == whole.value());
}

TEST_CASE("chrF equals the installed sacrebleu's on generated texts") {
  lockstep_test::check_against_sacrebleu("CHRF", [](auto const& all) { return chrf(all); });
}
