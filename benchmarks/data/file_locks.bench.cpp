// SPDX-License-Identifier: Apache-2.0
// One file per sample, read by one, two and four processes: without a lock, with a shared lock on each sample's file,
// with a shared and with an exclusive lock on one file for all, and through this library's loader, which takes no
// locks.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <lockstep/core/mix.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/source/folder_dataset.hpp>

#include <answer.hpp>
#include <data/files_folder.hpp>
#include <peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr std::size_t file_bytes = 64 << 10;
constexpr int file_count = 2000;
constexpr Index batch = 32;

int opened(std::string const& path) {
  auto const fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("cannot open " + path);
  return fd;
}
void lock(int fd, int how) {
  if (flock(fd, how) != 0) throw std::runtime_error("cannot lock");
}
void read_whole(int fd, char* out) {
  if (read(fd, out, file_bytes) != static_cast<ssize_t>(file_bytes)) throw std::runtime_error("cannot read");
}

/// Reads files in a shuffled order into three batches in turn, as the loader does; each answer is files per second.
int read_by_hand(std::string const& how, std::string const& folder, std::uint64_t seed) {
  std::vector<char> batches(3 * batch * file_bytes);
  auto const lock_file = FilesFolder::lock_file(folder);
  std::uint64_t drawn = 0;
  auto const one = [&] {
    auto const i = static_cast<int>(mix(seed, drawn++) % file_count);
    auto* const row = batches.data() + drawn % (3 * batch) * file_bytes;
    auto const at = how == "one shared" || how == "one exclusive" ? opened(lock_file) : -1;
    if (at >= 0) lock(at, how == "one shared" ? LOCK_SH : LOCK_EX);
    auto const fd = opened(FilesFolder::file(folder, i));
    if (how == "each shared") lock(fd, LOCK_SH);
    read_whole(fd, row);
    close(fd);
    if (at >= 0) close(at);
  };
  return answer_each([&](double duration) { return rate(duration, Time::wall, one); });
}

/// Reads them through a loader without workers.
int read_by_loader(std::string const& folder, std::uint64_t seed) {
  data::DataLoader loader{data::FolderDataset{folder + "/samples/*"},
                          data::ShuffledSampler{.seed = seed},
                          data::PadCollate{},
                          {.batch_size = batch, .workers = 0, .tail = data::Tail::drop}};
  loader.start({}, 0, 0, Index{1} << 40);
  return answer_each([&](double duration) {
    return static_cast<double>(batch) *
           rate(duration, Time::wall, [&] { static_cast<void>(loader.next().batches()[0].rows()); });
  });
}

/// Concurrent runs of this program, and their total files per second.
class Readers {
 public:
  Readers(std::string const& how, std::string const& folder, int count) {
    for (int i = 0; i < count; ++i) {
      auto reader = Peer::start({"/proc/self/exe", how, folder, std::to_string(i)});
      if (!reader) throw std::runtime_error("file_locks: cannot start itself");
      readers_.push_back(std::move(*reader));
    }
  }
  double operator()(double duration) {
    for (auto& reader : readers_) reader.send(duration);
    double sum = 0;
    for (auto& reader : readers_) sum += reader.answer();
    return sum;
  }

 private:
  std::vector<Peer> readers_;
};

void compare_all() {
  FilesFolder const folder(file_count, file_bytes);
  Ratios ratios("data/file_locks");
  for (int processes : {1, 2, 4}) {
    auto const as = "files of 64 KiB, " + std::to_string(processes) + (processes == 1 ? " process" : " processes");
    Readers without("without", folder.path(), processes), ours("loader", folder.path(), processes);
    for (std::string const how : {"each shared", "one shared", "one exclusive"}) {
      Readers locked(how, folder.path(), processes);
      ratios.compare(as + ", without locks", how, std::ref(without), std::ref(locked), {.seconds = 0.2, .count = 5});
    }
    ratios.compare(as + ", loader", "without", std::ref(ours), std::ref(without), {.seconds = 0.2, .count = 5});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return compare_all(), 0;
  auto const seed = std::strtoull(argv[3], nullptr, 10);
  return std::string(argv[1]) == "loader" ? read_by_loader(argv[2], seed) : read_by_hand(argv[1], argv[2], seed);
}
