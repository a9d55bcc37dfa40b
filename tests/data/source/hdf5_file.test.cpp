// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/hdf5_file.hpp>

#include <sys/file.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "hdf5_writer.hpp"
#include "python.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

std::vector<float> counted(std::size_t count) {
  std::vector<float> out(count);
  std::iota(out.begin(), out.end(), 0.5f);
  return out;
}

using Numbers = std::vector<float>;

}  // namespace

TEST_CASE("datasets of every layout have equal numbers") {
  TemporaryFolder const folder;
  auto const path = folder / "data.h5";
  auto const numbers = counted(70);
  {
    Hdf5Writer const file(path);
    file.add("contiguous", numbers, {10, 7});
    file.add("chunked", numbers, {10, 7}, Hdf5Layout::chunked);
    file.add("compressed", numbers, {10, 7}, Hdf5Layout::compressed);
    file.add("compact", numbers, {10, 7}, Hdf5Layout::compact);
  }
  data::MappedReads const mapped_reads;
  data::Hdf5File const file(path);
  CHECK(file.path() == path);
  CHECK(file.names() == std::vector<std::string>{"chunked", "compact", "compressed", "contiguous"});
  for (auto const& name : file.names()) {
    CAPTURE(name);
    CHECK(file.shape(name) == std::vector<Index>{10, 7});
    auto const array = file.array(name);
    CHECK(array.shape() == std::vector<Index>{10, 7});
    CHECK(array.path() == path);
    CHECK(array.numbers<float>() == numbers);
    CHECK(array.mapped(mapped_reads).numbers<float>() == numbers);
    Numbers row(7);
    array.read_rows(3, std::span(row));
    CHECK(row == Numbers(numbers.begin() + 21, numbers.begin() + 28));
    CHECK(array.fingerprint() == data::open_hdf5(path, name).fingerprint());
  }
}

TEST_CASE("numbers in place follow a block of the user at the file's beginning") {
  TemporaryFolder const folder;
  auto const path = folder / "data.mat";
  {
    Hdf5Writer const file(path, 1024);
    file.add("x", counted(6), {3, 2});
    file.add("y", counted(6), {6}, Hdf5Layout::compressed);
  }
  CHECK(data::open_hdf5(path, "x").numbers<float>() == counted(6));
  CHECK(data::open_hdf5(path, "y").numbers<float>() == counted(6));
}

TEST_CASE("element types are those of the file, in both byte orders") {
  TemporaryFolder const folder;
  auto const path = folder / "data.h5";
  std::array<std::int16_t, 3> const integers{-300, 0, 511};
  std::array<std::int8_t, 3> const flags{1, 0, 1};
  std::array<std::uint16_t, 3> const halves{0x3C00, 0xC000, 0x3555}, brains{0x3F80, 0xC000, 0x4049};
  std::array<double, 3> const reals{0.1, -1e300, 3};
  {
    Hdf5Writer const file(path);
    file.add("i", H5T_STD_I16LE, H5T_NATIVE_INT16, integers.data(), {3});
    for (auto const layout : {Hdf5Layout::contiguous, Hdf5Layout::chunked})
      file.add(layout == Hdf5Layout::chunked ? "swapped chunked" : "swapped", H5T_STD_I16BE, H5T_NATIVE_INT16,
               integers.data(), {3}, layout);
    file.add("d", H5T_IEEE_F64BE, H5T_NATIVE_DOUBLE, reals.data(), {3});
    auto const boolean = ::H5Tenum_create(H5T_NATIVE_INT8);  // as h5py writes it
    for (std::int8_t value = 0; value < 2; ++value) ::H5Tenum_insert(boolean, value == 0 ? "FALSE" : "TRUE", &value);
    file.add("b", boolean, boolean, flags.data(), {3});
    auto const colour = ::H5Tenum_create(H5T_NATIVE_UINT8);
    for (std::uint8_t value = 0; value < 2; ++value) ::H5Tenum_insert(colour, value == 0 ? "RED" : "BLUE", &value);
    file.add("enum", colour, colour, flags.data(), {3});
    for (bool const brain : {false, true}) {
      auto const half = ::H5Tcopy(H5T_IEEE_F32LE);
      if (brain) {
        ::H5Tset_fields(half, 15, 7, 8, 0, 7);
      } else {
        ::H5Tset_fields(half, 15, 10, 5, 0, 10);
      }
      ::H5Tset_size(half, 2);
      ::H5Tset_ebias(half, brain ? 127 : 15);
      file.add(brain ? "brain" : "half", half, half, (brain ? brains : halves).data(), {3});
      ::H5Tclose(half);
    }
    ::H5Tclose(boolean);
    ::H5Tclose(colour);
  }
  data::Hdf5File const file(path);
  std::vector<std::int16_t> const expected(integers.begin(), integers.end());
  for (auto const* name : {"i", "swapped", "swapped chunked"})
    CHECK(file.array(name).numbers<std::int16_t>() == expected);
  CHECK(file.array("d").numbers<double>() == std::vector<double>{0.1, -1e300, 3});
  CHECK(file.type("b").name() == "bool");
  CHECK(file.array("b").type().name() == "bool");
  CHECK(file.array("b").numbers<std::uint8_t>() == std::vector<std::uint8_t>{1, 0, 1});
  CHECK(file.array("enum").type().name() == "uint8");
  CHECK(file.array("half").type().name() == "float16");
  CHECK(file.array("half").numbers<float>() == Numbers{1, -2, 0.333251953125f});
  CHECK(file.array("brain").type().name() == "bfloat16");
  CHECK(file.array("brain").numbers<float>() == Numbers{1, -2, 3.140625f});
}

