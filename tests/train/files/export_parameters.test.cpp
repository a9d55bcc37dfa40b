// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/files/export_parameters.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "temporary_folder.hpp"

using namespace lockstep;
using lockstep_test::TemporaryFolder;

namespace {
struct Attention {
  nn::Parameter query{{2, 3}, {}}, key{{1, 3}, {}}, value{{1, 3}, {}}, bias{{2}, {}};
  nn::Buffer mean{{2}};
  void visit(auto&& each) {
    each("query", query), each("key", key), each("value", value), each("bias", bias), each("mean", mean);
  }
};
template <Index... extents>
struct One {
  nn::Parameter weight{{extents...}, {}};
  void visit(auto&& each) { each("weight", weight); }
};
struct Two {
  nn::Parameter a{{2, 3}, {}}, b{{2, 3}, {}};
  void visit(auto&& each) { each("a", a), each("b", b); }
};
struct Neighbors {
  nn::Parameter wide{{2, 3}, {}}, square{{3, 3}, {}};
  void visit(auto&& each) { each("wide", wide), each("square", square); }
};
struct Scalars {
  nn::Parameter a{{}, {}}, b{{}, {}}, alone{{}, {}};
  void visit(auto&& each) { each("a", a), each("b", b), each("alone", alone); }
};
struct Unequal {
  nn::Parameter a{{2, 3}, {}}, b{{2, 2}, {}};
  void visit(auto&& each) { each("a", a), each("b", b); }
};
template <class M>
struct Arena {
  M model;
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  std::vector<float> values = std::vector<float>(static_cast<std::size_t>(layout.size()), 0.0f);
  std::vector<float> buffers = std::vector<float>(static_cast<std::size_t>(layout.buffer_size()), 0.0f);

  Arena() { fill(0); }
  /// Numbers the elements in forward order, from `first` on.
  void fill(float first) {
    for (auto const& entry : layout.entries())
      for (Index i = 0; i < entry.size; ++i) values[static_cast<std::size_t>(entry.offset + i)] = first++;
    for (auto const& entry : layout.buffers())
      for (Index i = 0; i < entry.size; ++i) buffers[static_cast<std::size_t>(entry.offset + i)] = first++;
  }
};

/// A tensor of another program's file.
struct Tensor {
  std::string name, type;
  std::vector<Index> shape;
  std::string bytes;
};
template <class Number>
Tensor tensor(std::string name, std::string type, std::vector<Index> shape, std::vector<double> const& numbers) {
  Tensor out{std::move(name), std::move(type), std::move(shape), {}};
  for (auto const number : numbers) {
    Number one;
    if constexpr (std::is_integral_v<Number> || std::is_same_v<Number, double>)
      one = static_cast<Number>(number);
    else
      one = Number(static_cast<float>(number));
    out.bytes.append(reinterpret_cast<char const*>(&one), sizeof one);
  }
  return out;
}
std::string foreign(TemporaryFolder const& folder, std::vector<Tensor> const& tensors,
                    std::string const& metadata = R"({"format":"pt"})") {
  std::string header = R"({"__metadata__":)" + metadata, data;
  for (auto const& [name, type, shape, bytes] : tensors) {
    header += ",\"" + name + R"(":{"dtype":")" + type + R"(","shape":)" + to_string(shape) + R"(,"data_offsets":[)" +
              std::to_string(data.size()) + "," + std::to_string(data.size() + bytes.size()) + "]}";
    data += bytes;
  }
  header += "}";
  std::uint64_t const length = header.size();
  auto const path = folder / "like.safetensors";
  lockstep_test::write_file(path, std::string(reinterpret_cast<char const*>(&length), sizeof length) + header + data);
  return path;
}
/// Reads all tensors of a file in the order of their bytes.
std::vector<Tensor> tensors_of(std::string const& path) {
  auto const bytes = lockstep_test::read_file(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  std::vector<Tensor> out;
  auto const header = json::parse(bytes.substr(8, length), path);
  for (auto const& [name, value] : header.object()) {
    if (name == "__metadata__") continue;
    Tensor tensor{name, value.at("dtype").string(), {}, {}};
    for (auto const& extent : value.at("shape").array()) tensor.shape.push_back(extent.integer());
    auto const begin = static_cast<std::size_t>(value.at("data_offsets").at(std::size_t{0}).integer());
    auto const end = static_cast<std::size_t>(value.at("data_offsets").at(std::size_t{1}).integer());
    tensor.bytes = bytes.substr(8 + length + begin, end - begin);
    out.push_back(std::move(tensor));
  }
  return out;
}
void check_equal(std::vector<Tensor> const& found, std::vector<Tensor> const& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].name == expected[i].name);
    CHECK(found[i].type == expected[i].type);
    CHECK(found[i].shape == expected[i].shape);
    CHECK_MESSAGE(found[i].bytes == expected[i].bytes, found[i].name);
  }
}
/// Saves a model in the form of `like`, or without one, and returns the tensors of the file.
template <class M>
std::vector<Tensor> exported(TemporaryFolder const& folder, Arena<M> const& arena, train::NamesInFile const& names,
                             train::ExportOptions const& options = {}) {
  auto const path = folder / "out.safetensors";
  train::export_parameters(path, arena.layout, arena.values, names, options, arena.buffers);
  CHECK(lockstep_test::read_file(path)[0] % 8 == 0);  // the header's length
  return tensors_of(path);
}
/// Returns the message of an export that must fail, and leaves no file.
template <class Failure, class M>
std::string message(Arena<M> const& arena, train::NamesInFile const& names, train::ExportOptions const& options = {}) {
  TemporaryFolder folder;
  try {
    exported(folder, arena, names, options);
  } catch (Failure const& error) {
    CHECK(folder.entries() == 0);
    return error.what();
  }
  return {};
}
bool has(std::string const& text, std::string_view part) { return text.find(part) != text.npos; }

