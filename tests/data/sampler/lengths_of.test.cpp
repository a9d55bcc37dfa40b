// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/sampler/lengths_of.hpp>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/combine/transform.hpp>

using namespace lockstep;

namespace {

struct Clip {
  std::string name;
  std::vector<std::array<float, 3>> frames;
  int speaker = 0;
  std::vector<std::int32_t> words;
};

/// Knows the lengths of samples that it cannot read, in the order of the members.
struct Unread {
  Index longest = 7;
  static Index size() { return 3; }
  static Clip get(Index) { throw std::runtime_error("read"); }
  [[nodiscard]] data::SampleExtent<Clip> extent(Index i) const { return {{4, i, i == 2 ? longest : 5}}; }
};

}  // namespace

TEST_CASE("lengths_of measures a member of each sample") {
  data::InMemoryDataset const clips{std::vector<Clip>{{"a", {{}, {}}, 1, {1, 2, 3}}, {"bcd", {}, 2, {}}}};
  CHECK(data::lengths_of(clips, &Clip::frames) == std::vector<std::int32_t>{2, 0});
  CHECK(data::lengths_of(clips, &Clip::words) == std::vector<std::int32_t>{3, 0});
  CHECK(data::lengths_of(clips, &Clip::name) == std::vector<std::int32_t>{1, 3});
  CHECK(data::lengths_of(data::InMemoryDataset{std::vector<Clip>{}}, &Clip::words).empty());
  auto const twice = [](Clip clip) {
    clip.words.resize(2 * clip.words.size());
    return clip;
  };
  CHECK(data::lengths_of(data::Transform{clips, twice}, &Clip::words) == std::vector<std::int32_t>{6, 0});
}

TEST_CASE("lengths_of reads no sample of a dataset that knows its extents") {
  CHECK(data::lengths_of(Unread{}, &Clip::frames) == std::vector<std::int32_t>{0, 1, 2});
  CHECK(data::lengths_of(Unread{}, &Clip::words) == std::vector<std::int32_t>{5, 5, 7});
  CHECK_THROWS_WITH_AS(static_cast<void>(data::lengths_of(Unread{Index{1} << 31}, &Clip::words)),
                       doctest::Contains("sample 2 has the length 2147483648, above"), DataError);
}

TEST_CASE("lengths_of names a sample that cannot be made") {
  auto const refuse = [](Clip const&) -> Clip { throw std::runtime_error("no frames"); };
  data::Transform const clips{data::InMemoryDataset{std::vector<Clip>(1)}, refuse};
  CHECK_THROWS_WITH_AS(static_cast<void>(data::lengths_of(clips, &Clip::words)),
                       "lengths_of: sample 0 cannot be made: no frames", DataError);
}
