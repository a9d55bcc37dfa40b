// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/write_npy.hpp>

#include <signal.h>
#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/data/source/open_npy.hpp>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

TEST_CASE("written arrays are read back with equal type, shape and values") {
  TemporaryFolder const folder;
  std::vector<float> const values{1, 2, 3, 4, 5, 6};
  data::write_npy(folder / "a.npy", std::span(values), {3, 2});
  auto const array = data::open_npy(folder / "a.npy");
  CHECK(array.type() == data::NumberType::of<float>());
  CHECK(array.shape() == std::vector<Index>{3, 2});
  CHECK(array.numbers<float>() == values);
  std::vector<std::uint8_t> const bytes{7, 8, 9};
  data::write_npy(folder / "b.npy", std::span(bytes), {3});
  CHECK(data::open_npy(folder / "b.npy").numbers<std::uint8_t>() == bytes);
  data::write_npy(folder / "c.npy", std::span<std::int64_t const>(), {0, 5});
  CHECK(data::open_npy(folder / "c.npy").rows() == 0);
}

TEST_CASE("elements begin at a multiple of 64 bytes, and the header ends with a newline, as numpy writes them") {
  TemporaryFolder const folder;
  std::vector<float> const one{1};
  std::vector<Index> shape;
  for (int axes = 0; axes < 30; ++axes) {
    shape.push_back(1);
    auto const path = folder / std::to_string(axes);
    data::write_npy(path, std::span(one), shape);
    auto const bytes = read_file(path);
    CHECK(bytes.size() % 64 == sizeof(float));
    CHECK(bytes[bytes.size() - sizeof(float) - 1] == '\n');
    CHECK(data::open_npy(path).shape() == shape);
  }
}

TEST_CASE("an invalid shape, an existing file and a missing folder are refused") {
  TemporaryFolder const folder;
  std::vector<float> const values{1, 2, 3};
  CHECK_THROWS_WITH_AS(data::write_npy(folder / "a.npy", std::span(values), {2, 2}),
                       doctest::Contains("shape (2,2,) has 4 elements, not 3"), ShapeError);
  CHECK_THROWS_WITH_AS(data::write_npy(folder / "a.npy", std::span(values).first(1), std::vector<Index>(33, 1)),
                       doctest::Contains("33 axes; numpy reads at most 32"), ShapeError);
  for (auto const& shape : {std::vector<Index>{-3, -1}, std::vector<Index>{Index{1} << 40, Index{1} << 40}})
    CHECK_THROWS_WITH_AS(data::write_npy(folder / "a.npy", std::span(values).first(shape[0] < 0 ? 3 : 0), shape),
                         doctest::Contains("extents are at least 0, and their product fits in 64 bits"), ShapeError);
  write_file(folder / "b.npy", "mine");
  CHECK_THROWS_WITH_AS(data::write_npy(folder / "b.npy", std::span(values), {3}), doctest::Contains("exists already"),
                       DataError);
  CHECK(read_file(folder / "b.npy") == "mine");
  CHECK_THROWS_WITH_AS(
      data::write_npy(folder / "none/c.npy", std::span(values), {3}),
      doctest::Contains("none/c.npy: cannot create the file: No such file or directory; make its folder"), DataError);
}

TEST_CASE("a file that cannot be written to its end is absent, and the error names file and cause") {
  TemporaryFolder const folder;
  std::vector<float> const values(10000, 1);
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto tight = before;
  tight.rlim_cur = 20000;
  auto* const handler = ::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &tight) == 0);
  std::string message;
  try {
    data::write_npy(folder / "a.npy", std::span(values), {10000});
  } catch (DataError const& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  CHECK(message.find("a.npy: cannot write the file: File too large") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder.path()));
  data::write_npy(folder / "a.npy", std::span(values), {10000});
  CHECK(data::open_npy(folder / "a.npy").rows() == 10000);
}