train::TensorInFile fused(std::string_view name) {
  if (name == "query") return {.name = "qkv", .rows_after = 2, .axes = {1, 0}};
  if (name == "key") return {.name = "qkv", .rows_before = 2, .rows_after = 1, .axes = {1, 0}};
  if (name == "value") return {.name = "qkv", .rows_before = 3, .axes = {1, 0}};
  return {"other." + std::string(name)};
}
train::TensorInFile as_weight(std::string_view) { return {"weight"}; }
}  // namespace

TEST_CASE("parameters are saved under other names, fused and with permuted axes, and load from there") {
  TemporaryFolder folder;
  Arena<Attention> const saved;
  auto const found = exported(folder, saved, fused);
  check_equal(found,
              {tensor<float>("qkv", "F32", {3, 4}, {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}),
               tensor<float>("other.bias", "F32", {2}, {12, 13}), tensor<float>("other.mean", "F32", {2}, {14, 15})});
  Arena<Attention> loaded;
  loaded.fill(100);
  auto const metadata =
      train::load_parameters(folder / "out.safetensors", loaded.layout, loaded.values, loaded.buffers, fused);
  CHECK(loaded.values == saved.values);
  CHECK(loaded.buffers == saved.buffers);
  CHECK(metadata == train::Metadata{{"format", "pt"}});
}

TEST_CASE("a file of another program is loaded and saved with equal bytes of each tensor") {
  TemporaryFolder folder;
  auto const like = foreign(
      folder,
      {tensor<std::int64_t>("norm.num_batches_tracked", "I64", {}, {7}),
       tensor<bfloat16>("qkv", "BF16", {3, 4}, {0, 3.5, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}),
       tensor<float16>("other.bias", "F16", {1, 2, 1}, {-12, 1.5}), tensor<double>("other.mean", "F64", {2}, {0.5, 3}),
       tensor<bfloat16>("tied", "BF16", {3, 4}, {0, 3.5, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11})},
      R"({"format":"tf","author":"a"})");
  Arena<Attention> arena;
  train::load_parameters(like, arena.layout, arena.values, arena.buffers, fused);
  check_equal(exported(folder, arena, fused, {.like = like}), tensors_of(like));
  CHECK(train::load_text(folder / "out.safetensors", "format") == "tf");
  CHECK(train::load_text(folder / "out.safetensors", "author") == "a");

  SUBCASE("trained weights also replace the copy of a tied tensor") {
    for (auto& value : arena.values) value += 1;
    auto const found = exported(folder, arena, fused, {.like = like, .metadata = {{"author", "b"}}});
    check_equal({found[1]}, {tensor<bfloat16>("qkv", "BF16", {3, 4}, {1, 4.5, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12})});
    CHECK(found[4].bytes == found[1].bytes);
    CHECK(train::load_text(folder / "out.safetensors", "author") == "b");
  }
  SUBCASE("the file itself is replaced") {
    train::export_parameters(like, arena.layout, arena.values, fused, {.like = like}, arena.buffers);
    CHECK(tensors_of(like).size() == 5);
  }
}

