// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/file_array.hpp>

#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"
#include "../../unprivileged.hpp"
#include "array_files.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

std::shared_ptr<data::detail::DataFile const> file_of(std::string const& path, std::string const& bytes) {
  write_file(path, bytes);
  return std::make_shared<data::detail::DataFile const>(path);
}
constexpr auto f4 = data::NumberType::of<float>();

}  // namespace

TEST_CASE("types have their common names") {
  enum class Colour : std::uint8_t {};
  CHECK(f4.name() == "float32");
  CHECK(data::NumberType::of<double>().name() == "float64");
  CHECK(data::NumberType::of<std::int16_t>().name() == "int16");
  CHECK(data::NumberType::of<Colour>().name() == "uint8");
  CHECK(data::NumberType::of<bool>().name() == "bool");
}

TEST_CASE("rows are read in place, in either byte order") {
  TemporaryFolder const folder;
  auto const file = file_of(folder / "a", "xyz" + bytes_of(std::vector<std::int32_t>{1, 2, 3, 4, 5, 0x01020304}));
  data::FileArray const array(file, data::NumberType::of<std::int32_t>(), {2, 3}, 3);
  CHECK(array.rows() == 2);
  CHECK(array.width() == 3);
  CHECK(array.extents() == "[2, 3]");
  std::vector<std::int32_t> row(3);
  array.read_rows(1, std::span(row));
  CHECK(row == std::vector<std::int32_t>{4, 5, 0x01020304});
  data::FileArray const swapped(file, array.type(), {2, 3}, 3, data::FileArray::Order::swapped);
  swapped.read_rows(1, std::span(row));
  CHECK(row == std::vector<std::int32_t>{4 << 24, 5 << 24, 0x04030201});
}

TEST_CASE("16-bit numbers are read as floats, in place, in either byte order") {
  TemporaryFolder const folder;
  auto const file = file_of(folder / "a", "x" + bytes_of(std::vector<std::uint16_t>{0x3c00, 0xc000, 0x0001, 0x003c}));
  data::FileArray const halves(file, {'f', 2}, {2, 2}, 1);
  CHECK(halves.type().name() == "float16");
  std::vector<double> row(2);
  halves.read_rows(0, std::span(row));
  CHECK(row == std::vector<double>{1, -2});
  CHECK(halves.numbers<float>() == std::vector<float>{1, -2, 0x1p-24f, 60 * 0x1p-24f});
  data::FileArray const swapped(file, {'f', 2}, {4}, 1, data::FileArray::Order::swapped);
  std::vector<float> last(1);
  swapped.read_rows(3, std::span(last));
  CHECK(last[0] == 1);
  data::MappedReads const leave;
  CHECK(halves.mapped(leave).numbers<float>() == halves.numbers<float>());
  CHECK_THROWS_WITH_AS(static_cast<void>(halves.numbers<std::uint16_t>()),
                       doctest::Contains("holds float16, but the requested type is of uint16"), DataError);
}

TEST_CASE("rows are converted from any type that a file can have") {
  TemporaryFolder const folder;
  auto const rows = [&]<class T>(std::vector<T> const& numbers, data::NumberType type) {
    return data::FileArray(file_of(folder / type.name(), bytes_of(numbers)), type, {2, 2}, 0);
  };
  auto const check = [&]<class T>(std::vector<T> const& numbers) {
    auto const array = rows(numbers, data::NumberType::of<T>());
    CAPTURE(array.type().name());
    std::vector<float> row(2);
    array.convert_rows(1, std::span(row));
    CHECK(row == std::vector<float>{3, 4});
    std::vector<std::int32_t> integers(4);
    if constexpr (std::is_integral_v<T>) {
      array.convert_rows(0, std::span(integers));
      CHECK(integers == std::vector<std::int32_t>{1, 2, 3, 4});
    } else {
      CHECK_THROWS_WITH_AS(array.convert_rows(0, std::span(integers)), doctest::Contains("but integers were requested"),
                           DataError);
    }
    CHECK_THROWS_WITH_AS(array.convert_rows(2, std::span(row)), doctest::Contains("has 2 rows"), DataError);
  };
  check(std::vector<std::int8_t>{1, 2, 3, 4});
  check(std::vector<std::int16_t>{1, 2, 3, 4});
  check(std::vector<std::int32_t>{1, 2, 3, 4});
  check(std::vector<std::int64_t>{1, 2, 3, 4});
  check(std::vector<std::uint8_t>{1, 2, 3, 4});
  check(std::vector<std::uint16_t>{1, 2, 3, 4});
  check(std::vector<std::uint32_t>{1, 2, 3, 4});
  check(std::vector<std::uint64_t>{1, 2, 3, 4});
  check(std::vector<float>{1, 2, 3, 4});
  check(std::vector<double>{1, 2, 3, 4});
  std::vector<double> wide(2);
  rows(std::vector<std::uint16_t>{0x3c00, 0xc000, 0x3c00, 0xc000}, {'f', 2}).convert_rows(0, std::span(wide));
  CHECK(wide == std::vector<double>{1, -2});
  std::vector<std::int32_t> integers(2);
  rows(std::vector<std::uint8_t>{1, 0, 1, 1}, data::NumberType::of<bool>()).convert_rows(0, std::span(integers));
  CHECK(integers == std::vector<std::int32_t>{1, 0});
  auto const large = rows(std::vector<std::int64_t>{1, std::int64_t{1} << 31, 2, 3}, {'i', 8});
  CHECK_THROWS_WITH_AS(large.convert_rows(0, std::span(integers)),
                       doctest::Contains("has the number 2147483648, which int32 cannot hold"), DataError);
}

