// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/unpack_mds.hpp>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/sha256.hpp>
#include <lockstep/data/source/mds_dataset.hpp>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

std::string packed(std::string const& plain) {
  std::string out(::ZSTD_compressBound(plain.size()), '\0');
  out.resize(::ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 7));
  return out;
}
/// One shard with one sample, whose only value is `value`.
std::string shard(std::string const& value) {
  std::uint32_t const begin = 12, numbers[] = {1, begin, begin + 4 + static_cast<std::uint32_t>(value.size()),
                                               static_cast<std::uint32_t>(value.size())};
  return std::string(reinterpret_cast<char const*>(numbers), sizeof numbers) + value;
}
struct Folder : TemporaryFolder {
  void index(std::size_t bytes, std::string const& compression = "zstd:7", std::string const& zip = "shard.mds.zstd",
             std::string const& zip_fields = "") const {
    write_file(*this / "index.json",
               R"({"version":2,"shards":[{"version":2,"format":"mds","compression":")" + compression +
                   R"(","raw_data":{"basename":"shard.mds","bytes":)" + std::to_string(bytes) +
                   R"(},"samples":1,"zip_data":{"basename":")" + zip + "\"" + zip_fields +
                   R"(},"column_names":["x"],"column_encodings":["str"],"column_sizes":[null]}]})");
  }
  [[nodiscard]] std::string name() const { return path().string(); }
};

}  // namespace

TEST_CASE("shards are decompressed once, next to their sources") {
  std::string value;
  for (int i = 0; i < 100'000; ++i) value += std::to_string(i * 7919);  // many buffers
  auto const whole_buffers = value.substr(0, 2 * ::ZSTD_DStreamOutSize() - shard("").size());
  for (auto const& each : {std::string(), std::string("one"), value, whole_buffers}) {
    Folder const folder;
    folder.index(shard(each).size());
    write_file(folder / "shard.mds.zstd", packed(shard(each)));
    CHECK_THROWS_WITH_AS(data::MdsDataset(folder.name()), doctest::Contains("unpack_mds(folder)"), DataError);
    CHECK(data::MdsDataset(data::unpack_mds(folder.name())).get(0).text("x") == each);
    CHECK(folder.entries() == 3);
    write_file(folder / "shard.mds.zstd", "gone");
    CHECK(data::MdsDataset(data::unpack_mds(folder.name())).get(0).text("x") == each);
  }
}

TEST_CASE("threads can unpack one folder at once") {
  Folder const folder;
  auto const plain = shard(std::string(1 << 20, 'x'));
  folder.index(plain.size());
  write_file(folder / "shard.mds.zstd", packed(plain));
  std::atomic<int> whole = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      try {
        whole += data::MdsDataset(data::unpack_mds(folder.name())).get(0).text("x").size() == std::size_t{1} << 20;
      } catch (DataError const&) {
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(whole == 4);
  CHECK(folder.entries() == 3);
}

TEST_CASE("shards that cannot be decompressed are refused by name and leave no files") {
  Folder const folder;
  auto const plain = shard("some text, some text, some text"), whole = packed(plain);
  auto const refused = [&](std::string const& content, char const* why) {
    write_file(folder / "shard.mds.zstd", content);
    CHECK_THROWS_WITH_AS(static_cast<void>(data::unpack_mds(folder.name())), doctest::Contains(why), DataError);
    CHECK(folder.entries() == 2);
  };
  folder.index(plain.size());
  for (std::size_t length = 0; length < whole.size(); ++length) refused(whole.substr(0, length), "shard.mds.zstd: ");
  refused(whole.substr(0, whole.size() - 1), "it was cut off");
  refused(plain, "cannot be decompressed");
  folder.index(plain.size() + 1);
  refused(whole, "holds 47 bytes, and the index says 48");
  folder.index(plain.size() - 1);
  refused(whole, "holds more than 46 bytes");
  std::string noise;
  for (std::uint64_t i = 0; i < 100'000; ++i) noise += hexadecimal(mix(i));
  refused(packed(noise), "holds more than 46 bytes");  // compressed, it has several buffers, too
  folder.index(plain.size(), "gz");
  refused(whole, "is compressed with gz");
  folder.index(plain.size(), "zstd", "../shard.mds.zstd");
  refused(whole, "must be in the folder of its index or below it");
  auto const with_zip = [&](std::string const& fields) {
    folder.index(plain.size(), "zstd", "shard.mds.zstd", fields);
  };
  with_zip(R"(,"bytes":1)");
  refused(whole, "shard.mds.zstd: has ");
  Sha256 hash;
  hash.update(std::as_bytes(std::span(whole)));
  auto const right = R"(,"hashes":{"sha256":")" + hex(hash.digest()) + "\"}";
  with_zip(right);
  refused(packed(shard("some text, some text, some texT")), "has another SHA-256 than the index says");
  refused(whole.substr(0, whole.size() - 1), "has another SHA-256 than the index says");
  refused(plain, "has another SHA-256 than the index says");
  with_zip(right + R"(,"bytes":)" + std::to_string(whole.size()));
  write_file(folder / "shard.mds.zstd", whole);
  CHECK(data::MdsDataset(data::unpack_mds(folder.name())).size() == 1);
}
