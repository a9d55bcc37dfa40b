// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/detail/check_finite_parameters.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include <lockstep/nn/autograd/buffer.hpp>
#include <lockstep/nn/autograd/parameter.hpp>

using namespace lockstep;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN(),
                infinite = std::numeric_limits<float>::infinity();

struct Model {
  nn::Parameter weight{{40, 50}, {}}, bias{{3}, {}};
  nn::Buffer least{{2}};
  void visit(auto&& each) {
    each("weight", weight);
    each("bias", bias);
    each("least", least);
  }
};

}  // namespace

TEST_CASE("the first number that is not finite is found at any place of any length") {
  for (std::size_t const size : {0u, 1u, 31u, 32u, 33u, 1023u, 1024u, 1025u, 3000u}) {
    std::vector<float> numbers(size, std::numeric_limits<float>::max());
    CHECK_FALSE(train::detail::first_not_finite(numbers));
    for (std::size_t at = 0; at < size; at += size < 100 ? 1 : 97)
      for (float const bad : {not_a_number, -not_a_number, infinite, -infinite}) {
        numbers[at] = bad;
        CHECK(train::detail::first_not_finite(numbers) == at);
        numbers[at] = -0.0f;
      }
  }
}

TEST_CASE("an infinite number is no NaN") {
  std::vector<float> numbers(2000, infinite);
  CHECK_FALSE(train::detail::has_nan(numbers));
  numbers[1999] = not_a_number;
  CHECK(train::detail::has_nan(numbers));
}

TEST_CASE("a parameter is named with the element; a buffer may be infinite, but not nan") {
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size())), buffers{infinite, -infinite};
  auto const described = [&] { return train::detail::describe_not_finite(layout, values, buffers); };
  CHECK(described().empty());
  buffers[1] = not_a_number;
  CHECK(described() == "the buffer \"least\" is nan (element 1 of 2)");
  auto const bias = static_cast<std::size_t>(layout.entries()[layout.entries()[0].name == "bias" ? 0 : 1].offset);
  values[bias + 2] = infinite;
  CHECK(described() == "the parameter \"bias\" is inf (element 2 of 3)");
  CHECK_THROWS_WITH_AS(train::detail::check_finite_parameters(layout, values, buffers, "after step 7 ", "; stop"),
                       "after step 7 the parameter \"bias\" is inf (element 2 of 3); stop", Error);
}
