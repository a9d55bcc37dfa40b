// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/logs/unreadable_samples.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace lockstep;
using train::UnreadableSamples;

namespace {

data::LoaderStats stats_of(std::vector<Index> const& samples, Index times, bool skipped = true) {
  data::LoaderStats stats;
  (skipped ? stats.skipped : stats.substituted) = times;
  for (auto const sample : samples) stats.failures.push_back({sample, "sample " + std::to_string(sample) + ": torn"});
  return stats;
}
std::string note_of(std::vector<data::LoaderStats> const& ranks, char const* of = "") {
  UnreadableSamples all;
  for (auto const& rank : ranks) all.add(UnreadableSamples::packed(rank.skipped, rank.substituted, rank.failures));
  return all.note(of);
}

}  // namespace

TEST_CASE("samples of all ranks are noted once each, in the order of the dataset") {
  CHECK(note_of({}).empty());
  CHECK(note_of({{}, {}}).empty());
  CHECK(note_of({stats_of({7}, 1)}) == "1 sample was skipped:\n  sample 7: torn");
  CHECK(note_of({stats_of({7}, 3, false)}, " of the evaluation \"test\"") ==
        "1 sample of the evaluation \"test\" was replaced, 3 times in all:\n  sample 7: torn");
  CHECK(note_of({stats_of({7, 2}, 3), {}, stats_of({5, 7}, 3)}) ==
        "3 samples were skipped, 6 times in all:\n  sample 2: torn\n  sample 5: torn\n  sample 7: torn");
}

TEST_CASE("the note shows eight samples, and says if a loader had more than it keeps") {
  std::vector<Index> nine, most;
  for (Index i = 0; i < 9; ++i) nine.push_back(i);
  for (Index i = 0; i < static_cast<Index>(data::LoaderStats::most_failures); ++i) most.push_back(i);
  auto const note = note_of({stats_of(nine, 9)});
  CHECK(note.rfind("9 samples were skipped:\n  sample 0: torn\n", 0) == 0);
  CHECK(note.find("\n  sample 7: torn\n  and 1 more") != std::string::npos);
  CHECK(note.find("sample 8") == std::string::npos);
  auto const many = note_of({stats_of(most, 5000)});
  CHECK(many.rfind("at least 100 samples were skipped, 5000 times in all:\n", 0) == 0);
  CHECK(many.find("\n  and at least 92 more") != std::string::npos);
}

TEST_CASE("a zero byte in a reason ends it") {
  auto stats = stats_of({3}, 1);
  stats.failures[0].reason = std::string("sample 3: bad\0 byte", 19);
  stats.failures.push_back({4, "sample 4: torn"});
  CHECK(note_of({stats}) == "2 samples were skipped:\n  sample 3: bad\n  sample 4: torn");
}
