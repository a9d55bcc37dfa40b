// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/write_token_shard.hpp>

#include <cstdint>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

TEST_CASE("a written shard has the tokens, and 1024 bytes before them") {
  TemporaryFolder const folder;
  for (std::size_t const count : {0U, 1U, 31U, 65536U, 65537U}) {
    std::vector<std::int32_t> ids(count);
    std::iota(ids.begin(), ids.end(), 0);
    if (!ids.empty()) ids.back() = 65535;
    auto const narrow = folder / ("narrow" + std::to_string(count)), wide = folder / ("wide" + std::to_string(count));
    data::write_token_shard<std::uint16_t>(narrow, ids);
    CHECK(data::open_token_shard(narrow).numbers<std::int32_t>() == ids);
    CHECK(read_file(narrow).size() == 1024 + 2 * count);
    if (!ids.empty()) ids.back() = 128000;
    data::write_token_shard<std::uint32_t>(wide, ids);
    CHECK(data::open_token_shard(wide).numbers<std::int32_t>() == ids);
    CHECK(read_file(wide).size() == 1024 + 4 * count);
  }
}

TEST_CASE("an id that the file cannot hold, and an existing file, are refused") {
  TemporaryFolder const folder;
  auto const path = folder / "shard";
  CHECK_THROWS_WITH_AS(
      data::write_token_shard<std::uint16_t>(path, std::vector<std::int32_t>{1, 65536}),
      doctest::Contains("token 1 has the id 65536, which uint16 cannot hold; write it as std::uint32_t"), DataError);
  CHECK_THROWS_WITH_AS(data::write_token_shard<std::uint32_t>(path, std::vector<std::int32_t>{-1}),
                       doctest::Contains("token 0 has the id -1, which uint32 cannot hold; ids are at least 0"),
                       DataError);
  CHECK(folder.entries() == 0);
  data::write_token_shard<std::uint16_t>(path, std::vector<std::int32_t>{1});
  CHECK_THROWS_WITH_AS(data::write_token_shard<std::uint16_t>(path, std::vector<std::int32_t>{2}),
                       doctest::Contains("exists already"), DataError);
  CHECK(data::open_token_shard(path).numbers<std::int32_t>() == std::vector<std::int32_t>{1});
}
