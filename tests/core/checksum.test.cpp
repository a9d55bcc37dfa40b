// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/checksum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using lockstep::checksum;
using lockstep::Checksum;

namespace {
std::span<std::byte const> bytes(std::string const& text) { return std::as_bytes(std::span(text)); }
}  // namespace

TEST_CASE("checksums are constants, because files contain them") {
  CHECK(to_string(checksum({})) == "d55ccd4aeb3ccafbeb3143c7092c5f37");
  CHECK(to_string(checksum(bytes("lockstep"))) == "413f880b5eae22b008a28cc22b1979bc");
  CHECK(to_string(checksum(bytes(std::string(1000, 'x')))) == "56fb82dd0e2238bbef2cd3c55df4ba24");
}

TEST_CASE("the checksum of consecutive parts is the checksum of all") {
  std::string const text(1000, 'x');
  lockstep::RunningChecksum running;
  for (std::size_t at = 0; at < text.size(); at += 96)
    running.add(bytes(text).subspan(at, std::min<std::size_t>(96, text.size() - at)));
  CHECK(running.sum() == checksum(bytes(text)));
}

TEST_CASE("every bit, every length and every order changes the checksum") {
  std::vector<std::byte> zeros(100);
  auto const of = [&](std::size_t count) { return checksum(std::span(zeros).first(count)); };
  std::vector<Checksum> seen;
  for (std::size_t count : {0u, 1u, 31u, 32u, 33u, 64u, 99u, 100u}) seen.push_back(of(count));
  for (std::size_t bit = 0; bit < 800; ++bit) {
    zeros[bit / 8] ^= std::byte{1} << (bit % 8);
    seen.push_back(of(100));
    zeros[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  for (std::size_t half : {0u, 1u})
    for (std::size_t i = 0; i < seen.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) REQUIRE(seen[i].half[half] != seen[j].half[half]);
}
