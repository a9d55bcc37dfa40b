// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/write.hpp>

#include <doctest/doctest.h>

TEST_CASE("a default target is overwritten") { CHECK(lockstep::Write{} == lockstep::Write::overwrite); }
