// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/sha256.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <string>
#include <string_view>
#include <vector>

using lockstep::hex;
using lockstep::Sha256;

namespace {
std::span<std::byte const> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string sha256(std::string_view text) {
  Sha256 hash;
  hash.update(bytes(text));
  return hex(hash.digest());
}
}  // namespace

TEST_CASE("the examples of FIPS 180") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(
      sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrst"
             "nopqrstu") == "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  CHECK(sha256(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("lengths near the end of a block") {
  // Digests by sha256sum of coreutils for that many letters x.
  CHECK(sha256(std::string(55, 'x')) == "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  CHECK(sha256(std::string(56, 'x')) == "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  CHECK(sha256(std::string(63, 'x')) == "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2");
  CHECK(sha256(std::string(64, 'x')) == "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
  CHECK(sha256(std::string(65, 'x')) == "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9");
}

TEST_CASE("the split into updates does not change the digest") {
  CHECK(rc::check("update(a); update(b) == update(ab)", [](std::vector<std::string> const& parts) {
    Sha256 hash;
    std::string whole;
    for (auto const& part : parts) {
      auto const repeated = [&] {
        std::string out;
        for (int i = 0; i < 7; ++i) out += part;
        return out;
      }();
      hash.update(bytes(repeated));
      whole += repeated;
    }
    RC_ASSERT(hex(hash.digest()) == sha256(whole));
  }));
}

TEST_CASE("reading a digest in between changes nothing") {
  Sha256 hash;
  hash.update(bytes("ab"));
  CHECK(hex(hash.digest()) == sha256("ab"));
  hash.update(bytes("c"));
  CHECK(hex(hash.digest()) == sha256("abc"));
}

TEST_CASE("hexadecimal digits") {
  std::vector<std::uint8_t> const all{0x00, 0x0f, 0xa0, 0xff};
  CHECK(hex(all) == "000fa0ff");
  CHECK(hex({}).empty());
}