TEST_CASE("a dataset that was never written has its fill value, and one without rows is empty") {
  TemporaryFolder const folder;
  auto const path = folder / "data.h5";
  {
    Hdf5Writer const file(path);
    file.add("never", H5T_IEEE_F32LE, -1, nullptr, {4, 2});
    file.add("empty", H5T_IEEE_F32LE, -1, nullptr, {0, 2});
  }
  CHECK(data::open_hdf5(path, "never").numbers<float>() == Numbers(8));
  CHECK(data::open_hdf5(path, "empty").rows() == 0);
  CHECK(data::open_hdf5(path, "empty").width() == 2);
}

TEST_CASE("datasets within groups have paths as names, and strings are read as such") {
  TemporaryFolder const folder;
  auto const path = folder / "data.h5";
  {
    Hdf5Writer const file(path);
    file.group("episode_0");
    file.add("episode_0/actions", counted(2), {2});
    auto const text = ::H5Tcopy(H5T_C_S1);
    ::H5Tset_size(text, H5T_VARIABLE);
    std::array<char const*, 3> const words{"ab", "K\xc3\xb6ln", ""};
    file.add("words", text, text, words.data(), {3});
    std::array<char const*, 1> const latin{"K\xf6ln"};
    file.add("latin", text, text, latin.data(), {1});
    auto const three = ::H5Tcopy(H5T_C_S1);
    ::H5Tset_size(three, 3);
    file.add("fixed", three, three, "abcd\0", {2});
    ::H5Tclose(three);
    ::H5Tclose(text);
  }
  data::Hdf5File const file(path);
  CHECK(file.names() == std::vector<std::string>{"episode_0/actions", "fixed", "latin", "words"});
  CHECK(file.has("episode_0/actions"));
  CHECK(file.has("/episode_0/actions"));
  CHECK(!file.has("episode_0"));
  CHECK(!file.has("episode_1/actions"));
  CHECK(file.array("episode_0/actions").numbers<float>() == counted(2));
  CHECK(file.strings("words") == std::vector<std::string>{"ab", "K\xc3\xb6ln", ""});
  CHECK(file.strings("fixed") == std::vector<std::string>{"abc", "d"});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(file.strings("latin")),
      doctest::Contains("data.h5: dataset \"latin\" has a string that is not UTF-8: number 0, at byte 1"), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(file.array("words")),
                       doctest::Contains("dataset \"words\" holds strings; read them with strings(name)"), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(file.strings("episode_0/actions")), doctest::Contains("holds no strings"),
                       DataError);
}