TEST_CASE("an integer tensor receives integers") {
  TemporaryFolder folder;
  auto const like = foreign(folder, {tensor<std::int64_t>("weight", "I64", {2}, {5, -6})});
  Arena<One<2>> arena;
  check_equal(exported(folder, arena, as_weight, {.like = like}), {tensor<std::int64_t>("weight", "I64", {2}, {0, 1})});
  arena.values[0] = 0.5f;
  CHECK(has(message<DataError>(arena, as_weight, {.like = like}),
            "the tensor \"weight\" has a number that its type I64 does not have, because it is no integer"));
}

TEST_CASE("columns of a flattened image are saved channels first") {
  TemporaryFolder folder;
  auto const like = foreign(folder, {tensor<float>("weight", "F32", {2, 6}, std::vector<double>(12))});
  auto const names = [](std::string_view) {
    return train::TensorInFile{.name = "weight", .axes = {0, 2, 3, 1}, .shape = {2, 3, 1, 2}};
  };
  Arena<One<2, 6>> const arena;
  check_equal(exported(folder, arena, names, {.like = like}),
              {tensor<float>("weight", "F32", {2, 6}, {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11})});
  CHECK(has(message<ConfigError>(arena, names),
            "the tensor \"weight\" is viewed in shape [2, 3, 1, 2], and its own shape is not known; pass a file that "
            "has it as ExportOptions::like"));
}

TEST_CASE("axes of four axes are permuted back") {
  TemporaryFolder folder;
  Arena<One<3, 2, 1, 2>> const arena;
  auto const names = [](std::string_view) { return train::TensorInFile{.name = "weight", .axes = {3, 2, 0, 1}}; };
  auto const found = exported(folder, arena, names);
  CHECK(found[0].shape == std::vector<Index>{1, 2, 2, 3});
  Arena<One<3, 2, 1, 2>> loaded;
  loaded.fill(50);
  train::load_parameters(folder / "out.safetensors", loaded.layout, loaded.values, {}, names);
  CHECK(loaded.values == arena.values);
}

TEST_CASE("scalars of one tensor are saved as its rows, and load from there") {
  TemporaryFolder folder;
  Arena<Scalars> const saved;
  auto const names = [](std::string_view name) -> train::TensorInFile {
    if (name == "a") return {.name = "scales", .rows_after = 1};
    if (name == "b") return {.name = "scales", .rows_before = 1};
    return {std::string(name)};
  };
  check_equal(exported(folder, saved, names),
              {tensor<float>("scales", "F32", {2}, {0, 1}), tensor<float>("alone", "F32", {}, {2})});
  Arena<Scalars> loaded;
  loaded.fill(5);
  train::load_parameters(folder / "out.safetensors", loaded.layout, loaded.values, {}, names);
  CHECK(loaded.values == saved.values);
}

TEST_CASE("parameters without a name are left out, and a part is saved by its prefix") {
  TemporaryFolder folder;
  Arena<Two> const arena;
  check_equal(exported(folder, arena, train::NamesInFile("b", "weight")),
              {tensor<float>("weight", "F32", {2, 3}, {6, 7, 8, 9, 10, 11})});
  CHECK(has(message<ConfigError>(arena, train::NamesInFile("c")), "no name in the model begins with \"c\""));
}

