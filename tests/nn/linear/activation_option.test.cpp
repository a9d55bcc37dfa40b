// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/linear/activation_option.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("an activation option holds an activation and converts to it") {
  constexpr nn::ActivationOption option = nn::Activation::relu;
  static_assert(option == nn::Activation::relu);
  nn::ActivationOption other = nn::Activation::none;
  CHECK(other == nn::Activation::none);
  nn::ActivationOption copy(other);  // not rejected as another type
  other = nn::Activation::gelu;
  CHECK(other == nn::Activation::gelu);
  CHECK(copy == nn::Activation::none);
}
