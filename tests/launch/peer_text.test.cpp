// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/peer_text.hpp>

#include <doctest/doctest.h>

using lockstep::launch::peer_text;

TEST_CASE("text of other processes is escaped and cut") {
  CHECK(peer_text("\x1b[2J a\nb \xc3\xa4 \xff \xc2\x9b \x7f") == "\\x1b[2J a\\x0ab \xc3\xa4 \\xff \\xc2\\x9b \\x7f");
  CHECK(peer_text("abc", 2) == "ab...");
  CHECK(peer_text("a\xc3\xa4", 2) == "a...");
}