TEST_CASE("rows that are filled twice or not at all are refused") {
  Arena<Two> const arena;
  using In = train::TensorInFile;
  auto const refused = [&](In a, In b) {
    return message<ConfigError>(arena, [&](std::string_view name) { return name == "a" ? a : b; });
  };
  CHECK(has(refused({"w"}, {"w"}),
            "out.safetensors: the tensor \"w\" is filled twice, by the parameters \"a\" and "
            "\"b\"; the function of names must give each of its rows to one parameter"));
  CHECK(has(refused({.name = "w", .rows_after = 1}, {.name = "w", .rows_before = 1}), "is filled twice"));
  CHECK(has(refused({.name = "w", .rows_after = 3}, {.name = "w", .rows_before = 3}),
            "has rows from 2 to 3 that no parameter fills"));
  CHECK(has(refused({.name = "w", .rows_before = 1}, {"v"}), "has rows from 0 to 1 that no parameter fills"));
  CHECK(has(refused({.name = "w", .rows_after = 2}, {"v"}), "has rows from 2 to 4 that no parameter fills"));
  CHECK(has(refused({.name = "w", .rows_after = 2}, {.name = "w", .rows_before = 2, .rows_after = 1}),
            "has 4 rows by the parameter \"a\", and 5 by \"b\""));
  CHECK(has(
      refused({.name = "w", .rows_after = 2}, {.name = "w", .rows_before = 2, .axes = {1, 0}}),
      "has other axes or another shape for \"b\" than for \"a\"; the function of names must give each of its rows to "
      "one parameter, all with the same axes and shape"));
  CHECK(
      has(refused({"__metadata__"}, {"v"}),
          "out.safetensors: the tensor \"__metadata__\" has a name that the format reserves, so that no program could "
          "load it; save it under another name, by the function of names"));
  CHECK(has(refused({.name = "w", .rows_before = -1}, {"v"}), "has -1 rows before the parameter \"a\""));
  constexpr auto most = std::numeric_limits<Index>::max();
  CHECK(has(refused({.name = "w", .rows_before = most}, {"v"}), "has 9223372036854775807 rows before"));
  for (auto const& axes : {std::vector<Index>{0, 0}, {0}, {0, 1, 2}, {0, 2}, {-1, 0}})
    CHECK(has(refused({.name = "w", .axes = axes}, {"v"}), "do not name each of its axes once"));
}

TEST_CASE("a square matrix that is not transposed like those next to it is refused") {
  auto const names = [](std::vector<Index> const& axes) {
    return [axes](std::string_view name) {
      return name == "wide" ? train::TensorInFile{.name = "h.wide.weight", .axes = {1, 0}}
                            : train::TensorInFile{.name = "h.square.weight", .axes = axes};
    };
  };
  CHECK(
      has(message<DataError>(Arena<Neighbors>{}, names({})), "\"h.square.weight\" is square and would be saved as it"));
  CHECK(message<DataError>(Arena<Neighbors>{}, names({0, 1})).empty());
}

TEST_CASE("parameters of other widths do not fit one tensor") {
  CHECK(has(message<DataError>(Arena<Unequal>{},
                               [](std::string_view name) {
                                 return name == "a" ? train::TensorInFile{.name = "w", .rows_after = 2}
                                                    : train::TensorInFile{.name = "w", .rows_before = 2};
                               }),
            "parameter \"w\" has shape [4, 3]; the model needs [4, 2], with 2 rows before its parameter"));
}

TEST_CASE("a file of another form is refused") {
  TemporaryFolder folder;
  Arena<One<2, 3>> const arena;
  auto const refused = [&](std::vector<Tensor> const& tensors, train::OtherTensors others = {}) {
    return message<DataError>(arena, as_weight, {.like = foreign(folder, tensors), .others = others});
  };
  auto const weight = tensor<float>("weight", "F32", {2, 3}, {0, 0, 0, 0, 0, 0});
  CHECK(has(refused({tensor<float>("weights", "F32", {2, 3}, {0, 0, 0, 0, 0, 0})}),
            "like.safetensors: has no parameter \"weight\""));
  CHECK(
      has(refused({tensor<float>("weight", "F32", {3, 2}, {0, 0, 0, 0, 0, 0})}), "has shape [3, 2]; the model needs"));
  CHECK(has(refused({tensor<std::uint8_t>("weight", "U8", {2, 3}, {0, 0, 0, 0, 0, 0})}), "is of type U8"));
  CHECK(has(refused({weight, tensor<float>("head", "F32", {2}, {1, 2})}),
            "like.safetensors: no parameter of the model fills the tensor \"head\" in "));
  CHECK(refused({weight, tensor<float>("head", "F32", {2}, {1, 2})}, train::OtherTensors::copy).empty());
  CHECK(refused({weight, tensor<std::uint8_t>("ids", "U8", {2}, {1, 2})}).empty());
  CHECK(has(message<DataError>(arena, as_weight, {.like = folder / "missing"}), "missing"));
}

