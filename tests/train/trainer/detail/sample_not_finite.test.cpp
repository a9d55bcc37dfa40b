// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/detail/sample_not_finite.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/source/streamed.hpp>

using namespace lockstep;

namespace {

float const nan_value = std::nanf(""), infinity = std::numeric_limits<float>::infinity();

struct Inner {
  int count;
  double weight;
};
struct Run {
  std::string name;
  std::array<float, 3> setup;
  std::vector<float> drive;
  std::vector<std::array<float, 2>> states;
  std::optional<float> pressure;
  Inner inner;
};

/// Ten runs with sequences of 0 to 3 steps.
std::vector<Run> runs() {
  std::vector<Run> all;
  for (std::size_t i = 0; i < 10; ++i)
    all.push_back({"run", {1, 2, 3}, std::vector<float>(i % 4), std::vector<std::array<float, 2>>(i % 4), {}, {1, 2}});
  return all;
}

template <class Collate>
std::string found_in(std::vector<Run> const& samples, Collate const& collate, data::Split split = {}, Index begin = 0,
                     Index end = 5) {
  data::DataLoader loader{data::InMemoryDataset{samples}, data::SequentialSampler{}, collate, {.batch_size = 2}};
  return train::detail::sample_not_finite(loader, split, 0, begin, end);
}

void both(std::vector<Run> const& samples, std::string const& expected) {
  CHECK(found_in(samples, data::PadCollate{}) == expected);
  CHECK(found_in(samples, data::PadCollate{.value = std::nan(""), .side = data::Side::start}) == expected);
  CHECK(found_in(samples, data::RaggedCollate{}) == expected);
}

std::string message(int sample, int member) {
  return "sample " + std::to_string(sample) + " holds an infinity or a NaN in its member " + std::to_string(member) +
         " (counted from 0)";
}

}  // namespace

TEST_CASE("the first sample with a number that is not finite is named, with its member") {
  both(runs(), "");
  auto samples = runs();
  samples[9].inner.weight = infinity;
  both(samples, message(9, 5));
  samples[8].pressure = -infinity;
  both(samples, message(8, 4));
  samples[7].states[2][1] = nan_value;
  both(samples, message(7, 3));
  samples[6].drive[1] = nan_value;
  both(samples, message(6, 2));
  samples[5].setup[2] = nan_value;
  both(samples, message(5, 1));
}

TEST_CASE("only the given micro-steps of this process's part are read") {
  auto samples = runs();
  samples[5].setup[0] = nan_value;  // of the third micro-step, or of the second rank's second
  CHECK(found_in(samples, data::PadCollate{}, {}, 0, 2).empty());
  CHECK(found_in(samples, data::PadCollate{}, {}, 2, 3) == message(5, 1));
  CHECK(found_in(samples, data::PadCollate{}, {.first = 0, .count = 1, .all = 2}, 0, 3).empty());
  CHECK(found_in(samples, data::PadCollate{}, {.first = 1, .count = 1, .all = 2}, 1, 2) == message(5, 1));
}

TEST_CASE("samples that cannot be read again, and streams, are not looked at") {
  struct Failing {
    Index size() const { return 4; }
    Run get(Index) const { throw std::runtime_error("the file is gone"); }
  };
  data::DataLoader failing{Failing{}, data::ShuffledSampler{}, data::PadCollate{}, {.batch_size = 2}};
  CHECK(train::detail::sample_not_finite(failing, {}, 0, 0, 2).empty());

  struct Lane {
    std::optional<Run> next() { return Run{"", {nan_value, 0, 0}, {}, {}, {}, {}}; }
  };
  struct Source {
    Index lanes() const { return 1; }
    Lane lane(Index, Index) const { return {}; }
  };
  data::DataLoader stream{
      data::Streamed{Source{}, 4}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2}};
  CHECK(train::detail::sample_not_finite(stream, {}, 0, 0, 2).empty());
}
