// SPDX-License-Identifier: Apache-2.0
// Bytes of batches per second, against the machine's roof (memcpy by as many threads) and PyTorch's DataLoader. One
// thread is the caller, measured by its processor time; two are workers, measured by wall-clock time while the caller
// waits.
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
#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// memcpy of `bytes` at a time by some threads: from places spread over `held` bytes, to three buffers in turn.
class Roof {
 public:
  Roof(std::size_t bytes, std::size_t held, int threads)
      : bytes_(bytes), pool_(threads), from_(std::max(held, 2 * bytes), 1), to_(3, std::vector<char>(bytes, 1)) {}

  void operator()() {
    at_ = (at_ + bytes_) % (from_.size() - bytes_);
    auto* const to = to_[turn_++ % 3].data();
    auto const threads = static_cast<std::size_t>(pool_.threads()), part = bytes_ / threads;
    pool_.run(pool_.threads(), [&](Index task) {
      auto const begin = static_cast<std::size_t>(task) * part;
      std::memcpy(to + begin, from_.data() + at_ + begin, part);
    });
  }

 private:
  std::size_t bytes_;
  ThreadPool pool_;
  std::vector<char> from_;
  std::vector<std::vector<char>> to_;
  std::size_t at_ = 0, turn_ = 0;
};

/// A case of peers/loader.py with the collates to try, and a file of samples; empty for none.
struct PyTorch {
  std::string name = {}, collates = {};
  std::function<std::string()> file = {};
};

void set_rates(benchmark::State& state, Index batch, std::size_t bytes) {
  state.SetItemsProcessed(state.iterations() * batch);
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  state.counters["batch_bytes"] = per_iteration(static_cast<double>(bytes));
}

/// `held` counts the bytes of all samples, `bytes_of` those of a batch.
template <class Dataset, class Collate, class BytesOf>
void add_case(std::string const& name, Shared<Dataset> const& dataset, Index batch, Collate const& collate,
              std::function<std::size_t()> const& held, BytesOf bytes_of, PyTorch const& pytorch = {}) {
  for (int const threads : {1, 2}) {
    auto const start = [=] {
      data::DataLoader loader{
          *dataset,
          data::ShuffledSampler{.seed = 1},
          collate,
          {.batch_size = batch, .workers = threads == 1 ? 0 : threads, .prefetch = 2, .tail = data::Tail::drop}};
      loader.start({}, 0, 0, Index{1} << 40);
      return loader;
    };
    auto const next = [=](auto& loader) { return static_cast<std::size_t>(bytes_of(loader.next().batches()[0])); };
    Shared const largest([=] {
      auto loader = start();
      std::size_t most = 0;
      for (int i = 0; i < 20; ++i) most = std::max(most, next(loader));
      return most;
    });
    auto const full = name + "/threads:" + std::to_string(threads);
    auto* const ours = add(full, [=](benchmark::State& state) {
      auto loader = start();
      for (int i = 0; i < 4; ++i) next(loader);  // the slots' memory
      std::size_t bytes = 0;
      for (auto _ : state) bytes += next(loader);
      set_rates(state, batch, bytes);
    });
    auto* const roof = add(full + "/peer:roof", [=](benchmark::State& state) {
      Roof copy(*largest, held(), threads);
      for (auto _ : state) copy();
      set_rates(state, batch, static_cast<std::size_t>(state.iterations()) * *largest);
    });
    if (threads > 1) {
      ours->UseRealTime();
      roof->UseRealTime();
    }
    if (pytorch.name.empty()) continue;
    add_peer(full, "pytorch",
             python_peer(
                 "loader.py",
                 {pytorch.name, std::to_string(batch), threads == 1 ? "0" : std::to_string(threads), pytorch.collates},
                 threads == 1 ? "processor" : "", [file = pytorch.file] {
                   return file ? std::vector<std::string>{file()} : std::vector<std::string>{};
                 }));
  }
}

