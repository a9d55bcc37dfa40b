// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/instruction_set.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

using lockstep::best_instruction_set;
using lockstep::InstructionSet;
using lockstep::Vectors;
using lockstep::with_best_instructions;
using lockstep::with_instructions;

namespace {

std::vector<InstructionSet> supported() {
  std::vector<InstructionSet> sets{InstructionSet::baseline};
  for (auto set : {InstructionSet::avx2, InstructionSet::avx512})
    if (set <= best_instruction_set()) sets.push_back(set);
  return sets;
}

std::vector<float> numbers(std::size_t count, std::uint32_t seed) {
  std::vector<float> out(count);
  for (auto& x : out) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(seed >> 8) * 0x1p-23f - 1.0f;
  }
  return out;
}

float multiply_add(float a, float x, float y) { return a * x + y; }

}  // namespace

TEST_CASE("elementwise results are rounded twice, on every instruction set") {
  for (std::size_t count : {0u, 1u, 15u, 16u, 17u, 31u, 32u, 33u, 1000u}) {
    auto const x = numbers(count, 1), y = numbers(count, 2);
    std::vector<float> expected(count);
    for (std::size_t i = 0; i < count; ++i) {
      float volatile product = 0.7f * x[i];  // forces a rounding
      expected[i] = product + y[i];
    }
    for (auto set : supported()) {
      CAPTURE(to_string(set));
      std::vector<float> out(count);
      with_instructions(set, [=, &x, &y, to = out.data()] {
        for (std::size_t i = 0; i < count; ++i) to[i] = multiply_add(0.7f, x[i], y[i]);
      });
      for (std::size_t i = 0; i < count; ++i)
        CHECK(std::bit_cast<std::uint32_t>(out[i]) == std::bit_cast<std::uint32_t>(expected[i]));
    }
  }
}

TEST_CASE("a fused multiply-add would fail the case above") {
  auto const x = numbers(1000, 1), y = numbers(1000, 2);
  int different = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    float volatile product = 0.7f * x[i];
    different += std::fma(0.7f, x[i], y[i]) != product + y[i];
  }
  CHECK(different > 100);
}

TEST_CASE("sums are not reassociated") {
  auto const x = numbers(1000, 3);
  std::vector<std::uint32_t> bits;
  for (auto set : supported()) {
    float const sum = with_instructions(set, [from = x.data()] {
      float total = 0;
      for (int i = 0; i < 1000; ++i) total += from[i];
      return total;
    });
    bits.push_back(std::bit_cast<std::uint32_t>(sum));
    CHECK(bits.back() == bits.front());
  }
}

TEST_CASE("a body with a Vectors parameter gets the set's vector width") {
  for (auto set : supported()) {
    int changed = 0;
    auto const width = with_instructions(set, [&]<std::size_t bytes>(Vectors<bytes>) {
      ++changed;
      return bytes;
    });
    if (set == InstructionSet::avx512) CHECK(width == 64);
    if (set == InstructionSet::avx2) CHECK(width == 32);
    if (set == InstructionSet::baseline) CHECK((width == 16 || width == 32 || width == 64));
    CHECK(with_instructions(set, [](auto vectors) { return std::is_same_v<decltype(vectors), Vectors<16>>; }) ==
          (width == 16));
    CHECK(changed == 1);
  }
}

TEST_CASE("results, references and changed captures are returned; exceptions propagate") {
  CHECK(with_best_instructions([] { return 42; }) == 42);
  int value = 1;
  with_best_instructions([&]() -> int& { return value; }) = 5;
  CHECK(value == 5);
  auto count = [n = 0]() mutable { return ++n; };
  with_best_instructions(count);
  CHECK(with_best_instructions(count) == 2);
  CHECK(with_best_instructions([p = std::make_unique<int>(3)] { return *p; }) == 3);
  CHECK_THROWS_AS(with_best_instructions([] { throw 1; }), int);
}

TEST_CASE("sets have names") {
  CHECK(to_string(InstructionSet::baseline) == doctest::String("baseline"));
  CHECK(to_string(InstructionSet::avx2) == doctest::String("avx2"));
  CHECK(to_string(InstructionSet::avx512) == doctest::String("avx512"));
}
