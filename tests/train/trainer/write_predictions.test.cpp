// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/write_predictions.hpp>

#include <doctest/doctest.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/averages.hpp>

#include "temporary_folder.hpp"
#include "train/line.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

struct Passenger {
  std::string id;
  float x, y = 0;
};

/// y = slope * x; its loss cannot be computed for passengers whose y is unknown.
class Model {
 public:
  void visit(auto&& each) { each("slope", slope_); }
  auto predict(auto& context, auto const& batch) const {
    return toy::multiply(context, slope_, context.input(batch[&Passenger::x].values));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& y, auto const& batch) const {
    auto const known = batch[&Passenger::y].values.span();
    for (float const each : known)
      if (each < 0) throw DataError("the loss was made");
    return toy::squared_error(context, y, std::vector<double>(known.begin(), known.end()));
  }

 private:
  nn::Parameter slope_{{1}, nn::Initializer::constant(1.5f)};
};

std::vector<Passenger> passengers(int count) {
  std::vector<Passenger> all;
  for (int i = 0; i < count; ++i) all.push_back({"p," + std::to_string(i), static_cast<float>(i), -1});
  return all;
}
template <class Sampler>
auto loader(int count, Index batch, Sampler sampler, data::Tail tail = data::Tail::exact) {
  return data::DataLoader{
      data::InMemoryDataset{passengers(count)}, sampler, data::PadCollate{}, {.batch_size = batch, .tail = tail}};
}
std::vector<std::string> const columns{"PassengerId", "fare"};
auto const row = [](auto const& y, auto const& batch, Index k) {
  return std::tuple{batch[&Passenger::id][k], y.value(k)};
};

