// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/files/tensor_in_file.hpp>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/train/files/safetensors.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;
using lockstep_test::TemporaryFolder;

namespace {
template <Index... extents>
struct One {  // a model of one parameter
  nn::Parameter weight{{extents...}, {}};
  void visit(auto&& each) { each("weight", weight); }
};
struct Attention {
  nn::Parameter query{{2, 3}, {}}, key{{1, 3}, {}}, value{{1, 3}, {}}, bias{{2}, {}};
  void visit(auto&& each) { each("query", query), each("key", key), each("value", value), each("bias", bias); }
};
/// A fused matrix of these extents, a square one next to it, and one elsewhere.
template <Index rows, Index columns>
struct Block {
  nn::Parameter fused{{rows, columns}, {}}, square{{2, 2}, {}}, wide{{3, 2}, {}};
  void visit(auto&& each) {
    each("h.0.attn.fused.weight", fused), each("h.0.attn.square.weight", square), each("h.0.mlp.wide.weight", wide);
  }
};
/// Saves a tensor "weight" of these extents, with the numbers 0, 1, 2 and so on.
template <Index... extents>
std::string counted(TemporaryFolder const& folder) {
  One<extents...> model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  auto const path = folder / "p.safetensors";
  train::save_parameters(path, layout, values);
  return path;
}
template <Index... extents>
std::vector<float> load(std::string const& path, train::TensorInFile const& from) {
  One<extents...> model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size()), -1.0f);
  train::load_parameters(path, layout, values, {}, [&](std::string_view) { return from; });
  return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(layout.entries()[0].size)};
}
/// Makes a file look like one of another program, without checksums.
std::string foreign(std::string const& path) {
  auto bytes = lockstep_test::read_file(path);
  bytes.replace(bytes.find("lockstep."), 9, "somebody.");
  lockstep_test::write_file(path, bytes);
  return path;
}
/// Returns the message of a load that must fail.
template <Index... extents>
std::string message(std::string const& path, train::TensorInFile const& from) {
  try {
    load<extents...>(path, from);
  } catch (DataError const& error) {
    return error.what();
  }
  return {};
}
bool has(std::string const& text, std::string_view part) { return text.find(part) != text.npos; }
}  // namespace

TEST_CASE("rows of a tensor that has rows of others before and after") {
  TemporaryFolder folder;
  auto const path = counted<4, 3>(folder);
  Attention model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size()), -1.0f);
  train::load_parameters(path, layout, values, {}, [](std::string_view name) -> train::TensorInFile {
    if (name == "query") return {.name = "weight", .rows_after = 2};
    if (name == "key") return {.name = "weight", .rows_before = 2, .rows_after = 1};
    if (name == "value") return {.name = "weight", .rows_before = 3};
    return {};
  });
  auto const at = [&](nn::Parameter const& parameter, Index i) {
    return values[static_cast<std::size_t>(parameter.offset + i)];
  };
  for (Index i = 0; i < 6; ++i) CHECK(at(model.query, i) == static_cast<float>(i));
  for (Index i = 0; i < 3; ++i) {
    CHECK(at(model.key, i) == static_cast<float>(6 + i));
    CHECK(at(model.value, i) == static_cast<float>(9 + i));
  }
  CHECK(at(model.bias, 0) == -1);
}

