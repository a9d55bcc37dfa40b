// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <type_traits>

#include <lockstep/parallel/deprecated.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>

using namespace lockstep;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("former names of parallel's types and functions are aliases") {
  CHECK(std::is_same_v<parallel::FloatProducts, parallel::MatmulPrecision>);
  CHECK(parallel::MatmulPrecision::exact == parallel::MatmulPrecision::float32);
  CHECK(parallel::why_not_dealt(3, 2) == parallel::shard_count_error(3, 2));
  CHECK(parallel::why_not_dealt(4, 2).empty());
}

#pragma GCC diagnostic pop
