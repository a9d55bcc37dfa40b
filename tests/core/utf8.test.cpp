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

TEST_CASE("the prefix that is UTF-8 ends before the first byte that is not, wherever it stands") {
  for (std::size_t begin = 0; begin < 20; ++begin) {
    std::string const before = std::string(begin, 'a') + "\xe4\xb8\xad";
    for (std::string const after : {"", "b", "bcdefghijklmnopq\xf4\x8f\xbf\xbf"}) {
      CHECK(utf8_prefix(before + after) == before.size() + after.size());
      CHECK(utf8_prefix(before + "\xe9" + after) == before.size());
      CHECK(utf8_prefix(before + after + "\xe4\xb8") == before.size() + after.size());
    }
  }
  CHECK(utf8_prefix("") == 0);
}

TEST_CASE("a cut character begins one, and other bytes do not") {
  for (auto const* text : {"\xc2", "\xe0", "\xe4\xb8", "\xed\x9f", "\xf0\x90", "\xf4\x8f\xbf"})
    CHECK(utf8_begins(text));
  for (auto const* text : {"", "a", "\xc2\x80", "\x80", "\xc1", "\xf5", "\xe0\x9f", "\xed\xa0", "\xf0\x8f", "\xf4\x90",
                           "\xe4z", "\xf0\x90z", "\xe4\xb8\xad"})
    CHECK_FALSE(utf8_begins(text));
}
