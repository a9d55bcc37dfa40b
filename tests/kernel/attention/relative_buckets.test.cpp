// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/attention/relative_buckets.hpp>

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include <rapidcheck.h>

using namespace lockstep;
using kernel::RelativeBuckets;

namespace {
/// The distances of [-300, 300] at which the bucket changes, and the new bucket.
std::vector<std::pair<Index, Index>> changes(RelativeBuckets const& buckets) {
  std::vector<std::pair<Index, Index>> out;
  for (Index d = -300; d <= 300; ++d)
    if (auto const b = buckets.of(d); out.empty() || out.back().second != b) out.push_back({d, b});
  return out;
}
}  // namespace

TEST_CASE("buckets equal T5's") {  // as its implementation in PyTorch computes them, in float
  CHECK(changes({}) == std::vector<std::pair<Index, Index>>{
                           {-300, 15}, {-90, 14}, {-63, 13}, {-45, 12}, {-31, 11}, {-22, 10}, {-15, 9}, {-11, 8},
                           {-7, 7},    {-6, 6},   {-5, 5},   {-4, 4},   {-3, 3},   {-2, 2},   {-1, 1},  {0, 0},
                           {1, 17},    {2, 18},   {3, 19},   {4, 20},   {5, 21},   {6, 22},   {7, 23},  {8, 24},
                           {12, 25},   {16, 26},  {23, 27},  {32, 28},  {46, 29},  {64, 30},  {91, 31}});
  CHECK(changes({.causal = true}) == std::vector<std::pair<Index, Index>>{
                                         {-300, 31}, {-112, 30}, {-98, 29}, {-86, 28}, {-76, 27}, {-66, 26}, {-58, 25},
                                         {-51, 24},  {-45, 23},  {-39, 22}, {-34, 21}, {-30, 20}, {-26, 19}, {-23, 18},
                                         {-20, 17},  {-18, 16},  {-15, 15}, {-14, 14}, {-13, 13}, {-12, 12}, {-11, 11},
                                         {-10, 10},  {-9, 9},    {-8, 8},   {-7, 7},   {-6, 6},   {-5, 5},   {-4, 4},
                                         {-3, 3},    {-2, 2},    {-1, 1},   {0, 0}});
  CHECK(changes({.count = 8, .farthest = 20}) ==
        std::vector<std::pair<Index, Index>>{{-300, 3}, {-6, 2}, {-1, 1}, {0, 0}, {1, 5}, {2, 6}, {7, 7}});
  CHECK(changes({.count = 10, .farthest = 64, .causal = true}) ==
        std::vector<std::pair<Index, Index>>{
            {-300, 9}, {-38, 8}, {-23, 7}, {-13, 6}, {-8, 5}, {-4, 4}, {-3, 3}, {-2, 2}, {-1, 1}, {0, 0}});
}

TEST_CASE("an exact boundary is at T5's place") {
  CHECK((kernel::RelativeBuckets{.count = 18, .farthest = 128}).of(-8) == 5);
  CHECK((kernel::RelativeBuckets{.count = 38, .farthest = 16}).of(-12) == 14);
  CHECK((kernel::RelativeBuckets{.count = 36, .farthest = 32, .causal = true}).of(-24) == 27);
  CHECK((kernel::RelativeBuckets{.count = 54, .farthest = 64, .causal = true}).of(-36) == 36);
}

TEST_CASE("buckets are in range and grow with the distance") {
  CHECK(rc::check([] {
    RelativeBuckets const buckets{.count = 2 * *rc::gen::inRange<Index>(2, 100),
                                  .farthest = *rc::gen::inRange<Index>(101, 1000),
                                  .causal = *rc::gen::arbitrary<bool>()};
    RC_ASSERT(buckets.valid());
    auto const d = *rc::gen::inRange<Index>(0, 2000);
    for (Index const distance : {d, -d, d + 1, -d - 1}) {
      RC_ASSERT(buckets.of(distance) >= 0);
      RC_ASSERT(buckets.of(distance) < buckets.count);
    }
    RC_ASSERT(buckets.of(-d) <= buckets.of(-d - 1));
    if (buckets.causal) {
      RC_ASSERT(buckets.of(d) == 0);
    } else if (d > 0) {
      RC_ASSERT(buckets.of(d) == buckets.of(-d) + buckets.count / 2);
    }
  }));
}

TEST_CASE("settings without a bucket for far or near distances are invalid") {
  CHECK(RelativeBuckets{}.valid());
  CHECK(RelativeBuckets{.farthest = 9}.valid());
  CHECK(RelativeBuckets{.count = 2, .causal = true}.valid());
  CHECK_FALSE(RelativeBuckets{.farthest = 16, .causal = true}.valid());
  CHECK_FALSE(RelativeBuckets{.count = 2}.valid());
  CHECK_FALSE(RelativeBuckets{.count = 7}.valid());
  CHECK(RelativeBuckets{.count = 7, .causal = true}.valid());
  CHECK_FALSE(RelativeBuckets{.count = 32, .farthest = 8}.valid());
  CHECK_FALSE(RelativeBuckets{.count = 0}.valid());
  CHECK_FALSE(RelativeBuckets{.count = -4}.valid());
}
