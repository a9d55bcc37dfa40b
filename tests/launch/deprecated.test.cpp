// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/deprecated.hpp>
#include <lockstep/launch/options.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("former names of launch's constants have the new values") {
  CHECK(launch::most_local_ranks == launch::max_local_ranks);
  CHECK(launch::OnSignal::ask == launch::OnSignal::request_stop);
}

#pragma GCC diagnostic pop
