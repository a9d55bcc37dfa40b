// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/activation.hpp>

#include <doctest/doctest.h>

using lockstep::kernel::Activation;

TEST_CASE("there is no activation by default") { CHECK(Activation{} == Activation::none); }
