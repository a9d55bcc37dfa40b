// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/mds_dataset.hpp>

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/sha256.hpp>

#include "../../temporary_folder.hpp"
#include "array_files.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

std::string shard(std::vector<std::string> const& samples, std::string const& config = "{}") {
  std::vector<std::uint32_t> offsets{static_cast<std::uint32_t>(4 + 4 * (samples.size() + 1) + config.size())};
  for (auto const& each : samples) offsets.push_back(offsets.back() + static_cast<std::uint32_t>(each.size()));
  return little(static_cast<std::uint32_t>(samples.size())) + bytes_of(offsets) + config +
         std::accumulate(samples.begin(), samples.end(), std::string());
}
/// caption (str), label (int), x (ndarray of 2 float32).
std::string sample(std::string const& caption, std::int64_t label, float x) {
  return little(static_cast<std::uint32_t>(caption.size())) + caption + little(label) +
         bytes_of(std::vector<float>{x, -x});
}
std::string const columns =
    R"("column_names":["caption","label","x"],"column_encodings":["str","int","ndarray:float32:2"],)"
    R"("column_sizes":[null,8,8])";
std::string entry(std::string const& name, int samples, std::string const& what = columns,
                  std::string const& compression = "null") {
  return R"({"version":2,"format":"mds","compression":)" + compression + R"(,"hashes":[],"raw_data":{"basename":")" +
         name + R"(","hashes":{}},"samples":)" + std::to_string(samples) +
         R"(,"size_limit":67108864,"zip_data":null,)" + what + "}";
}
struct Folder : TemporaryFolder {
  data::MdsDataset open(std::string const& shards) const {
    write_file(*this / "index.json", R"({"version":2,"shards":[)" + shards + "]}");
    return data::MdsDataset(path().string());
  }
  Folder() {
    write_file(*this / "shard.00000.mds", shard({sample("one", 1, 1), sample("", 2, 2)}));
    write_file(*this / "shard.00001.mds", shard({sample("three", 3, 3)}));
  }
  std::string both() const { return entry("shard.00000.mds", 2) + "," + entry("shard.00001.mds", 1); }
};

}  // namespace

TEST_CASE("samples are counted over all shards, with values by column") {
  Folder const folder;
  auto const mds = folder.open(folder.both());
  REQUIRE(mds.size() == 3);
  CHECK(mds.get(0).text("caption") == "one");
  CHECK(mds.get(1).text("caption").empty());
  CHECK(mds.get(2).text("caption") == "three");
  CHECK(mds.get(2).number<std::int64_t>("label") == 3);
  CHECK(mds.get(2).numbers<float>("x") == std::vector<float>{3, -3});
  CHECK(mds.get(1).bytes("x").size() == 8);
  CHECK(mds.name(2) == "sample 0 of " + folder / "shard.00001.mds");
  CHECK(mds.fingerprint() == folder.open(folder.both()).fingerprint());
}

TEST_CASE("there are more shards than may be open at once") {
  Folder const folder;
  std::string shards = entry("shard.00000.mds", 2);
  for (int i = 0; i < 300; ++i) shards += "," + entry("shard.00001.mds", 1);
  auto const before = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  auto const mds = folder.open(shards);
  CHECK(mds.size() == 302);
  CHECK(mds.get(301).number<std::int64_t>("label") == 3);
  CHECK(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}) == before);
}

TEST_CASE("shards are read from folders below the index, as merged indices name them") {
  Folder const folder;
  for (auto const* part : {"en", "de"}) std::filesystem::create_directory(folder / part);
  write_file(folder / "en/shard.00000.mds", shard({sample("one", 1, 1), sample("two", 2, 2)}));
  write_file(folder / "de/shard.00000.mds", shard({sample("drei", 3, 3)}));
  auto const mds = folder.open(entry("en/shard.00000.mds", 2) + "," + entry("de/shard.00000.mds", 1));
  REQUIRE(mds.size() == 3);
  CHECK(mds.get(1).text("caption") == "two");
  CHECK(mds.get(2).text("caption") == "drei");
}

TEST_CASE("a shard of another size or content than the index says is refused") {
  Folder const folder;
  auto const indexed = [&](std::string const& fields, data::MdsCheck check = data::MdsCheck::sizes) {
    auto text = entry("shard.00000.mds", 2);
    text.replace(text.find(R"("hashes":{})"), 11, fields);
    write_file(folder / "index.json", R"({"version":2,"shards":[)" + text + "]}");
    return data::MdsDataset(folder.path().string(), check).size();
  };
  auto const refused = [&](std::string const& fields, char const* why, data::MdsCheck check = data::MdsCheck::sizes) {
    CHECK_THROWS_WITH_AS(indexed(fields, check), doctest::Contains(why), DataError);
  };
  auto const content = read_file(folder / "shard.00000.mds");
  auto const bytes = std::to_string(content.size());
  CHECK(indexed(R"("bytes":)" + bytes) == 2);
  CHECK(indexed(R"("bytes":null)") == 2);
  refused(R"("bytes":1)", ("has " + bytes + " bytes, and the index says 1;").c_str());
  refused(R"("bytes":-1)", "the index says -1;");
  refused(R"("bytes":"60")", "an integer");

  Sha256 hash;
  hash.update(std::as_bytes(std::span(content)));
  auto const right = R"("hashes":{"sha1":"?","sha256":")" + hex(hash.digest()) + "\"}";
  auto const wrong = R"("hashes":{"sha256":")" + std::string(64, '0') + "\"}";
  auto const check = data::MdsCheck::hashes;
  CHECK(indexed(right, check) == 2);
  CHECK(indexed(wrong) == 2);
  refused(wrong, "has another SHA-256 than the index says", check);
  refused(R"("hashes":{"sha256":1})", "a string", check);
  for (auto const* none : {R"("hashes":{})", R"("hashes":[])", R"("hashes":null)", R"("hashes":{"sha1":"?"})"})
    refused(none, "has no SHA-256 in the index", check);
  for (std::size_t at = 0; at < content.size(); ++at) {  // any byte
    auto damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_file(folder / "shard.00000.mds", damaged);
    CHECK_THROWS_AS(indexed(right, check), DataError);
  }
}

