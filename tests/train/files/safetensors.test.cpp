// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/files/safetensors.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <lockstep/core/clock.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;
using lockstep_test::TemporaryFolder;

namespace {
struct Model {
  nn::Parameter weight{{2, 3}, {}}, bias{{2}, {}};
  void visit(auto&& each) { each("weight", weight), each("bias", bias); }
};
struct Wider {
  nn::Parameter weight{{2, 4}, {}}, bias{{2}, {}};
  void visit(auto&& each) { each("weight", weight), each("bias", bias); }
};
struct Taller {
  nn::Parameter weight{{4, 3}, {}}, bias{{4}, {}};
  nn::Buffer mean{{5}};
  void visit(auto&& each) { each("head.weight", weight), each("head.bias", bias), each("norm.mean", mean); }
};
struct Head {
  nn::Parameter weight{{2, 3}, {}}, bias{{2}, {}};
  nn::Buffer mean{{3}};
  void visit(auto&& each) { each("head.weight", weight), each("head.bias", bias), each("norm.mean", mean); }
};
struct Long {
  nn::Parameter all{{150'001}, {}};
  void visit(auto&& each) { each("all", all); }
};
struct Other {
  nn::Parameter scale{{1}, {}};
  void visit(auto&& each) { each("scale", scale); }
};
struct Many {
  std::vector<nn::Parameter> layers = std::vector<nn::Parameter>(20000, {{1}, {}});
  void visit(auto&& each) {
    for (std::size_t i = 0; i < layers.size(); ++i) each("layer." + std::to_string(i), layers[i]);
  }
};
template <class M>
struct Arena {
  M model;
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  std::vector<float> values = std::vector<float>(static_cast<std::size_t>(layout.size()), 0.0f);
};
Arena<Model> filled() {
  Arena<Model> arena;
  for (int i = 0; i < 6; ++i)
    arena.values[static_cast<std::size_t>(arena.model.weight.offset + i)] = static_cast<float>(i) / 3;
  arena.values[static_cast<std::size_t>(arena.model.bias.offset)] = -1;
  return arena;
}
struct Normalised {
  nn::Parameter weight{{2}, {}};
  nn::Buffer mean{{3}}, variance{{3}, nn::Initializer::constant(1)};
  void visit(auto&& each) { each("weight", weight), each("mean", mean), each("variance", variance); }
};
/// Returns the bytes of a file with this header and this many data bytes.
std::string file_of(std::string const& header, std::size_t data, std::uint64_t claimed) {
  std::string bytes(reinterpret_cast<char const*>(&claimed), sizeof claimed);
  return bytes + header + std::string(data, '\0');
}
}  // namespace

TEST_CASE("saved tensors are loaded bit-identically, with their metadata") {
  TemporaryFolder folder;
  auto const saved = filled();
  train::save_parameters(folder / "p.safetensors", saved.layout, saved.values,
                         {{"vocabulary", "a\n\"b\"\nü"}, {"classes", "x"}});
  Arena<Model> loaded;
  auto const metadata = train::load_parameters(folder / "p.safetensors", loaded.layout, loaded.values);
  CHECK(loaded.values == saved.values);
  CHECK(metadata == train::Metadata{{"vocabulary", "a\n\"b\"\nü"}, {"classes", "x"}});
  CHECK(folder.entries() == 1);
}

TEST_CASE("the file follows the format: length, header, tensors in forward order without padding") {
  TemporaryFolder folder;
  auto const saved = filled();
  train::save_parameters(folder / "p", saved.layout, saved.values);
  auto const bytes = lockstep_test::read_file(folder / "p");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  CHECK(length % 8 == 0);
  CHECK(bytes.size() == 8 + length + 8 * sizeof(float));
  auto const header = json::parse(bytes.substr(8, length), "header");
  CHECK(header.at("weight").at("dtype").string() == "F32");
  CHECK(header.at("weight").at("shape").at(std::size_t{1}).integer() == 3);
  CHECK(header.at("bias").at("data_offsets").at(std::size_t{0}).integer() == 24);
  float third = 0;
  std::memcpy(&third, bytes.data() + 8 + length + 4, sizeof third);
  CHECK(third == 1.0f / 3);
}

TEST_CASE("a changed bit is noticed anywhere in the file, and nothing is loaded") {
  TemporaryFolder folder;
  auto const saved = filled();
  train::save_parameters(folder / "p", saved.layout, saved.values, {{"text", std::string(40, '0')}});
  auto const bytes = lockstep_test::read_file(folder / "p");
  Arena<Model> loaded;
  for (std::size_t bit = 0; bit < 8 * 8 * sizeof(float); ++bit) {
    auto damaged = bytes;
    auto& byte = damaged[bytes.size() - 1 - bit / 8];
    byte = static_cast<char>(byte ^ 1 << (bit % 8));
    lockstep_test::write_file(folder / "p", damaged);
    REQUIRE_THROWS_WITH_AS(train::load_parameters(folder / "p", loaded.layout, loaded.values),
                           doctest::Contains(bit < 64 ? "p: parameter \"bias\" does not have the checksum that it was"
                                                      : "p: parameter \"weight\" does not have the checksum"),
                           DataError);
  }
  CHECK(loaded.values == std::vector<float>(loaded.values.size(), 0.0f));
}

TEST_CASE("many parameters are saved and loaded") {  // minutes, if each name were searched among all
  TemporaryFolder folder;
  Arena<Many> saved;
  for (std::size_t i = 0; i < saved.values.size(); ++i) saved.values[i] = i % 16 == 0 ? static_cast<float>(i) : 0;
  train::save_parameters(folder / "p", saved.layout, saved.values);
  Arena<Many> loaded;
  train::load_parameters(folder / "p", loaded.layout, loaded.values);
  CHECK(loaded.values == saved.values);
}

TEST_CASE("every element of a tensor that is read in parts gets its place") {
  TemporaryFolder folder;
  Arena<Long> saved, loaded;
  for (std::size_t i = 0; i < 150'001; ++i) saved.values[i] = static_cast<float>(i % 2048);
  train::save_parameters(folder / "p", saved.layout, saved.values);
  train::load_parameters(folder / "p", loaded.layout, loaded.values);
  CHECK(loaded.values == saved.values);
  auto const load = [&](char const* type, auto number) {
    std::string data;
    for (float const value : saved.values) {
      auto const as = static_cast<decltype(number)>(value);
      data.append(reinterpret_cast<char const*>(&as), sizeof as);
    }
    data.resize(static_cast<std::size_t>(saved.model.all.size()) * sizeof number);
    auto const header = std::string("{\"all\":{\"dtype\":\"") + type + "\",\"shape\":[150001],\"data_offsets\":[0," +
                        std::to_string(data.size()) + "]}}";
    lockstep_test::write_file(folder / "p", file_of(header, 0, header.size()) + data);
    std::fill(loaded.values.begin(), loaded.values.end(), 0.0f);
    train::load_parameters(folder / "p", loaded.layout, loaded.values);
    CHECK(loaded.values == saved.values);
  };
  load("F64", double{});
  load("F16", float16{});
}

TEST_CASE("only the requested tensors of a file are in memory") {
  TemporaryFolder folder;
  Arena<Other> other;
  constexpr std::uint64_t rest = std::uint64_t{1} << 40;  // larger than the memory, and not on the disk
  auto const header =
      "{\"scale\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"rest\":{\"dtype\":\"F32\","
      "\"shape\":[" +
      std::to_string(rest / 4) + "],\"data_offsets\":[4," + std::to_string(rest + 4) + "]}}";
  auto bytes = file_of(header, 4, header.size());
  float const value = 3;
  std::memcpy(&bytes[bytes.size() - 4], &value, 4);
  lockstep_test::write_file(folder / "p", bytes);
  std::filesystem::resize_file(folder / "p", bytes.size() + rest);
  train::load_parameters(folder / "p", other.layout, other.values);
  CHECK(other.values[0] == 3);
}

TEST_CASE("a program that changes tensors leaves out the checksums") {
  TemporaryFolder folder;
  auto const saved = filled();
  train::save_parameters(folder / "p", saved.layout, saved.values);
  auto bytes = lockstep_test::read_file(folder / "p");
  bytes.back() = 0x40;
  bytes.replace(bytes.find("lockstep.checksums"), 8, "anothers");
  lockstep_test::write_file(folder / "p", bytes);
  Arena<Model> loaded;
  train::load_parameters(folder / "p", loaded.layout, loaded.values);
  CHECK(loaded.values[static_cast<std::size_t>(loaded.model.bias.offset) + 1] == 2);
}

TEST_CASE("fewer rows are loaded as the first ones of a part that may have new rows; the others keep their values") {
  TemporaryFolder folder;
  Arena<Head> saved;
  for (int i = 0; i < 6; ++i)
    saved.values[static_cast<std::size_t>(saved.model.weight.offset + i)] = static_cast<float>(1 + i);
  saved.values[static_cast<std::size_t>(saved.model.bias.offset)] = -1;
  saved.values[static_cast<std::size_t>(saved.model.bias.offset) + 1] = -2;
  std::vector<float> means(static_cast<std::size_t>(saved.layout.buffer_size()));
  std::ranges::copy(std::vector<float>{7, 8, 9}, means.begin());
  train::save_parameters(folder / "p", saved.layout, saved.values, {}, means);
  Arena<Taller> tall;
  std::vector<float> buffers(static_cast<std::size_t>(tall.layout.buffer_size()), 0.5f);
  std::ranges::fill(tall.values, 0.25f);
  auto const before = tall.values;
  auto const load = [&](train::NamesInFile const& names) {
    train::load_parameters(folder / "p", tall.layout, tall.values, buffers, names);
  };
  CHECK_THROWS_WITH_AS(
      load({}),
      doctest::Contains("\"head.weight\" has shape [2, 3]; the model needs [4, 3]: make it with the sizes "
                        "of the run that saved it, such as the same vocabulary; a trainer can load "
                        "these rows as the first of more, by NamesInFile().with_new_rows(\"head.\")"),
      DataError);
  auto const head = train::NamesInFile().with_new_rows("head.");
  CHECK_THROWS_WITH_AS(load(head), doctest::Contains("\"norm.mean\" has shape [3]; the model needs [5]"), DataError);
  CHECK(tall.values == before);
  load(head.with_new_rows("norm."));
  auto const part = [&](auto const& tensor, std::vector<float> const& from) {
    return std::vector<float>(from.begin() + tensor.offset, from.begin() + tensor.offset + tensor.size);
  };
  CHECK(part(tall.layout.entries()[0], tall.values) ==
        std::vector<float>{1, 2, 3, 4, 5, 6, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f});
  CHECK(part(tall.layout.entries()[1], tall.values) == std::vector<float>{-1, -2, 0.25f, 0.25f});
  CHECK(part(tall.layout.buffers()[0], buffers) == std::vector<float>{7, 8, 9, 0.5f, 0.5f});

  // Equal rows are read as usual. More rows in the file, or other columns, remain errors.
  Arena<Head> equal;
  std::vector<float> three(means.size());
  train::load_parameters(folder / "p", equal.layout, equal.values, three, train::NamesInFile().with_new_rows(""));
  CHECK(equal.values == saved.values);
  train::save_parameters(folder / "tall", tall.layout, tall.values, {}, buffers);
  CHECK_THROWS_WITH_AS(train::load_parameters(folder / "tall", equal.layout, equal.values, three,
                                              train::NamesInFile().with_new_rows("")),
                       doctest::Contains("\"head.weight\" has shape [4, 3]; the model needs [2, 3]"), DataError);
  train::save_parameters(folder / "q", filled().layout, filled().values);
  Arena<Wider> wider;
  CHECK_THROWS_WITH_AS(
      train::load_parameters(folder / "q", wider.layout, wider.values, {}, train::NamesInFile().with_new_rows("")),
      doctest::Contains("parameter \"weight\" has shape [2, 3]; the model needs [2, 4]"), DataError);
  auto bytes = lockstep_test::read_file(folder / "p");  // changed bits of a part are found
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  lockstep_test::write_file(folder / "p", bytes);
  CHECK_THROWS_WITH_AS(load(head.with_new_rows("norm.")), doctest::Contains("checksum"), DataError);
}

TEST_CASE("another model's parameters are refused by name, and nothing is changed") {
  TemporaryFolder folder;
  auto const saved = filled();
  train::save_parameters(folder / "p", saved.layout, saved.values);
  Arena<Wider> wider;
  CHECK_THROWS_WITH_AS(train::load_parameters(folder / "p", wider.layout, wider.values),
                       doctest::Contains("parameter \"weight\" has shape [2, 3]; the model needs [2, 4]"), DataError);
  CHECK(wider.values == std::vector<float>(wider.values.size(), 0.0f));
  Arena<Other> other;
  CHECK_THROWS_WITH_AS(train::load_parameters(folder / "p", other.layout, other.values),
                       doctest::Contains("has no parameter \"scale\""), DataError);
  auto bytes = lockstep_test::read_file(folder / "p");  // its second parameter is another model's
  bytes.replace(bytes.rfind("bias"), 4, "gain");
  lockstep_test::write_file(folder / "p", bytes);
  Arena<Model> half;
  CHECK_THROWS_WITH_AS(train::load_parameters(folder / "p", half.layout, half.values),
                       doctest::Contains("has no parameter \"bias\""), DataError);
  CHECK(half.values == std::vector<float>(half.values.size(), 0.0f));
}

TEST_CASE("shapes that differ in extents of 1 have equal numbers, and 64 bits become 32") {
  TemporaryFolder folder;
  Arena<Model> model;  // weight [2, 3], bias [2]
  std::vector<double> const numbers{1, 2, 3, 4, 5, 6, 7, 8};
  std::string const header =
      "{\"weight\":{\"dtype\":\"F64\",\"shape\":[2,3,1,1],\"data_offsets\":[0,48]},"
      "\"bias\":{\"dtype\":\"F64\",\"shape\":[1,2],\"data_offsets\":[48,64]}}";
  auto bytes = file_of(header, 64, header.size());
  std::memcpy(&bytes[bytes.size() - 64], numbers.data(), 64);
  lockstep_test::write_file(folder / "p", bytes);
  train::load_parameters(folder / "p", model.layout, model.values);
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(model.values[static_cast<std::size_t>(model.model.weight.offset) + i] == static_cast<float>(i + 1));
  CHECK(model.values[static_cast<std::size_t>(model.model.bias.offset)] == 7);
  double const large = 1e300;
  std::memcpy(&bytes[bytes.size() - 8], &large, 8);
  lockstep_test::write_file(folder / "p", bytes);
  auto const before = model.values;
  CHECK_THROWS_WITH_AS(train::load_parameters(folder / "p", model.layout, model.values),
                       doctest::Contains("beyond the range of float32"), DataError);
  CHECK(model.values == before);
}

TEST_CASE("16-bit parameters are read as floats") {
  TemporaryFolder folder;
  Arena<Other> other;
  auto const load = [&](std::string const& type, std::uint16_t bits) {
    auto const header = "{\"scale\":{\"dtype\":\"" + type + "\",\"shape\":[1],\"data_offsets\":[0,2]}}";
    auto bytes = file_of(header, 2, header.size());
    std::memcpy(&bytes[bytes.size() - 2], &bits, 2);
    lockstep_test::write_file(folder / "p", bytes);
    train::load_parameters(folder / "p", other.layout, other.values);
    return other.values[0];
  };
  CHECK(load("F16", 0xc200) == -3);
  CHECK(load("BF16", 0x4170) == 15);
}

TEST_CASE("64-bit integers are read as floats if these are exact") {
  TemporaryFolder folder;
  Arena<Other> other;
  auto const load = [&](std::int64_t number) {
    std::string const header = R"({"scale":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})";
    auto bytes = file_of(header, 8, header.size());
    std::memcpy(&bytes[bytes.size() - 8], &number, 8);
    lockstep_test::write_file(folder / "p", bytes);
    train::load_parameters(folder / "p", other.layout, other.values);
    return other.values[0];
  };
  constexpr std::int64_t most = std::int64_t{1} << 24;
  for (std::int64_t const number : {std::int64_t{0}, std::int64_t{-7}, most, -most})
    CHECK(load(number) == static_cast<float>(number));
  for (std::int64_t const number : {most + 1, -most - 1})
    CHECK_THROWS_WITH_AS(load(number), doctest::Contains("\"scale\" has the integer "), DataError);
  CHECK(other.values[0] == static_cast<float>(-most));
}

TEST_CASE("metadata of other programs that are no strings do not matter to the parameters") {
  TemporaryFolder folder;
  Arena<Other> other;
  std::string const header =
      R"({"__metadata__":{"step":7,"format":"pt","more":{"a":null}},"scale":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  auto bytes = file_of(header, 4, header.size());
  float const value = 3;
  std::memcpy(&bytes[bytes.size() - 4], &value, 4);
  lockstep_test::write_file(folder / "p", bytes);
  train::load_parameters(folder / "p", other.layout, other.values);
  CHECK(other.values[0] == 3);
  CHECK(train::load_text(folder / "p", "format") == "pt");
  CHECK_THROWS_WITH_AS(static_cast<void>(train::load_text(folder / "p", "step")),
                       doctest::Contains("no string \"step\" was saved"), DataError);
}

TEST_CASE("damaged and hostile files are refused with a sentence, and no byte beyond their end is read") {
  TemporaryFolder folder;
  auto const path = folder / "p";
  Arena<Other> other;
  auto refuses = [&](std::string const& bytes, char const* message) {
    lockstep_test::write_file(path, bytes);
    CHECK_THROWS_WITH_AS(train::load_parameters(path, other.layout, other.values), doctest::Contains(message),
                         DataError);
  };
  auto tensor = [](std::string const& offsets, std::string const& type = "F32") {
    return "{\"scale\":{\"dtype\":\"" + type + "\",\"shape\":[1],\"data_offsets\":" + offsets + "}}";
  };
  auto whole = [&](std::string const& header) { return file_of(header, 4, header.size()); };
  refuses("", "0 bytes");
  refuses("abc", "3 bytes");
  refuses(file_of("{}", 0, 3), "claims 3 bytes");
  refuses(file_of("{}", 0, ~std::uint64_t{0}), "claims 18446744073709551615 bytes");
  refuses(whole("{"), "p");
  refuses(whole("[]"), "an object is needed");
  refuses(whole("{}"), "no parameter \"scale\"");
  refuses(whole(tensor("[0,4]", "I32")), "is of type I32; F32, F16, BF16, F64 or I64 is needed");
  refuses(whole(tensor("[0,4]", "F16")), "[0, 4) of 4; 2 bytes inside the file are needed");
  refuses(whole(tensor("[4,8]")), "[4, 8), and the file ends with 4: it is cut off");
  refuses(whole(tensor("[-4,0]")), "[-4, 0)");
  refuses(whole(tensor("[4,-9223372036854775808]")), "inside the file");
  refuses(whole(tensor("[0,5]")), "[0, 5)");
  refuses(whole(tensor("[0,3]")), "[0, 3)");
  refuses(whole(tensor("[0]")), "element 1");
  lockstep_test::write_file(path, whole(tensor("[0,4]")));
  train::load_parameters(path, other.layout, other.values);  // the control
  CHECK_THROWS_WITH_AS(train::load_parameters(folder / "none", other.layout, other.values),
                       doctest::Contains("cannot be opened"), DataError);
  CHECK_THROWS_WITH_AS(train::load_parameters(folder / "", other.layout, other.values), doctest::Contains("cannot be"),
                       DataError);
}

TEST_CASE("tensors with common bytes, gaps and bytes of no tensor are refused, and nothing is loaded") {
  TemporaryFolder folder;
  Arena<Model> model;  // weight [2, 3], bias [2]
  auto const refuses = [&](char const* bias, std::size_t bytes, char const* why) {
    auto const header =
        R"({"weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"bias":{"dtype":"F32","shape":[2],)"
        R"("data_offsets":)" +
        std::string(bias) + "}}";
    lockstep_test::write_file(folder / "p", file_of(header, 0, header.size()) + std::string(bytes, '\1'));
    CHECK_THROWS_WITH_AS(train::load_parameters(folder / "p", model.layout, model.values), doctest::Contains(why),
                         DataError);
  };
  refuses("[16,24]", 24, "the tensors \"weight\" and \"bias\" have common bytes");
  refuses("[28,36]", 36, "bytes 24 to 28 before the tensor \"bias\" belong to no tensor");
  refuses("[24,32]", 36, "its tensors have 32 bytes, and 36 follow the header");
  CHECK(model.values == std::vector<float>(model.values.size(), 0.0f));
}

TEST_CASE("a pipe or a device in place of a file is refused at once") {
  TemporaryFolder folder;
  Arena<Other> other;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  auto const before = Clock::seconds();
  CHECK_THROWS_WITH_AS(train::load_parameters(folder / "pipe", other.layout, other.values),
                       doctest::Contains("pipe: is not a regular file"), DataError);
  CHECK_THROWS_WITH_AS(train::load_text(folder / "pipe", "classes"), doctest::Contains("is not a regular file"),
                       DataError);
  CHECK_THROWS_WITH_AS(train::load_parameters("/dev/zero", other.layout, other.values),
                       doctest::Contains("is not a regular file"), DataError);
  CHECK(Clock::seconds() - before < 2);
}

TEST_CASE("buffers are saved and loaded with the parameters, and missing ones are refused") {
  TemporaryFolder folder;
  Arena<Normalised> saved, loaded;
  std::vector<float> buffers(static_cast<std::size_t>(saved.layout.buffer_size()), 0.0f), read(buffers.size(), 0.0f);
  saved.values[1] = 3;
  for (int i = 0; i < 3; ++i) {
    buffers[static_cast<std::size_t>(saved.model.mean.offset + i)] = static_cast<float>(i) / 7;
    buffers[static_cast<std::size_t>(saved.model.variance.offset + i)] = 5;
  }
  train::save_parameters(folder / "p", saved.layout, saved.values, {}, buffers);
  train::load_parameters(folder / "p", loaded.layout, loaded.values, read);
  CHECK(loaded.values == saved.values);
  CHECK(read == buffers);
  CHECK(lockstep_test::read_file(folder / "p").find("\"variance\"") != std::string::npos);
  CHECK_THROWS_WITH_AS(
      train::save_parameters(folder / "p", saved.layout, saved.values),
      "save_parameters: 16 parameter and 0 buffer elements were passed; the model's layout has 16 and 32", ShapeError);
  CHECK_THROWS_AS(train::load_parameters(folder / "p", loaded.layout, loaded.values), ShapeError);
}

TEST_CASE("a text is read without the parameters, and a missing one is refused with the names of the others") {
  TemporaryFolder folder;
  Arena<Normalised> saved;
  std::vector<float> const buffers(static_cast<std::size_t>(saved.layout.buffer_size()), 0.0f);
  train::save_parameters(folder / "p", saved.layout, saved.values, {{"classes", "a\nb"}, {"width", "64"}}, buffers);
  CHECK(train::load_text(folder / "p", "classes") == "a\nb");
  CHECK(train::load_text(folder / "p", "width") == "64");
  CHECK_THROWS_WITH_AS(
      train::load_text(folder / "p", "words"),
      doctest::Contains("no string \"words\" was saved with the parameters; there are: classes, width"), DataError);
  train::save_parameters(folder / "p", saved.layout, saved.values, {}, buffers);
  CHECK_THROWS_WITH_AS(train::load_text(folder / "p", "words"), doctest::Contains("; none was"), DataError);
}

TEST_CASE("metadata that cannot be saved or read again is refused, and no file appears") {
  lockstep_test::TemporaryFolder folder;
  auto const saved = filled();
  auto const refuses = [&](train::Metadata const& metadata, char const* why) {
    CHECK_THROWS_WITH_AS(train::save_parameters(folder / "p", saved.layout, saved.values, metadata),
                         doctest::Contains(why), ConfigError);
    CHECK(folder.entries() == 0);
  };
  refuses({{"classes", "a"}, {"width", "3"}, {"classes", "b"}}, "the metadata \"classes\" is given twice");
  refuses({{"lockstep.progress", "mine"}}, "\"lockstep.progress\" has a name that Lockstep reserves");
  refuses({{"title", "caf\xe9 noir"}}, "\"title\" is not UTF-8 at byte 3");
  refuses({{"words", std::string(100'000'001, 'w')}}, "other readers of safetensors take at most 100000000");
  std::string const zero("a\0b", 3);
  train::save_parameters(folder / "p", saved.layout, saved.values,
                         {{"empty", ""}, {"\xc3\xa9", zero + "\x7f\xf0\x9f\x98\x80"}});
  CHECK(train::load_text(folder / "p", "\xc3\xa9") == zero + "\x7f\xf0\x9f\x98\x80");
}

namespace {
struct Named {
  std::string name;
  nn::Parameter parameter{{2}, {}};
  void visit(auto&& each) { each(name.c_str(), parameter); }
};
}  // namespace

TEST_CASE("a parameter whose name a file cannot hold is refused, and others are loaded by their names") {
  lockstep_test::TemporaryFolder const folder;
  for (std::string const name : {"__metadata__", "caf\xe9", "a \"b\"\n\\", "caf\xc3\xa9"}) {
    CAPTURE(name);
    Named model{name};
    auto const layout = nn::ParameterLayout::of(model);
    std::vector<float> values(static_cast<std::size_t>(layout.size())), loaded(values);
    values[0] = 1, values[1] = 2;
    if (name == "__metadata__" || utf8_prefix(name) < name.size()) {
      CHECK_THROWS_WITH_AS(train::save_parameters(folder / "p", layout, values),
                           doctest::Contains("name it otherwise in the model's visit"), ConfigError);
      CHECK_FALSE(std::filesystem::exists(folder / "p"));
      continue;
    }
    train::save_parameters(folder / "p", layout, values);
    train::load_parameters(folder / "p", layout, loaded);
    CHECK(loaded == values);
    std::filesystem::remove(folder / "p");
  }
}

TEST_CASE("parameters are not written to a pipe or a device, which would have no header") {
  auto const saved = filled();
  CHECK_THROWS_WITH_AS(train::save_parameters("/dev/null", saved.layout, saved.values),
                       doctest::Contains("name a regular file"), DataError);
}