TEST_CASE("constant tensors are not taken for tied ones") {
  TemporaryFolder folder;
  auto const like =
      foreign(folder, {tensor<float>("weight", "F32", {2}, {1, 1}), tensor<float>("scale", "F32", {2}, {1, 1})});
  Arena<One<2>> arena;
  auto const found = exported(folder, arena, as_weight, {.like = like, .others = train::OtherTensors::copy});
  check_equal({found[1]}, {tensor<float>("scale", "F32", {2}, {1, 1})});
}

TEST_CASE("a copy is not taken for a tied tensor if a parameter of its size has no name") {
  TemporaryFolder folder;
  Arena<Two> arena;
  std::vector<double> const numbers{1, 2, 3, 4, 5, 6};
  auto const like =
      foreign(folder, {tensor<float>("a", "F32", {2, 3}, numbers), tensor<float>("b", "F32", {2, 3}, numbers)});
  auto const names = [](std::string_view name) { return std::string(name == "a" ? "a" : ""); };
  CHECK(has(message<DataError>(arena, names, {.like = like}), "no parameter of the model fills the tensor \"b\""));
  auto const found = exported(folder, arena, names, {.like = like, .others = train::OtherTensors::copy});
  check_equal({found[1]}, {tensor<float>("b", "F32", {2, 3}, numbers)});
}

TEST_CASE("a number that is too large for 16 bits is refused, and one that is not finite is saved") {
  TemporaryFolder folder;
  Arena<One<2>> arena;
  auto const half = foreign(folder, {tensor<float16>("weight", "F16", {2}, {0, 0})});
  arena.values[0] = 65535;
  CHECK(has(message<DataError>(arena, as_weight, {.like = half}),
            "the tensor \"weight\" has a number that its type F16 does not have, because it is too large"));
  arena.values[0] = 65504;
  arena.values[1] = std::numeric_limits<float>::infinity();
  check_equal(exported(folder, arena, as_weight, {.like = half}),
              {tensor<float16>("weight", "F16", {2}, {65504, std::numeric_limits<float>::infinity()})});
  auto const bfloat = foreign(folder, {tensor<bfloat16>("weight", "BF16", {2}, {0, 0})});
  arena.values[0] = std::numeric_limits<float>::max();
  CHECK(has(message<DataError>(arena, as_weight, {.like = bfloat}), "its type BF16 does not have"));
}

TEST_CASE("a tensor of several pieces is saved and copied whole") {
  TemporaryFolder folder;
  std::vector<double> numbers(70'001);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i % 251);
  auto const like = foreign(
      folder, {tensor<float16>("weight", "F16", {70'001}, numbers), tensor<double>("more", "F64", {70'001}, numbers)});
  Arena<One<70'001>> arena;
  train::load_parameters(like, arena.layout, arena.values, {}, as_weight);
  check_equal(exported(folder, arena, as_weight, {.like = like, .others = train::OtherTensors::copy}),
              tensors_of(like));
}

TEST_CASE("metadata and sizes are checked as for other files") {
  Arena<One<2>> const arena;
  CHECK(
      has(message<ConfigError>(arena, as_weight, {.metadata = {{"lockstep.x", ""}}}), "a name that Lockstep reserves"));
  CHECK(has(message<ConfigError>(arena, [](std::string_view) { return std::string("__metadata__"); }),
            "the tensor \"__metadata__\" has a name that the format reserves"));
  TemporaryFolder folder;
  CHECK_THROWS_AS(train::export_parameters(folder / "p", arena.layout, std::vector<float>(1), as_weight), ShapeError);
}
