// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <lockstep/data/data_loader.hpp>
#include <lockstep/data/in_memory_dataset.hpp>
#include <lockstep/data/pad_collate.hpp>
#include <lockstep/data/ragged_collate.hpp>
#include <lockstep/data/shuffled_sampler.hpp>
#include <lockstep/data/source/array_dataset.hpp>
#include <lockstep/data/source/open_raw.hpp>

#include <data/clips_file.hpp>
#include <data/samples.hpp>
#include <rate.hpp>
#include <ratios.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// Bytes of batches per second of this thread's work, against memcpy of as many: from places spread over as much
/// memory, to as many buffers in turn. What is padding counts on both sides.
template <class D, class Collate, class Bytes>
void compare(Ratios& ratios, std::string const& label, D const& dataset, Index batch, Collate const& collate,
             std::size_t held_bytes, Bytes&& bytes_of) {
  data::DataLoader loader{dataset,
                          data::ShuffledSampler{.seed = 1},
                          collate,
                          {.batch_size = batch, .workers = 0, .prefetch = 2, .tail = data::Tail::drop}};
  loader.start({}, 0, 0, Index{1} << 40);
  std::size_t most = 0;
  for (int i = 0; i < 20; ++i) most = std::max(most, static_cast<std::size_t>(bytes_of(loader.next().batches()[0])));
  std::vector<char> from(std::max(held_bytes, 2 * most), 1);
  std::vector<std::vector<char>> to(3, std::vector<char>(most, 1));
  std::size_t at = 0, turn = 0;
  ratios.compare(
      label + ", 1 thread", "roof",
      [&](double duration) {
        double bytes = 0;
        auto const start = seconds(Time::processor);
        double elapsed = 0;
        while (elapsed < duration) {
          bytes += static_cast<double>(bytes_of(loader.next().batches()[0]));
          elapsed = seconds(Time::processor) - start;
        }
        return bytes / elapsed;
      },
      [&](double duration) {
        return static_cast<double>(most) * rate(duration, Time::processor, [&] {
                 at = (at + most) % (from.size() - most);
                 std::memcpy(to[turn++ % 3].data(), from.data() + at, most);
               });
      },
      {.seconds = 0.3, .count = 9});
}

}  // namespace

int main() {
  Ratios ratios("data/collate");
  auto const lengths_padded = [](auto const& column) { return column.values.size() * Index{4}; };
  {
    std::size_t held = 0;
    data::InMemoryDataset const set{samples<Trajectory>(3072, [&](Index i) {
      auto const length = static_cast<std::size_t>(trajectory_length(i));
      held += length * 256;
      return Trajectory{std::vector<std::array<float, 64>>(length)};
    })};
    compare(ratios, "collate trajectories 80 to 160 x 64 float32, batch 256, padded", set, 256, data::PadCollate{},
            held, [&](auto const& batch) { return lengths_padded(batch[&Trajectory::states]); });
    compare(ratios, "collate trajectories 80 to 160 x 64 float32, batch 256, ragged", set, 256, data::RaggedCollate{},
            held, [&](auto const& batch) { return lengths_padded(batch[&Trajectory::states]); });
  }
  {
    std::size_t held = 0;
    data::InMemoryDataset const set{samples<Pose>(512, [&](Index i) {
      auto const length = static_cast<std::size_t>(pose_length(i));
      held += length * 1596;
      return Pose{std::vector<std::array<float, 399>>(length)};
    })};
    compare(ratios, "collate pose 30 to 600 x 133 x 3 float32, batch 32, padded", set, 32, data::PadCollate{}, held,
            [&](auto const& batch) { return lengths_padded(batch[&Pose::frames]); });
  }
  {
    ClipsFile const file(160);
    data::ArrayDataset const set{
        data::ArrayMember{&Clip::pixels, data::open_raw<std::uint8_t>(file.path(), {17, 256, 256})}};
    compare(ratios, "collate clips 17x256x256 uint8, batch 32, records of one file", set, 32, data::PadCollate{},
            std::size_t{160} * 17 * 256 * 256, [](auto const& batch) { return batch[&Clip::pixels].values.size(); });
  }
}
