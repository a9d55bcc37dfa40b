// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/combine/standard_scaler.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/combine/hold_out.hpp>
#include <lockstep/data/combine/transform.hpp>

using namespace lockstep;

namespace {

struct Run {
  int id;
  double energy;
  std::array<float, 2> setup;
  std::vector<float> drive;
  std::vector<std::array<float, 2>> states;
  std::optional<float> pressure;
};

std::vector<Run> runs() {
  return {{7, 1, {10, 5}, {1, 2}, {{0, 1}, {2, 3}}, 4.0f}, {8, 3, {30, 5}, {6}, {{4, 5}}, {}}};
}
auto scaler_of(data::Dataset auto const& dataset) {
  return data::StandardScaler{dataset, &Run::energy, &Run::setup, &Run::drive, &Run::states, &Run::pressure};
}

}  // namespace

TEST_CASE("each channel gets the mean and the population's deviation of the samples") {
  auto const scale = scaler_of(data::InMemoryDataset{runs()});
  CHECK(scale.mean(&Run::energy) == 2);
  CHECK(scale.deviation(&Run::energy) == 1);
  CHECK(scale.mean(&Run::setup, 0) == 20);
  CHECK(scale.deviation(&Run::setup, 0) == 10);
  CHECK(scale.mean(&Run::drive) == doctest::Approx(3));  // all steps of all samples
  CHECK(scale.deviation(&Run::drive) == doctest::Approx(std::sqrt(14.0 / 3)));
  CHECK(scale.mean(&Run::states, 1) == doctest::Approx(3));
  CHECK(scale.deviation(&Run::states, 1) == doctest::Approx(std::sqrt(8.0 / 3)));
  CHECK(scale.mean(&Run::pressure) == 4);  // of the present ones
  CHECK(scale.unscaled(-1, &Run::setup, 0) == 10);
  for (auto const deviation : {scale.deviation(&Run::setup, 1), scale.deviation(&Run::pressure)})
    CHECK(deviation == 1);  // all numbers are equal
}

TEST_CASE("samples are shifted and divided, and other members and absent numbers stay") {
  auto const [training, held_out] = data::hold_out(data::InMemoryDataset{runs()}, 0.5, 1);
  auto const scale = scaler_of(data::InMemoryDataset{runs()});
  data::Transform const scaled{data::InMemoryDataset{runs()}, scale};
  auto const first = scaled.get(0), second = scaled.get(1);
  CHECK(first.id == 7);
  CHECK(first.energy == -1);
  CHECK(second.setup == std::array{1.0f, 0.0f});
  CHECK(second.drive[0] == doctest::Approx(3 / std::sqrt(14.0 / 3)));
  CHECK(first.states[0][1] == doctest::Approx(-2 / std::sqrt(8.0 / 3)));
  CHECK(first.pressure == 0.0f);
  CHECK(!second.pressure);
  data::Transform const other{held_out, scaler_of(training)};  // the type does not depend on the dataset
  CHECK(other.get(0).energy == (held_out.get(0).energy - training.get(0).energy));
}

TEST_CASE("the text restores all bits, and another text is refused") {
  auto all = runs();
  all[0].energy = 0.1;
  auto const scale = scaler_of(data::InMemoryDataset{all});
  auto const text = scale.to_text();
  data::StandardScaler const same{text, &Run::energy, &Run::setup, &Run::drive, &Run::states, &Run::pressure};
  CHECK(same.to_text() == text);
  CHECK(same.mean(&Run::energy) == scale.mean(&Run::energy));
  CHECK(same(all[1]).states == scale(all[1]).states);
  using One = data::StandardScaler<Run, double>;
  CHECK(One("2 1\n", &Run::energy).mean(&Run::energy) == 2);
  std::string const need =
      "; these members need 2, a mean and a positive deviation for each channel; pass what "
      "to_text returned";
  CHECK_THROWS_WITH_AS(One("", &Run::energy), ("StandardScaler: the text has 0 numbers" + need).c_str(), DataError);
  CHECK_THROWS_WITH_AS(One("1 2 3", &Run::energy), ("StandardScaler: the text has 3 numbers" + need).c_str(),
                       DataError);
  for (auto const* wrong : {"1 0", "1 -1", "nan 1", "x", "1 1x 3"})
    CHECK_THROWS_AS(One(wrong, &Run::energy), DataError);
}

TEST_CASE("samples that are not finite are named, and empty data is refused") {
  auto all = runs();
  all[1].states[0][1] = std::nanf("");
  CHECK_THROWS_WITH_AS(scaler_of(data::InMemoryDataset{all}),
                       "sample 1 holds an infinity or a NaN, of which StandardScaler cannot compute a mean; correct "
                       "the data, or leave such samples out by data::Subset",
                       DataError);
  CHECK_THROWS_WITH_AS(scaler_of(data::InMemoryDataset{std::vector<Run>{}}),
                       "StandardScaler: there are no samples to compute means and deviations of", DataError);
}

TEST_CASE("a sample that cannot be made is named, and refused memory is not its fault") {
  struct Files {
    std::function<Run()> read;
    [[nodiscard]] Index size() const { return 2; }
    [[nodiscard]] Run get(Index i) const { return i == 0 ? runs()[0] : read(); }
    [[nodiscard]] std::string name(Index i) const { return "runs/" + std::to_string(i) + ".csv"; }
  };
  try {
    static_cast<void>(scaler_of(Files{[]() -> Run { throw std::out_of_range("has no header"); }}));
    FAIL("nothing was thrown");
  } catch (DataError const& error) {
    CHECK(std::string(error.what()) == "StandardScaler: sample 1 (runs/1.csv) cannot be made: has no header");
    CHECK_THROWS_AS(std::rethrow_if_nested(error), std::out_of_range);
  }
  CHECK_THROWS_AS(scaler_of(Files{[]() -> Run { throw std::bad_alloc(); }}), std::bad_alloc);
  CHECK_THROWS_WITH_AS(scaler_of(Files{[]() -> Run { throw OutOfMemoryError("full"); }}), "full", OutOfMemoryError);
}

TEST_CASE("a member or a channel that is not scaled is refused") {
  data::StandardScaler const scale{data::InMemoryDataset{runs()}, &Run::setup};
  CHECK_THROWS_AS(static_cast<void>(scale.mean(&Run::energy)), ConfigError);
  for (Index const channel : {-1, 2})
    CHECK_THROWS_WITH_AS(static_cast<void>(scale.mean(&Run::setup, channel)),
                         ("StandardScaler: channel " + std::to_string(channel) +
                          " of this member is not scaled; name a member that the constructor got, and a channel of "
                          "it, from 0")
                             .c_str(),
                         ConfigError);
}