TEST_CASE("an unreadable file or dataset is an error that names it") {
  TemporaryFolder const folder;
  auto const path = folder / "data.h5";
  {
    Hdf5Writer const other(folder / "other.h5");
    other.add("x", counted(3), {3});
    Hdf5Writer const file(path);
    file.add("x", counted(3), {3});
    file.add("single", counted(1), {});
    file.add("virtual", H5T_IEEE_F32LE, -1, nullptr, {3}, Hdf5Layout::virtual_copy);
    auto const pair = ::H5Tcreate(H5T_COMPOUND, 8);
    ::H5Tinsert(pair, "a", 0, H5T_NATIVE_FLOAT);
    ::H5Tinsert(pair, "b", 4, H5T_NATIVE_FLOAT);
    file.add("pairs", pair, pair, counted(2).data(), {1});
    ::H5Tclose(pair);
    auto const twelve_bits = ::H5Tcopy(H5T_STD_I16LE);
    ::H5Tset_precision(twelve_bits, 12);
    file.add("twelve", twelve_bits, -1, nullptr, {1});
    ::H5Tclose(twelve_bits);
    file.link("other.h5", "/x", "linked");
  }
  data::Hdf5File const file(path);
  auto const refusal = [&](char const* name) {
    try {
      static_cast<void>(file.array(name));
    } catch (DataError const& error) {
      return std::string(error.what()).substr(path.size());
    }
    return std::string();
  };
  CHECK(refusal("y") == ": has no dataset \"y\" among its 5; did you mean \"x\"?");
  CHECK(refusal("single") == ": dataset \"single\" is a single value; an array of rows is needed");
  CHECK(refusal("virtual").starts_with(": dataset \"virtual\" has its numbers in other files"));
  CHECK(refusal("pairs").starts_with(": dataset \"pairs\" has elements that are no integers, bools or floats of C++"));
  CHECK(refusal("twelve").starts_with(": dataset \"twelve\" has elements that are no integers"));
  CHECK(refusal("linked").starts_with(": dataset \"linked\" is a link to the file "));

  write_file(folder / "text.h5", "hello");
  CHECK_THROWS_WITH_AS(data::Hdf5File(folder / "text.h5"),
                       doctest::Contains("text.h5: cannot be opened as an HDF5 file: "), DataError);
  write_file(folder / "cut.h5", read_file(path).substr(0, 3000));
  CHECK_THROWS_WITH_AS(data::Hdf5File(folder / "cut.h5"), doctest::Contains("truncated file"), DataError);
  CHECK_THROWS_WITH_AS(data::Hdf5File(folder / "none.h5"), doctest::Contains("none.h5: cannot be opened: No such file"),
                       DataError);
}

TEST_CASE("the file is not locked: it can be read while another process holds a lock") {
  TemporaryFolder const folder;
  auto const path = folder / "data.h5";
  { Hdf5Writer(path).add("x", counted(3), {3}); }
  FileDescriptor const holder(path);
  REQUIRE(::flock(holder.get(), LOCK_EX | LOCK_NB) == 0);
  CHECK(data::open_hdf5(path, "x").numbers<float>() == counted(3));
}

TEST_CASE("threads read one file at once") {
  TemporaryFolder const folder;
  auto const path = folder / "data.h5";
  {
    Hdf5Writer const file(path);
    file.add("contiguous", counted(3000), {1000, 3});
    file.add("compressed", counted(3000), {1000, 3}, Hdf5Layout::compressed);
  }
  data::Hdf5File const file(path);
  std::array<bool, 4> right{};
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < right.size(); ++i)
      threads.emplace_back([&, i] {
        right[i] = true;
        for (int turn = 0; turn < 10; ++turn)
          right[i] = right[i] && file.array(i % 2 == 0 ? "contiguous" : "compressed").numbers<float>() == counted(3000);
      });
  }
  CHECK(right == std::array<bool, 4>{true, true, true, true});
}

TEST_CASE("a dataset that does not fit memory is refused before it is read") {
  TemporaryFolder const folder;
  auto const path = folder / "data.h5";
  {
    Hdf5Writer const file(path);
    ::hsize_t const rows = ::hsize_t{1} << 44;
    file.add("huge", H5T_IEEE_F32LE, -1, nullptr, {rows}, Hdf5Layout::chunked);
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(data::open_hdf5(path, "huge")),
                       doctest::Contains("make \"huge\" contiguous, which is read in place: h5repack -l huge:CONTI"),
                       OutOfMemoryError);
}

