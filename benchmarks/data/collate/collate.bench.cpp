// SPDX-License-Identifier: Apache-2.0
// Bytes of batches per second against the machine's roof: memcpy by as many threads.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/source/array_dataset.hpp>
#include <lockstep/data/source/mapped_reads.hpp>
#include <lockstep/data/source/open_raw.hpp>

#include <data/clips_file.hpp>
#include <data/samples.hpp>
#include <rate.hpp>
#include <ratios.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// memcpy of `bytes` at a time by some threads: from places spread over `held` bytes, to three buffers in turn.
class Roof {
 public:
  Roof(std::size_t bytes, std::size_t held, int threads)
      : bytes_(bytes), pool_(threads), from_(std::max(held, 2 * bytes), 1), to_(3, std::vector<char>(bytes, 1)) {}

  /// Bytes per second.
  double operator()(double duration, Time time) {
    return static_cast<double>(bytes_) * rate(duration, time, [&] {
             at_ = (at_ + bytes_) % (from_.size() - bytes_);
             auto* const to = to_[turn_++ % 3].data();
             auto const threads = static_cast<std::size_t>(pool_.threads()), part = bytes_ / threads;
             pool_.run(pool_.threads(), [&](Index task) {
               auto const begin = static_cast<std::size_t>(task) * part;
               std::memcpy(to + begin, from_.data() + at_ + begin, part);
             });
           });
  }

 private:
  std::size_t bytes_;
  ThreadPool pool_;
  std::vector<char> from_;
  std::vector<std::vector<char>> to_;
  std::size_t at_ = 0, turn_ = 0;
};

/// One thread is the caller, measured by its processor time; two are workers, measured by wall-clock time while the
/// caller waits.
template <class D, class Collate, class Bytes>
void compare(Ratios& ratios, std::string const& label, D const& dataset, Index batch, Collate const& collate,
             std::size_t held_bytes, Bytes&& bytes_of) {
  for (int threads : {1, 2}) {
    data::DataLoader loader{
        dataset,
        data::ShuffledSampler{.seed = 1},
        collate,
        {.batch_size = batch, .workers = threads == 1 ? 0 : threads, .prefetch = 2, .tail = data::Tail::drop}};
    loader.start({}, 0, 0, Index{1} << 40);
    auto const next = [&] { return static_cast<std::size_t>(bytes_of(loader.next().batches()[0])); };
    std::size_t most = 0;
    for (int i = 0; i < 20; ++i) most = std::max(most, next());
    Roof roof(most, held_bytes, threads);
    auto const time = threads == 1 ? Time::processor : Time::wall;
    ratios.compare(
        label + (threads == 1 ? ", 1 thread" : ", 2 threads"), "roof",
        [&](double duration) {
          double bytes = 0;
          auto const start = seconds(time);
          double elapsed = 0;
          while (elapsed < duration) {
            bytes += static_cast<double>(next());
            elapsed = seconds(time) - start;
          }
          return bytes / elapsed;
        },
        [&](double duration) { return roof(duration, time); }, {.seconds = 0.2, .count = 5});
  }
}

/// Concatenated trajectories in one block of memory.
class Arena {
 public:
  explicit Arena(Index count) : offsets_{0} {
    for (Index i = 0; i < count; ++i) offsets_.push_back(offsets_.back() + trajectory_length(i));
    states_ = std::make_shared < std::vector < std::array < float;
    64 >>> (static_cast<std::size_t>(offsets_.back()));
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return states_->size() * 256; }
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(offsets_.size()) - 1; }
  [[nodiscard]] Trajectory get(Index i) const { return {{begin(i), begin(i) + length(i)}}; }
  [[nodiscard]] data::SampleExtent<Trajectory> extent(Index i) const noexcept { return {{length(i)}}; }
  void read_into(Index i, data::Row<Trajectory> row) const {
    auto const to = row[&Trajectory::states];
    std::memcpy(to.data(), begin(i), to.size_bytes());
  }

 private:
  [[nodiscard]] std::array<float, 64> const* begin(Index i) const noexcept {
    return states_->data() + offsets_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] Index length(Index i) const noexcept {
    auto const k = static_cast<std::size_t>(i);
    return offsets_[k + 1] - offsets_[k];
  }

  std::vector<Index> offsets_;
  std::shared_ptr<std::vector<std::array<float, 64>>> states_;
};

/// Clips that are read from a file, or copied from its mapping.
void compare_clips(Ratios& ratios, std::string const& how, data::FileArray const& array) {
  data::ArrayDataset const set{data::ArrayMember{&Clip::pixels, array}};
  compare(ratios, "collate clips 17x256x256 uint8, batch 32, one file" + how, set, 32, data::PadCollate{},
          std::size_t{160} * 17 * 256 * 256, [](auto const& batch) { return batch[&Clip::pixels].values.size(); });
}

}  // namespace

int main() {
  Ratios ratios("data/collate/collate");
  {
    constexpr Index count = 3072;
    auto const states_bytes = [](auto const& batch) { return batch[&Trajectory::states].values.size() * Index{4}; };
    auto const label = std::string("collate trajectories 80 to 160 x 64 float32, batch 256");
    Arena const arena(count);
    compare(ratios, label + ", padded, one arena", arena, 256, data::PadCollate{}, arena.bytes(), states_bytes);
    data::InMemoryDataset const set{samples<Trajectory>(count, [&](Index i) {
      return Trajectory{std::vector<std::array<float, 64>>(static_cast<std::size_t>(trajectory_length(i)))};
    })};
    compare(ratios, label + ", padded", set, 256, data::PadCollate{}, arena.bytes(), states_bytes);
    compare(ratios, label + ", ragged", set, 256, data::RaggedCollate{}, arena.bytes(), states_bytes);
  }
  {
    std::size_t held = 0;
    data::InMemoryDataset const set{samples<Pose>(512, [&](Index i) {
      auto const length = static_cast<std::size_t>(pose_length(i));
      held += length * 1596;
      return Pose{std::vector<std::array<float, 399>>(length)};
    })};
    compare(ratios, "collate pose 30 to 600 x 133 x 3 float32, batch 32, padded", set, 32, data::PadCollate{}, held,
            [&](auto const& batch) { return batch[&Pose::frames].values.size() * Index{4}; });
  }
  data::MappedReads const leave;
  for (char const* folder : {static_cast<char const*>(nullptr), "/dev/shm"}) {
    ClipsFile const file(160, folder);
    auto const array = data::open_raw<std::uint8_t>(file.path(), {17, 256, 256});
    std::string const where = folder == nullptr ? "" : " in tmpfs";
    compare_clips(ratios, where + ", read", array);
    compare_clips(ratios, where + ", mapped", array.mapped(leave));
  }
}
