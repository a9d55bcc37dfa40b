// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/combine/subset.hpp>

#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/combine/concat.hpp>
#include <lockstep/data/combine/transform.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>

using namespace lockstep;

namespace {
struct Grouped {
  Index size() const { return 6; }
  int get(Index i) const { return static_cast<int>(10 * i); }
  Index groups() const { return 3; }
  Index group(Index i) const { return i / 2; }
};
}  // namespace

TEST_CASE("a subset has the chosen samples in the given order") {
  data::Subset const some{Grouped{}, {5, 0, 0, 3}};
  CHECK(some.size() == 4);
  CHECK(some.get(0) == 50);
  CHECK(some.get(2) == 0);
  CHECK(some.original(3) == 3);
  CHECK(some.groups() == 3);
  CHECK(some.group(0) == 2);
  CHECK(data::Subset{Grouped{}, {}}.size() == 0);
}

TEST_CASE("an index outside the dataset is refused with its place") {
  CHECK_THROWS_WITH_AS((data::Subset{Grouped{}, {0, 5, 6}}),
                       "Subset: index 2 is 6, and the dataset has 6 samples; give numbers from 0 to below that",
                       ConfigError);
  CHECK_THROWS_WITH_AS((data::Subset{Grouped{}, {-1}}), doctest::Contains("index 0 is -1"), ConfigError);
}

TEST_CASE("a subset of samples in memory returns references") {
  data::InMemoryDataset const all{std::vector<int>{1, 2, 3}};
  data::Subset const last{all, {2}};
  CHECK(&last.get(0) == &all.get(2));
}

TEST_CASE("a subset has the dataset's optional members: extents, rows read in place, names") {
  struct Sample {
    std::vector<int> ids;
  };
  struct Direct {
    Index size() const { return 6; }
    Sample get(Index i) const { return {std::vector<int>(static_cast<std::size_t>(i), 1)}; }
    data::SampleExtent<Sample> extent(Index i) const { return {{i}}; }
    void read_into(Index i, data::Row<Sample> row) const { row[&Sample::ids][0] = static_cast<int>(i); }
    std::string name(Index i) const { return "file " + std::to_string(i); }
  };
  data::Subset const some{Direct{}, {5, 1}};
  static_assert(data::ReadsIntoRows<std::remove_const_t<decltype(some)>, data::PadCollate>);
  static_assert(!data::NamesSamples<data::Subset<Grouped>>);
  CHECK(some.extent(0).lengths[0] == 5);
  CHECK(some.name(1) == "file 1");
  CHECK(some.fingerprint() != data::Subset{Direct{}, {1, 5}}.fingerprint());
  CHECK(some.fingerprint() != data::Subset{data::Concat{Direct{}, Direct{}}, {5, 1}}.fingerprint());
  data::DataLoader loader{some, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2, .workers = 0}};
  loader.start({}, 0, 0, 1);
  auto const held = loader.next();
  auto const& ids = held.batches()[0][&Sample::ids].values;
  CHECK(ids(0, 0) == 5);
  CHECK(ids(1, 0) == 1);
}

TEST_CASE("a subset of drawn samples passes on the loader's key") {
  data::Transform const drawn{Grouped{}, [](int value, data::SampleKey const& key) {
                                return static_cast<Index>(value) * 1000 + 10 * key.epoch + key.position;
                              }};
  data::Subset const some{drawn, {5, 0}};
  static_assert(data::DrawsSamples<std::remove_const_t<decltype(some)>>);
  static_assert(!data::DrawsSamples<data::Subset<Grouped>>);
  CHECK(some.get(0, {7, 2, 1}) == 50'021);
}

TEST_CASE("a subset and its wrappers pass on the readers for workers") {
  struct Decoding {
    struct Decoder {
      int frames = 0;  // that it has decoded
      int get(Index i) { return ++frames, static_cast<int>(i); }
      int get(Index i, data::SampleKey const& key) { return get(i) + 100 * static_cast<int>(key.epoch); }
    };
    Index size() const { return 9; }
    int get(Index) const { return -1; }  // without a decoder
    int get(Index, data::SampleKey const&) const { return -1; }
    Decoder worker() const { return {}; }
  };
  auto const twice = [](int x, data::SampleKey const& key) { return 2 * x + static_cast<int>(key.position); };
  data::Transform const all{data::Subset{Decoding{}, {7, 3, 8}}, twice};
  static_assert(data::HasWorkers<std::remove_const_t<decltype(all)>>);
  auto worker = all.worker();
  CHECK(worker.get(1, {0, 2, 5}) == 2 * 203 + 5);
  CHECK(worker.get(2) == 2 * 8 + 2);
  data::Transform const plain{data::Subset{Decoding{}, {7, 3, 8}}, [](int x) { return x + 1; }};
  CHECK(plain.worker().get(0) == 8);
  CHECK(plain.worker().get(0, {0, 1, 0}) == 108);
  struct Shared {
    Index size() const { return 1; }
    int get(Index) const { return 0; }
  };
  static_assert(!data::HasWorkers<data::Subset<Shared>>);
}