TEST_CASE("integers are read as wider ones that have all of their values, and as no others") {
  using data::NumberType;
  TemporaryFolder const folder;
  auto const file = file_of(folder / "a", "x" + bytes_of(std::vector<std::uint16_t>{0xffff, 1, 0x0100, 7}));
  data::FileArray const tokens(file, NumberType::of<std::uint16_t>(), {2, 2}, 1);
  CHECK(tokens.numbers<std::int32_t>() == std::vector<std::int32_t>{65535, 1, 256, 7});
  CHECK(tokens.numbers<std::uint64_t>() == std::vector<std::uint64_t>{65535, 1, 256, 7});
  std::vector<std::int32_t> row(2);
  tokens.read_rows(1, std::span(row));
  CHECK(row == std::vector<std::int32_t>{256, 7});
  data::FileArray const swapped(file, tokens.type(), {4}, 1, data::FileArray::Order::swapped);
  swapped.read_rows(1, std::span(row));
  CHECK(row == std::vector<std::int32_t>{256, 1});
  data::MappedReads const reads;
  CHECK(tokens.mapped(reads).numbers<std::int32_t>() == tokens.numbers<std::int32_t>());
  data::FileArray const negative(file, NumberType::of<std::int16_t>(), {4}, 1);
  CHECK(negative.numbers<std::int64_t>() == std::vector<std::int64_t>{-1, 1, 256, 7});
  CHECK_THROWS_WITH_AS(static_cast<void>(negative.numbers<std::uint32_t>()),
                       doctest::Contains("holds int16, but the requested type is of uint32"), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(tokens.numbers<std::int16_t>()),
                       doctest::Contains("holds uint16, but the requested type is of int16"), DataError);
  CHECK_THROWS_AS(static_cast<void>(tokens.numbers<std::uint8_t>()), DataError);
  CHECK_THROWS_AS(static_cast<void>(tokens.numbers<float>()), DataError);
  data::FileArray const bools(file_of(folder / "b", std::string("\0\1\1", 3)), NumberType::of<bool>(), {3}, 0);
  CHECK(bools.numbers<std::int32_t>() == std::vector<std::int32_t>{0, 1, 1});
  CHECK_THROWS_AS(static_cast<void>(bools.numbers<std::int8_t>()), DataError);
}

TEST_CASE("several rows, and all rows, are read at once; partial and missing rows are refused") {
  TemporaryFolder const folder;
  std::vector<std::int32_t> const all{1, 2, 3, 4, 5, 6};
  auto const file = file_of(folder / "a", "xyz" + bytes_of(all) + "what follows");
  data::FileArray const array(file, data::NumberType::of<std::int32_t>(), {3, 2}, 3);
  CHECK(array.numbers<std::int32_t>() == all);
  std::vector<std::int32_t> rows(4);
  array.read_rows(1, std::span(rows));
  CHECK(rows == std::vector<std::int32_t>{3, 4, 5, 6});
  array.read_rows(3, std::span(rows).first(0));
  auto const refuses = [&](Index first, std::size_t count, char const* why) {
    CHECK_THROWS_WITH_AS(array.read_rows(first, std::span(rows).first(count)), doctest::Contains(why), DataError);
  };
  refuses(0, 3, "has rows of 2 numbers [3, 2], but 3 numbers were requested");
  refuses(2, 4, "has 3 rows [3, 2], but 2 were requested from row 2");
  refuses(3, 2, "has 3 rows");
  refuses(-1, 2, "from row -1");
  float value = 0;
  CHECK_THROWS_WITH_AS(array.read_rows(0, std::span(&value, 1)),
                       doctest::Contains("holds int32, but the requested type"), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(array.numbers<float>()), doctest::Contains("float32"), DataError);
  data::FileArray const empty(file, array.type(), {0, 2}, 3), narrow(file, array.type(), {3, 0}, 3);
  CHECK(empty.numbers<std::int32_t>().empty());
  CHECK(narrow.numbers<std::int32_t>().empty());
}

