// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/open_token_shard.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"
#include "array_files.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {
template <class Token>
std::string shard(std::int32_t magic, std::int32_t version, std::int32_t count, std::vector<Token> const& tokens) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytes_of(header) + bytes_of(tokens);
}
}  // namespace

TEST_CASE("tokens of a shard follow its header") {
  TemporaryFolder const folder;
  write_file(folder / "gpt2", shard<std::uint16_t>(20240520, 1, 3, {7, 50256, 65535}));
  write_file(folder / "llama3", shard<std::uint32_t>(20240801, 7, 2, {7, 128000}));
  write_file(folder / "empty", shard<std::uint16_t>(20240520, 1, 0, {}));
  auto const gpt2 = data::open_token_shard(folder / "gpt2");
  CHECK(gpt2.shape() == std::vector<Index>{3, 1});
  CHECK(gpt2.numbers<std::int32_t>() == std::vector<std::int32_t>{7, 50256, 65535});
  CHECK(data::open_token_shard(folder / "llama3").numbers<std::int32_t>() == std::vector<std::int32_t>{7, 128000});
  CHECK(data::open_token_shard(folder / "empty").rows() == 0);
}

TEST_CASE("a file that is no whole shard is refused with its path and a remedy") {
  TemporaryFolder const folder;
  auto const path = folder / "shard";
  auto const refused = [&](std::string const& content, char const* message) {
    write_file(path, content);
    CHECK_THROWS_WITH_AS(static_cast<void>(data::open_token_shard(path)), doctest::Contains(message), DataError);
  };
  auto const whole = shard<std::uint16_t>(20240520, 1, 3, {1, 2, 3});
  refused(whole.substr(0, whole.size() - 1), "claims 3 tokens of 2 bytes, and has 5 bytes after its header");
  refused(whole + "ab", "has 8 bytes after its header; it was cut off or damaged");
  refused(shard<std::uint16_t>(20240520, 1, -1, {}), "claims -1 tokens");
  refused(shard<std::uint16_t>(20240520, 2, 3, {1, 2, 3}), "is a token shard of version 2; version 1 is read");
  refused(shard<std::uint16_t>(20240522, 1, 3, {1, 2, 3}), "begins with 20240522");
  refused(whole.substr(0, 1023), "the header of a token shard");
  refused(bytes_of(std::vector<std::uint16_t>(2000, 7)), "open_raw<std::uint16_t>(path, {1})");
  CHECK_THROWS_AS(static_cast<void>(data::open_token_shard(folder / "none")), DataError);
}
