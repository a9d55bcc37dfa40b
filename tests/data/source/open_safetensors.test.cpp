// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/open_safetensors.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"
#include "array_files.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

struct File {
  TemporaryFolder folder;
  data::FileArray open(std::string const& header, std::string const& data, char const* name = "x") const {
    return open(little<std::uint64_t>(header.size()) + header + data, name);
  }
  data::FileArray open(std::string const& bytes, char const* name) const {
    write_file(folder / "a.safetensors", bytes);
    return data::open_safetensors(folder / "a.safetensors", name);
  }
};
char const* const header = R"({"__metadata__":{"a":"b"},"y":{"dtype":"I32","shape":[2],"data_offsets":[0,8]},)"
                           R"("x":{"dtype":"F32","shape":[2,1,2],"data_offsets":[8,24]}}  )";
std::string const data_bytes = bytes_of(std::vector<std::int32_t>{5, 6}) + bytes_of(std::vector<float>{1, 2, 3, 4});

}  // namespace

TEST_CASE("tensors are found by name, and rows are read in place") {
  File const file;
  auto const x = file.open(header, data_bytes);
  CHECK(x.shape() == std::vector<Index>{2, 1, 2});
  std::vector<float> row(2);
  x.read_rows(1, std::span(row));
  CHECK(row == std::vector<float>{3, 4});
  CHECK(file.open(header, data_bytes, "y").type().name() == "int32");
}

TEST_CASE("16-bit numbers are read as floats") {
  File const file;
  auto const x = file.open(R"({"x":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}})",
                           bytes_of(std::vector<std::uint16_t>{0x3f80, 0x4000, 0xc040, 0x3f00}));
  CHECK(x.type().name() == "bfloat16");
  CHECK(x.numbers<float>() == std::vector<float>{1, 2, -3, 0.5f});
  CHECK_THROWS_WITH_AS(static_cast<void>(x.numbers<std::int16_t>()),
                       doctest::Contains("holds bfloat16, but the requested type"), DataError);
}

TEST_CASE("damaged files and missing tensors are refused") {
  File const file;
  CHECK_THROWS_WITH_AS(file.open(header, data_bytes, "yy"), doctest::Contains("no tensor \"yy\" among its 2"),
                       DataError);
  CHECK_THROWS_AS(file.open(header, data_bytes, "__metadata__"), DataError);
  auto const whole = little<std::uint64_t>(std::string(header).size()) + header + data_bytes;
  for (std::size_t length = 0; length < whole.size(); ++length)
    CHECK_THROWS_AS(file.open(whole.substr(0, length), "x"), DataError);
  auto const refused = [&](std::string const& tensor, char const* why) {
    CHECK_THROWS_WITH_AS(file.open(R"({"x":)" + tensor + "}", std::string(16, 'x')), doctest::Contains(why), DataError);
  };
  refused(R"({"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]})", "of the type F8_E4M3");
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", "which disagree");
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", "damaged offsets");
  refused(R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})", "damaged offsets");
  refused(R"({"dtype":"F32","shape":[4],"data_offsets":[4,20]})", "needs 16 bytes");
  refused(R"({"dtype":"F32","shape":[-4],"data_offsets":[0,16]})", "no memory can hold");
  refused(R"({"dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[0,16]})", "no memory can hold");
  refused(R"({"dtype":"F32","shape":[],"data_offsets":[0,4]})", "a single number");
  refused(R"({"shape":[4],"data_offsets":[0,16]})", "a.safetensors: json: there is no member \"dtype\"");
  refused(R"({"dtype":"U8","shape":[16],"data_offsets":[0,16]},"y":1)", "a.safetensors: json: an object is needed");
  CHECK_THROWS_AS(file.open(little<std::uint64_t>(~0ull) + "{}", "x"), DataError);
  auto const y = [](char const* offsets) {
    return R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},"y":{"dtype":"U8","shape":[4],"data_offsets":)" +
           std::string(offsets) + "}}";
  };
  CHECK(file.open(y("[0,4]"), std::string(12, 'x')).rows() == 2);
  CHECK_THROWS_WITH_AS(file.open(y("[2,6]"), std::string(12, 'x')), doctest::Contains("belong to no tensor"),
                       DataError);
  CHECK_THROWS_WITH_AS(file.open(y("[0,6]"), std::string(12, 'x')),
                       doctest::Contains("\"y\" and \"x\" have common bytes"), DataError);
  CHECK_THROWS_WITH_AS(file.open(y("[0,4]"), std::string(13, 'x')), doctest::Contains("13 follow the header"),
                       DataError);
}
