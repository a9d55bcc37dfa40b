// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/write.hpp>

#include <doctest/doctest.h>

TEST_CASE("the default is to overwrite") { CHECK(lockstep::Write{} == lockstep::Write::overwrite); }
