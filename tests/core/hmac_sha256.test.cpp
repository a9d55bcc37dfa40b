// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/hmac_sha256.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace lockstep;

namespace {

std::string hmac(std::string_view key, std::string_view message) {
  return hex(hmac_sha256(std::as_bytes(std::span(key)), std::as_bytes(std::span(message))));
}

}  // namespace

TEST_CASE("the test vectors of RFC 4231") {
  CHECK(hmac(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')) ==
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  std::string counted;
  for (char c = 1; c <= 25; ++c) counted += c;
  CHECK(hmac(counted, std::string(50, '\xcd')) == "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  CHECK(hmac(std::string(20, '\x0c'), "Test With Truncation").substr(0, 32) == "a3b6167473100ee06e0c796c2955552b");
  CHECK(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  CHECK(hmac(std::string(131, '\xaa'),
             "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
             "hashed before being used by the HMAC algorithm.") ==
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST_CASE("keys at the size of a block") {
  // Digests by the module hmac of Python, for that many letters x.
  CHECK(hmac(std::string(64, 'x'), "message") == "f3999278f2baf304b57ab2573e341ac504b34878813f9db6060f13ab43cab5cf");
  CHECK(hmac(std::string(65, 'x'), "message") == "c336af6a9c2d194101af34a5f7f65ef78e527648c466a7f0cad3825dee119b7d");
  CHECK(hmac({}, {}) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST_CASE("digests that differ in any bit are unequal") {
  auto const digest = hmac_sha256({}, {});
  CHECK(equal_in_constant_time(digest, digest));
  for (std::size_t bit = 0; bit < 8 * digest.size(); ++bit) {
    auto other = digest;
    other[bit / 8] = static_cast<std::uint8_t>(other[bit / 8] ^ (1 << bit % 8));
    CHECK_FALSE(equal_in_constant_time(digest, other));
  }
}