TEST_CASE("a reshaped array has the numbers of the array, as rows of another width") {
  TemporaryFolder const folder;
  auto const file = file_of(folder / "a", "xyz" + bytes_of(std::vector<std::int16_t>{1, 2, 3, 4, 5, 6}));
  data::FileArray const array(file, data::NumberType::of<std::int16_t>(), {2, 3}, 3);
  auto const tall = array.reshape({3, 2});
  CHECK(tall.extents() == "[3, 2]");
  std::vector<std::int16_t> row(2);
  tall.read_rows(2, std::span(row));
  CHECK(row == std::vector<std::int16_t>{5, 6});
  CHECK(array.reshape({6}).numbers<std::int16_t>() == array.numbers<std::int16_t>());
  CHECK(array.reshape({1, 3, 2}).width() == 6);
  data::FileArray const swapped(file, array.type(), {2, 3}, 3, data::FileArray::Order::swapped);
  swapped.reshape({6}).read_rows(4, std::span(row));
  CHECK(row == std::vector<std::int16_t>{5 << 8, 6 << 8});
  data::MappedReads const reads;
  array.mapped(reads).reshape({6}).read_rows(1, std::span(row));
  CHECK(row == std::vector<std::int16_t>{2, 3});

  auto const refuses = [&](std::vector<Index> shape, char const* text) {
    CHECK_THROWS_WITH_AS(static_cast<void>(array.reshape(std::move(shape))),
                         doctest::Contains(("has 6 numbers [2, 3], and " + std::string(text)).c_str()), DataError);
  };
  refuses({2, 2}, "[2, 2] has another number of them");
  refuses({7}, "[7] has");
  refuses({-2, -3}, "[-2, -3] has");
  refuses({Index{1} << 40, Index{1} << 40}, "[1099511627776, 1099511627776] has");
  refuses({}, "[] has");
}

TEST_CASE("impossible arrays are refused") {
  TemporaryFolder const folder;
  auto const file = file_of(folder / "a", std::string(40, 'x'));
  auto const make = [&](std::vector<Index> shape, std::uint64_t offset) {
    return data::FileArray(file, f4, std::move(shape), offset).rows();
  };
  CHECK(make({10}, 0) == 10);
  CHECK(make({0, 3}, 40) == 0);
  CHECK_THROWS_WITH_AS(make({11}, 0), doctest::Contains("needs 44 bytes from byte 0, but the file has 40"), DataError);
  CHECK_THROWS_AS(make({1}, 37), DataError);
  CHECK_THROWS_AS(make({1}, std::numeric_limits<std::uint64_t>::max()), DataError);
  CHECK_THROWS_AS(make({}, 0), DataError);
  CHECK_THROWS_WITH_AS(make({2, -1}, 0), doctest::Contains("[2, -1]"), DataError);
  CHECK_THROWS_WITH_AS(make({Index{1} << 40, Index{1} << 40}, 0), doctest::Contains("no memory can hold"), DataError);
  CHECK_THROWS_WITH_AS(data::FileArray(file, f4, {10}, 0).expect_type<double>("member 0"),
                       doctest::Contains("holds float32, but member 0 is of float64"), DataError);
}

TEST_CASE("a file truncated while it is read causes an error that names the reason") {
  TemporaryFolder const folder;
  data::FileArray const array(file_of(folder / "a", std::string(40, 'x')), f4, {10}, 0);
  std::filesystem::resize_file(folder / "a", 10);
  float value = 0;
  array.read_rows(1, std::span(&value, 1));
  CHECK_THROWS_WITH_AS(array.read_rows(2, std::span(&value, 1)), doctest::Contains("ends at byte 10"), DataError);
}

TEST_CASE("errors of a missing file, a closed file and a folder, and the fingerprint") {
  TemporaryFolder const folder;
  write_file(folder / "closed", "abc");
  std::filesystem::permissions(folder / "closed", std::filesystem::perms::none);
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  if (Unprivileged const now; now) {
    CHECK_THROWS_WITH_AS(data::detail::DataFile(folder / "closed"),
                         doctest::Contains("closed: cannot be opened: Permission denied"), DataError);
  }
  CHECK_THROWS_WITH_AS(data::detail::DataFile(folder / "none"), doctest::Contains("cannot be opened"), DataError);
  CHECK_THROWS_WITH_AS(data::detail::DataFile(folder.path().string()),
                       doctest::Contains("is a directory; give a file in it"), DataError);
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  auto few = before;
  few.rlim_cur = 0;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  CHECK_THROWS_WITH_AS(data::detail::DataFile(folder / "closed"),
                       doctest::Contains("Too many open files; raise how many may be open (ulimit -n)"), DataError);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  auto const print = [&](std::string const& bytes, std::vector<Index> shape) {
    return data::FileArray(file_of(folder / "a", bytes), f4, std::move(shape), 0).fingerprint();
  };
  auto const first = print(std::string(40, 'x'), {10});
  CHECK(print(std::string(40, 'x'), {10}) == first);
  CHECK(print(std::string(40, 'x'), {5, 2}) != first);
  CHECK(print(std::string(44, 'x'), {10}) != first);
  CHECK(print(std::string(39, 'x') + "y", {10}) != first);
}