TEST_CASE("axes are permuted before rows are taken") {
  TemporaryFolder folder;
  auto const path = counted<2, 3>(folder);  // 0 1 2, 3 4 5
  CHECK(load<3, 2>(path, {.name = "weight", .axes = {1, 0}}) == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(load<1, 2>(path, {.name = "weight", .rows_before = 1, .rows_after = 1, .axes = {1, 0}}) ==
        std::vector<float>{1, 4});
  auto const kernel = counted<1, 2, 2, 3>(folder);  // height, width, inputs, outputs: a convolution of TensorFlow
  CHECK(load<3, 2, 1, 2>(kernel, {.name = "weight", .axes = {3, 2, 0, 1}}) ==
        std::vector<float>{0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11});
}

TEST_CASE("columns of a flattened image are ordered channels last") {
  TemporaryFolder folder;
  auto const path = counted<2, 6>(folder);  // 2 outputs; 3 channels of 1 x 2 places
  CHECK(load<2, 6>(path, {.name = "weight", .axes = {0, 2, 3, 1}, .shape = {2, 3, 1, 2}}) ==
        std::vector<float>{0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11});
}

TEST_CASE("an unfitting tensor is refused with shape, axes and rows, and nothing is loaded") {
  TemporaryFolder folder;
  auto const path = counted<4, 3>(folder);
  auto const rows = message<2, 3>(path, {.name = "weight", .rows_before = 1});
  CHECK(has(rows,
            "parameter \"weight\" has shape [4, 3]; the model needs [3, 3], with 1 rows before its parameter and "
            "0 after it"));
  CHECK(has(message<2, 3>(path, {.name = "weight", .rows_before = -1, .rows_after = 3}), "with -1 rows before"));
  CHECK(has(message<4, 3>(path, {.name = "weight", .axes = {1, 0}}),
            "has shape [3, 4] with axes permuted; the model needs [4, 3]"));
  for (auto const& axes : {std::vector<Index>{0, 0}, {0}, {0, 1, 2}, {0, 2}, {-1, 0}})
    CHECK(has(message<4, 3>(path, {.name = "weight", .axes = axes}), "do not name each of its axes once"));
  CHECK(has(message<4, 3>(path, {.name = "weight", .shape = {4, 4}}), "cannot be viewed in shape [4, 4]"));
  CHECK(has(message<4, 3>(path, {.name = "weight", .shape = {-4, -3}}), "cannot be viewed in shape [-4, -3]"));
  CHECK(has(message<4, 3>(path, {.name = "weights", .axes = {1, 0}}), "has no parameter \"weights\""));
}

TEST_CASE("another program's tensor of another shape is refused with a remedy if it is transposed or fused") {
  TemporaryFolder folder;
  std::string const usual = ": make it with the sizes of the run that saved it, such as the same vocabulary";
  auto const own = counted<4, 3>(folder);
  CHECK(has(message<3, 4>(own, {"weight"}), usual));
  CHECK(has(message<2, 3>(own, {"weight"}), usual));
  auto const path = foreign(own);
  CHECK(has(message<3, 4>(path, {"weight"}),
            "has shape [4, 3]; the model needs [3, 4]: its axes have another order, so pass load a function of names "
            "that returns a train::TensorInFile{.name = …, .axes = {1, 0}} for it"));
  CHECK(has(message<2, 3>(path, {"weight"}),
            "has shape [4, 3]; the model needs [2, 3]: if it also has the rows of other parameters"));
  CHECK(has(message<3, 3>(path, {"weight"}), usual));
  CHECK(has(message<2, 6>(path, {"weight"}), usual));
  CHECK(has(message<8, 3>(path, {"weight"}), usual));
  CHECK(has(message<4>(foreign(counted<12>(folder)), {"weight"}), ".rows_before = …"));
  // Two axes do not name the four of a convolution's kernel, even if two of them have one place.
  CHECK(has(message<4, 3, 1, 1>(foreign(counted<1, 1, 3, 4>(folder)), {"weight"}),
            ".axes = …} for it, with the file's axis for each axis of the parameter"));
}

TEST_CASE("rows of permuted tensors are those of the whole") {
  TemporaryFolder folder;
  auto const path = foreign(counted<3, 2, 4, 5>(folder));
  std::vector<Index> axes{0, 1, 2, 3};
  auto const check = [&]<Index rows, Index... others>() {
    auto const rest = 4 - rows;
    for (Index before = 0; before <= rest; ++before) {
      auto const whole = load<4, others...>(path, {.name = "weight", .axes = axes});
      auto const width = std::ssize(whole) / 4;
      CHECK(load<rows, others...>(
                path, {.name = "weight", .rows_before = before, .rows_after = rest - before, .axes = axes}) ==
            std::vector<float>(whole.begin() + before * width, whole.begin() + (before + rows) * width));
    }
  };
  axes = {2, 0, 1, 3}, check.operator()<1, 3, 2, 5>(), check.operator()<3, 3, 2, 5>();
  axes = {2, 3, 1, 0}, check.operator()<1, 5, 2, 3>(), check.operator()<2, 5, 2, 3>();
  axes = {2, 1, 0, 3}, check.operator()<2, 2, 3, 5>(), check.operator()<4, 2, 3, 5>();
  // An extent of 1 comes first.
  auto const with_one = foreign(counted<3, 1, 4>(folder));
  CHECK(load<2, 3>(with_one, {.name = "weight", .rows_before = 1, .rows_after = 1, .axes = {1, 2, 0}}) ==
        std::vector<float>{1, 5, 9, 2, 6, 10});
}

TEST_CASE("rows of others in the tensor are not read, unless it has a checksum") {
  TemporaryFolder folder;
  auto const path = folder / "p.safetensors";
  std::string const header = R"({"weight":{"dtype":"F64","shape":[2,3],"data_offsets":[0,48]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  bytes += header;
  for (double const number : {1.0, 2.0, 1e300, 3.0, 4.0, 1e300})
    bytes.append(reinterpret_cast<char const*>(&number), 8);
  lockstep_test::write_file(path, bytes);
  CHECK(load<2, 2>(path, {.name = "weight", .rows_after = 1, .axes = {1, 0}}) == std::vector<float>{1, 3, 2, 4});
  CHECK(has(message<1, 3>(path, {.name = "weight", .rows_before = 1}), "beyond the range of float32"));
}

TEST_CASE("a square matrix next to transposed ones is transposed, too, or its axes are given") {
  TemporaryFolder folder;
  Block<6, 2> model;
  Block<2, 6> stored;
  auto const saved = nn::ParameterLayout::of(stored), layout = nn::ParameterLayout::of(model);
  std::vector<float> numbers(static_cast<std::size_t>(saved.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  auto const path = folder / "p.safetensors";
  train::save_parameters(path, saved, numbers);
  std::vector<float> values(static_cast<std::size_t>(layout.size()), -1.0f);
  auto const square = [&](std::vector<Index> const& axes) {
    train::load_parameters(path, layout, values, {}, [&](std::string_view name) -> train::TensorInFile {
      if (name == "h.0.attn.fused.weight") return {.name = std::string(name), .axes = {1, 0}};
      if (name == "h.0.attn.square.weight") return {.name = std::string(name), .axes = axes};
      return {std::string(name)};
    });
    return values[static_cast<std::size_t>(model.square.offset) + 1];
  };
  CHECK_THROWS_WITH_AS(square({}),
                       doctest::Contains("p.safetensors: parameter \"h.0.attn.square.weight\" is square and would be "
                                         "read as it is, but \"h.0.attn.fused.weight\" next to it is transposed"),
                       DataError);
  CHECK(values[0] == -1);  // nothing was loaded
  auto const second = numbers[static_cast<std::size_t>(stored.square.offset) + 1];
  CHECK(square({0, 1}) == second);
  CHECK(square({1, 0}) == second + 1);
}

TEST_CASE("a damaged tensor is detected when some of its rows are read") {
  TemporaryFolder folder;
  auto const path = counted<4, 3>(folder);
  auto bytes = lockstep_test::read_file(path);
  bytes.back() ^= 1;  // in the last row
  lockstep_test::write_file(path, bytes);
  CHECK(has(message<2, 3>(path, {.name = "weight", .rows_after = 2}), "does not have the checksum"));
}

TEST_CASE("extents whose product overflows are refused, also in a tensor without elements") {
  TemporaryFolder folder;
  auto const path = folder / "hostile.safetensors";
  auto const write = [&](std::string const& shape) {
    std::string const header = R"({"weight":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,0]}})";
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(header.size());
    lockstep_test::write_file(path, bytes + header);
  };
  constexpr Index large = Index{1} << 40;
  for (auto const* shape :
       {"[0,4611686018427387904,4611686018427387904]", "[4611686018427387904,0,4611686018427387904]"}) {
    write(shape);
    CHECK(has(message<2, 3>(path, {.name = "weight", .axes = {0, 2, 1}}), "; the model needs [2, 3]"));
  }
  write("[4611686018427387904,4611686018427387904]");
  CHECK(has(message<2, 3>(path, {.name = "weight", .axes = {1, 0}}), "does not fit the file's 0 bytes"));
  write("[0]");  // the rows are large enough to overflow, or their product is
  CHECK(has(message<2, 3>(path, {.name = "weight", .rows_before = large - 2, .axes = {1, 0}, .shape = {0, large}}),
            "has shape [1099511627776, 0] with axes permuted; the model needs [1099511627776, 3]"));
  constexpr Index most = std::numeric_limits<Index>::max();
  CHECK(has(message<2, 3>(path, {.name = "weight", .rows_before = most, .rows_after = most}),
            "the model needs [2, 3], with 9223372036854775807 rows before its parameter"));
}
