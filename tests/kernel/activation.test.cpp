// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/activation.hpp>

#include <doctest/doctest.h>

using lockstep::kernel::Activation;

TEST_CASE("by default nothing is activated") { CHECK(Activation{} == Activation::none); }
