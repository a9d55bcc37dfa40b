// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/crc32.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

using lockstep::Crc32;

namespace {

std::uint32_t crc_of(std::string_view text) {
  Crc32 out;
  out.add(std::as_bytes(std::span(text)));
  return out.sum();
}

}  // namespace

TEST_CASE("published values") {
  CHECK(crc_of("") == 0);
  CHECK(crc_of("123456789") == 0xcbf43926);
  CHECK(crc_of("The quick brown fox jumps over the lazy dog") == 0x414fa339);
}

TEST_CASE("pieces of any length have the sum of the whole, and each changed bit another one") {
  std::string text;
  for (int i = 0; i < 67; ++i) text += static_cast<char>(i * 37);
  auto const whole = crc_of(text);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Crc32 parts;
    parts.add(std::as_bytes(std::span(text).first(cut)));
    parts.add(std::as_bytes(std::span(text).subspan(cut)));
    CHECK(parts.sum() == whole);
  }
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    auto changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    CHECK(crc_of(changed) != whole);
  }
}