std::string text_of(std::string const& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}
std::string expected(int count, float slope = 1.5f) {
  std::string text = "PassengerId,fare\n";
  for (int i = 0; i < count; ++i) {
    char number[32];
    auto const* const end = std::to_chars(number, number + sizeof number, slope * static_cast<float>(i)).ptr;
    text += "\"p," + std::to_string(i) + "\"," + std::string(static_cast<char const*>(number), end) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("a table has a row for each sample, in the dataset's order, under every policy and from a predictor") {
  TemporaryFolder const folder;
  auto const path = folder / "predictions.csv";
  auto const check = [&](auto policy, int count, Index batch) {
    Trainer trainer{Model{}, optim::SGD{}, std::move(policy)};
    auto shuffled = loader(count, batch, data::ShuffledSampler{.seed = 3});
    train::write_predictions(path, trainer, shuffled, columns, row);
    if (trainer.rank() == 0) CHECK(text_of(path) == expected(count));
    auto padded = loader(count, batch, data::SequentialSampler{}, data::Tail::pad);
    train::write_predictions(path, trainer, padded, columns, row);
    if (trainer.rank() == 0) CHECK(text_of(path) == expected(count));
  };
  for (int const count : {1, 7, 33}) {
    for (Index const batch : {1, 4}) {
      check(parallel::SingleDevice{.threads = 1}, count, batch);
      check(parallel::DataParallel{.devices = 3, .threads = 1}, count, batch);
      check(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 4}, count, batch);
      for (int const ranks : {2, 3})
        launch::run({.threads = ranks}, [&](launch::World& world) {
          check(parallel::DistributedDataParallel{comm::connect(world), 4096, 1}, count, batch);
          return 0;
        });
    }
    Trainer const trainer{Model{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
    train::Predictor predictor{Model{}, trainer};
    auto shuffled = loader(count, 4, data::ShuffledSampler{.seed = 3});
    train::write_predictions(path, predictor, shuffled, columns, row);
    CHECK(text_of(path) == expected(count));
  }
}

TEST_CASE("a table larger than a part has equal bits for any number of ranks, and leaves no other file") {
  TemporaryFolder const folder;
  constexpr int count = 3000;
  auto const wide = [](auto const& y, auto const& batch, Index k) {
    return std::tuple{batch[&Passenger::id][k], std::to_string(y.value(k)) + std::string(2000, 'x')};
  };
  std::string whole = "PassengerId,fare\n";
  for (int i = 0; i < count; ++i)
    whole += "\"p," + std::to_string(i) + "\"," + std::to_string(1.5f * static_cast<float>(i)) +
             std::string(2000, 'x') + "\n";
  REQUIRE(whole.size() > std::size_t{5} << 20);
  auto const write = [&](std::string const& name, auto policy, auto sampler) {
    Trainer trainer{Model{}, optim::SGD{}, std::move(policy)};
    auto batches = loader(count, 8, sampler);
    train::write_predictions(folder / name, trainer, batches, columns, wide);
    if (trainer.rank() == 0) CHECK(text_of(folder / name) == whole);
  };
  write("single.csv", parallel::SingleDevice{.threads = 1}, data::SequentialSampler{});
  write("shuffled.csv", parallel::DataParallel{.devices = 2, .threads = 1}, data::ShuffledSampler{.seed = 5});
  launch::run({.threads = 3}, [&](launch::World& world) {
    write("ranks.csv", parallel::DistributedDataParallel{comm::connect(world), 4096, 1}, data::SequentialSampler{});
    return 0;
  });
  Trainer const trainer{Model{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  train::Predictor predictor{Model{}, trainer};
  auto shuffled = loader(count, 8, data::ShuffledSampler{.seed = 3});
  train::write_predictions(folder / "predictor.csv", predictor, shuffled, columns, wide);
  CHECK(text_of(folder / "predictor.csv") == whole);
  CHECK(std::distance(std::filesystem::directory_iterator(folder / ""), {}) == 4);
}

TEST_CASE("a table uses the averages that an optimizer keeps, and training continues from the values") {
  TemporaryFolder const folder;
  auto learned = passengers(8);
  for (auto& each : learned) each.y = 3 * each.x;
  data::DataLoader batches{
      data::InMemoryDataset{learned}, data::ShuffledSampler{}, data::PadCollate{}, {.batch_size = 4}};
  Trainer trainer{Model{}, optim::Averaged{optim::SGD{.learning_rate = 0.01}, 0.9},
                  parallel::SingleDevice{.threads = 1}};
  trainer.fit(batches, {.epochs = 2});
  auto const slope = trainer.values()[0], average = train::averages(trainer)[0];
  REQUIRE(slope != average);
  auto others = loader(5, 2, data::SequentialSampler{});
  train::write_predictions(folder / "table.csv", trainer, others, columns, row);
  CHECK(text_of(folder / "table.csv") == expected(5, average));
  CHECK(trainer.values()[0] == slope);
}

TEST_CASE("cells are numbers, texts, and containers of these") {
  TemporaryFolder const folder;
  Trainer trainer{Model{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  auto one = loader(1, 1, data::SequentialSampler{});
  auto const line = [&](std::vector<std::string> const& names, auto cells) {
    train::write_predictions(folder / "table.csv", trainer, one, names,
                             [&](auto const&, auto const&, Index) { return cells; });
    auto const text = text_of(folder / "table.csv");
    return text.substr(text.find('\n') + 1);
  };
  CHECK(line({"a"}, 0.1f) == "0.1\n");
  CHECK(line({"a"}, "") == "\"\"\n");  // an empty line would not be a row
  CHECK(line({"a"}, "say \"no\"") == "\"say \"\"no\"\"\"\n");
  CHECK(line({"a", "b", "c"}, std::array<int, 3>{3, -1, 7}) == "3,-1,7\n");
  CHECK(line({"a", "b", "c", "d"}, std::tuple{true, std::vector<bfloat16>{bfloat16(0.5f), bfloat16(2.0f)}, 1e-9}) ==
        "1,0.5,2,1e-09\n");
  CHECK_THROWS_WITH_AS(line({"a", "b,c"}, 1),
                       "write_predictions: the row of sample 0 has 1 cells, and there are 2 columns (a,\"b,c\"); name "
                       "one for each",
                       ConfigError);
}

TEST_CASE("a table that would lack rows, or cannot be written, is refused") {
  TemporaryFolder const folder;
  Trainer trainer{Model{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  auto dropped = loader(5, 2, data::SequentialSampler{}, data::Tail::drop),
       all = loader(5, 2, data::SequentialSampler{});
  CHECK_THROWS_WITH_AS(train::write_predictions(folder / "table.csv", trainer, dropped, columns, row),
                       doctest::Contains("tail is drop"), ConfigError);
  CHECK_THROWS_AS(train::write_predictions(folder / "none/table.csv", trainer, all, columns, row), DataError);
}