/// Concatenated trajectories in one block of memory.
class Arena {
 public:
  explicit Arena(Index count) : offsets_{0} {
    for (Index i = 0; i < count; ++i) offsets_.push_back(offsets_.back() + trajectory_length(i));
    using State = std::array<float, 64>;
    states_ = std::make_shared<std::vector<State>>(static_cast<std::size_t>(offsets_.back()));
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

/// 3,072 trajectories of 80 to 160 steps x 64 float32.
void add_trajectories() {
  constexpr Index count = 3072;
  auto const states_bytes = [](auto const& batch) { return batch[&Trajectory::states].values.size() * Index{4}; };
  Shared const arena([] { return Arena(count); });
  auto const held = [arena] { return arena->bytes(); };
  add_case("collate/trajectories/padded/one_arena", arena, 256, data::PadCollate{}, held, states_bytes);
  Shared const set([] {
    return data::InMemoryDataset{samples<Trajectory>(count, [](Index i) {
      return Trajectory{std::vector<std::array<float, 64>>(static_cast<std::size_t>(trajectory_length(i)))};
    })};
  });
  add_case("collate/trajectories/padded", set, 256, data::PadCollate{}, held, states_bytes,
           {"trajectories", "default,written"});
  add_case("collate/trajectories/ragged", set, 256, data::RaggedCollate{}, held, states_bytes);
}

/// Poses of 30 to 600 frames x 133 x 3 float32.
void add_poses() {
  Shared const set([] {
    return data::InMemoryDataset{samples<Pose>(512, [](Index i) {
      return Pose{std::vector<std::array<float, 399>>(static_cast<std::size_t>(pose_length(i)))};
    })};
  });
  auto const held = [] {
    std::size_t bytes = 0;
    for (Index i = 0; i < 512; ++i) bytes += static_cast<std::size_t>(pose_length(i)) * 1596;
    return bytes;
  };
  add_case("collate/poses/padded", set, 32, data::PadCollate{}, held,
           [](auto const& batch) { return batch[&Pose::frames].values.size() * Index{4}; },
           {"pose", "default,written"});
}

/// Sequences of 1,024 uint16, in batches of 16 KB to 8 MB.
void add_tokens() {
  Shared const set([] { return data::InMemoryDataset{samples<Tokens>(4096, [](Index) { return Tokens{}; })}; });
  for (Index const batch : {8, 64, 512, 4096})
    add_case(
        "collate/tokens/batch:" + std::to_string(batch), set, batch, data::PadCollate{},
        [] { return sizeof(Tokens) * 4096; },
        [](auto const& rows) { return rows[&Tokens::ids].values.size() * Index{2}; }, {"tokens", "default,written"});
}

/// Clips of 17x256x256 bytes that are read from one file, on a disk or in memory, or copied from its mapping.
void add_clips() {
  static data::MappedReads const mapped_reads;
  for (char const* folder : {static_cast<char const*>(nullptr), "/dev/shm"}) {
    Shared const file([folder] { return std::make_unique<ClipsFile>(160, folder); });
    for (bool const mapped : {false, true}) {
      Shared const set([=] {
        auto const array = data::open_raw<std::uint8_t>((*file)->path(), {17, 256, 256});
        return data::ArrayDataset{data::ArrayMember{&Clip::pixels, mapped ? array.mapped(mapped_reads) : array}};
      });
      PyTorch pytorch;
      if (!mapped && folder == nullptr) pytorch = {"clips", "default,written", [file] { return (*file)->path(); }};
      add_case(
          std::string("collate/clips") + (mapped ? "/mapped" : "") + (folder == nullptr ? "" : "/tmpfs"), set, 32,
          data::PadCollate{}, [] { return std::size_t{160} * 17 * 256 * 256; },
          [](auto const& batch) { return batch[&Clip::pixels].values.size(); }, pytorch);
    }
  }
}

}  // namespace

void register_benchmarks() {
  add_clips();
  add_tokens();
  add_trajectories();
  add_poses();
}
