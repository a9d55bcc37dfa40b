// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/utf8.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("the length of a character is 1 to 4 bytes") {
  using namespace std::string_view_literals;
  CHECK(utf8_length("") == 0);
  CHECK(utf8_length("\0"sv) == 1);
  CHECK(utf8_length("ab") == 1);
  CHECK(utf8_length("\xc2\x80z") == 2);
  CHECK(utf8_length("\xe4\xb8\xadz") == 3);
  CHECK(utf8_length("\xf4\x8f\xbf\xbfz") == 4);
}

TEST_CASE("bytes that are not UTF-8 have length 0") {
  for (auto const* text : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xe4\xb8", "\xed\xa0\x80",
                           "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    CHECK(utf8_length(text) == 0);
}

TEST_CASE("each code point that is appended is one character") {
  for (std::uint32_t const code :
       {0x0u, 0x7fu, 0x80u, 0x7ffu, 0x800u, 0xd7ffu, 0xe000u, 0xffffu, 0x10000u, 0x10ffffu}) {
    std::string text;
    append_utf8(text, code);
    CHECK(utf8_length(text) == text.size());
    CHECK(text.size() == (code < 0x80 ? 1u : code < 0x800 ? 2u : code < 0x10000 ? 3u : 4u));
  }
}