TEST_CASE("unreadable files are refused by name") {
  Folder const folder;
  auto const refused = [&](std::string const& shards, char const* why) {
    CHECK_THROWS_WITH_AS(folder.open(shards), doctest::Contains(why), DataError);
  };
  refused("", "has no sample");
  refused(entry("none.mds", 1), "cannot be opened");
  refused(entry("../x.mds", 1), "must be in the folder of its index or below it");
  refused(entry("en/../../x.mds", 1), "must be in the folder of its index or below it");
  refused(entry("/x.mds", 1), "must be in the folder of its index or below it");
  refused(entry("shard.00000.mds", 3), "holds 2 samples, and the index says 3");
  refused(entry("none.mds", 1, columns, "\"zstd\""), "is compressed (zstd)");
  CHECK(folder.open(entry("shard.00001.mds", 1, columns, "\"zstd\"")).size() == 1);  // already decompressed
  refused(entry("shard.00000.mds", 2, R"("column_names":["a"],"column_encodings":["pkl"],"column_sizes":[null])"),
          "column \"a\" is pickled");
  refused(entry("shard.00000.mds", 2, R"("column_names":["a"],"column_encodings":[],"column_sizes":[null])"),
          "different numbers of columns");
  refused(entry("shard.00000.mds", 2, R"("column_names":["a"],"column_encodings":["int"],"column_sizes":[-8])"),
          "values of -8 bytes");
  refused(
      entry("shard.00000.mds", 2, R"("column_names":["a","a"],"column_encodings":["int","int"],"column_sizes":[8,8])"),
      "lists the column \"a\" twice");
  auto const complete = shard({sample("one", 1, 1), sample("two", 2, 2)});
  auto const refused_shard = [&](std::string const& bytes, char const* why) {
    write_file(folder / "damaged.mds", bytes);
    refused(entry("damaged.mds", 2), why);
  };
  write_file(folder / "damaged.mds", complete);
  CHECK(folder.open(entry("damaged.mds", 2)).size() == 2);
  refused_shard(complete + "xyz", "has 3 bytes after its last sample");
  refused_shard(complete.substr(0, complete.size() - 1), "has a table of samples that does not fit");
  auto const with_offset = [&](std::size_t k, std::uint32_t offset) {
    auto bytes = complete;
    return bytes.replace(4 + 4 * k, 4, little(offset));
  };
  refused_shard(with_offset(0, 4),
                "has a table of samples that does not fit");  // the first sample would be the table itself
  refused_shard(with_offset(1, 0xffffffff), "has a table of samples that does not fit");
  refused_shard(with_offset(2, 10), "has a table of samples that does not fit");
  write_file(folder / "index.json", R"({"version":3,"shards":[]})");
  CHECK_THROWS_WITH_AS(data::MdsDataset(folder.path().string()), doctest::Contains("MDS version 3"), DataError);
  auto const refused_index = [&](char const* text, char const* why) {
    write_file(folder / "index.json", text);
    auto const message = folder / "index.json" + ": json: " + why;
    CHECK_THROWS_WITH_AS(data::MdsDataset(folder.path().string()), doctest::Contains(message.c_str()), DataError);
  };
  refused_index("[]", "an object is needed, not array");
  refused_index(R"({"version":"2"})", "an integer is needed, not string");
  refused_index(R"({"version":2,"shards":[{}]})", "there is no member \"raw_data\"");
  write_file(folder / "index.json", R"({"version":2,"shards")");
  CHECK_THROWS_AS(data::MdsDataset(folder.path().string()), DataError);

  auto const whole = shard({sample("one", 1, 1), sample("", 2, 2)});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_file(folder / "shard.00000.mds", whole.substr(0, length));
    CHECK_THROWS_AS(folder.open(entry("shard.00000.mds", 2)), DataError);
  }
  // No byte, whatever its value, may cause a read outside the file.
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto damaged = whole;
    damaged[at] = '\xff';
    write_file(folder / "shard.00000.mds", damaged);
    try {
      auto const mds = folder.open(entry("shard.00000.mds", 2));
      for (Index i = 0; i < 2; ++i) static_cast<void>(mds.get(i).numbers<float>("x"));
    } catch (DataError const&) {
    }
  }
}