TEST_CASE("strings that fit neither memory nor the file are refused before they are read") {
  TemporaryFolder const folder;
  auto const path = folder / "data.h5";
  {
    Hdf5Writer const file(path);
    auto const variable = ::H5Tcopy(H5T_C_S1), eight = ::H5Tcopy(H5T_C_S1);
    ::H5Tset_size(variable, H5T_VARIABLE);
    ::H5Tset_size(eight, 8);
    auto const none = [&](char const* name, ::hid_t type, std::vector<::hsize_t> const& extents) {
      file.add(name, type, -1, nullptr, extents, Hdf5Layout::chunked);
    };
    none("variable", variable, {::hsize_t{1} << 44});
    none("fixed", eight, {::hsize_t{1} << 44});
    none("overflowing bytes", eight, {::hsize_t{1} << 61});
    none("overflowing count", eight, {::hsize_t{1} << 32, ::hsize_t{1} << 32});
    ::H5Tclose(variable);
    ::H5Tclose(eight);
  }
  data::Hdf5File const file(path);
  for (auto const* name : {"variable", "fixed"})
    CHECK_THROWS_WITH_AS(static_cast<void>(file.strings(name)),
                         doctest::Contains((std::string("dataset \"") + name + "\": out of memory").c_str()),
                         OutOfMemoryError);
  for (auto const* name : {"overflowing bytes", "overflowing count"})
    CHECK_THROWS_WITH_AS(static_cast<void>(file.strings(name)),
                         doctest::Contains("has extents that no memory can hold; the file is damaged"), DataError);
}

TEST_CASE("an enum whose size is not that of its numbers is refused") {
  TemporaryFolder const folder;
  auto const path = folder / "data.h5";
  {
    Hdf5Writer const file(path);
    auto const colour = ::H5Tenum_create(H5T_STD_U16LE);
    for (std::uint16_t value = 0; value < 2; ++value) ::H5Tenum_insert(colour, value == 0 ? "RED" : "BLUE", &value);
    file.add("x", colour, -1, nullptr, {3});
    ::H5Tclose(colour);
  }
  auto bytes = read_file(path);
  auto const at = bytes.find(std::string("\x18\x02\0\0\x02\0\0\0\x10", 9));  // class, two members, size; its numbers
  REQUIRE(at != std::string::npos);
  bytes[at + 4] = 1;
  write_file(path, bytes);
  CHECK_THROWS_AS(static_cast<void>(data::open_hdf5(path, "x")), DataError);
}

TEST_CASE("files of h5py are read, and a missing filter is named") {
  if (!has_python_module("h5py")) return;
  TemporaryFolder const folder;
  auto const path = folder / "data.h5";
  write_file(
      folder / "write.py",
      "import h5py, numpy\n"
      "with h5py.File('" +
          path +
          "', 'w', libver=('earliest', 'v110')) as file:\n"
          "  file['flags'] = numpy.array([True, False])\n"
          "  file['half'] = numpy.arange(4, dtype='f2')\n"
          "  file['words'] = ['ab', 'K\xc3\xb6ln']\n"
          "  file.create_dataset('gzip', data=numpy.arange(600, dtype='>i4').reshape(200, 3), compression='gzip', "
          "shuffle=True, fletcher32=True)\n"
          "  file.create_dataset('lzf', data=numpy.zeros(1000), compression='lzf')\n");
  REQUIRE(std::system(("'" + python() + "' '" + folder / "write.py" + "'").c_str()) == 0);
  data::Hdf5File const file(path);
  CHECK(file.array("flags").numbers<std::uint8_t>() == std::vector<std::uint8_t>{1, 0});
  CHECK(file.array("half").numbers<float>() == Numbers{0, 1, 2, 3});
  CHECK(file.strings("words") == std::vector<std::string>{"ab", "K\xc3\xb6ln"});
  std::vector<std::int32_t> expected(600);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(file.array("gzip").numbers<std::int32_t>() == expected);
  CHECK_THROWS_WITH_AS(static_cast<void>(file.array("lzf")), doctest::Contains("dataset \"lzf\" cannot be read: "),
                       DataError);
}
