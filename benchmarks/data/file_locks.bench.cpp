// SPDX-License-Identifier: Apache-2.0
// One file per sample, read by one, two and four processes: without a lock, with a shared lock on each sample's file,
// with a shared and with an exclusive lock on one file for all, and through this library's loader, which takes no
// locks.
#include <cstddef>
#include <cstdint>
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

/// Reads files in a shuffled order into three batches in turn, as the loader does.
int read_by_hand(std::string const& how, std::string const& folder, std::uint64_t seed) {
  std::vector<char> batches(3 * batch * file_bytes);
  auto const lock_file = FilesFolder::lock_file(folder);
  std::uint64_t drawn = 0;
  auto const one = [&] {
    auto const i = static_cast<int>(mix(seed, drawn++) % file_count);
    auto* const row = batches.data() + drawn % (3 * batch) * file_bytes;
    auto const at = how == "one_shared" || how == "one_exclusive" ? opened(lock_file) : -1;
    if (at >= 0) lock(at, how == "one_shared" ? LOCK_SH : LOCK_EX);
    auto const fd = opened(FilesFolder::file(folder, i));
    if (how == "each_shared") lock(fd, LOCK_SH);
    read_whole(fd, row);
    close(fd);
    if (at >= 0) close(at);
  };
  return answer_each([&](long count) {
    auto const files = count * batch;
    return Answer{seconds_of(files, one), static_cast<double>(files)};
  });
}

/// Reads them through a loader without workers.
int read_by_loader(std::string const& folder, std::uint64_t seed) {
  data::DataLoader loader{data::FolderDataset{folder + "/samples/*"},
                          data::ShuffledSampler{.seed = seed},
                          data::PadCollate{},
                          {.batch_size = batch, .workers = 0, .tail = data::Tail::drop}};
  loader.start({}, 0, 0, Index{1} << 40);
  return answer_each([&](long count) {
    return Answer{seconds_of(count, [&] { static_cast<void>(loader.next().batches()[0].rows()); }),
                  static_cast<double>(count * batch)};
  });
}

Role const reader("reader", [](std::vector<std::string> const& arguments) {
  auto const seed = std::strtoull(arguments.at(2).c_str(), nullptr, 10);
  return arguments[0] == "loader" ? read_by_loader(arguments[1], seed) : read_by_hand(arguments[0], arguments[1], seed);
});

}  // namespace

void register_benchmarks() {
  Shared const folder([] { return FilesFolder(file_count, file_bytes); });
  for (int const processes : {1, 2, 4}) {
    // Concurrent runs of this program; an iteration is a batch of each.
    auto const add_readers = [&](std::string const& name, std::string const& how) {
      auto command = own_role("reader", {}, processes);
      command.words = [folder, how, processes, words = command.words] {
        auto all = words();
        all.insert(all.end(), {how, folder->path()});
        if (processes == 1) all.emplace_back("0");
        return all;
      };
      add_process(name, command);
    };
    auto const as = "/processes:" + std::to_string(processes);
    add_readers("file_locks/unlocked" + as, "without");
    for (std::string const how : {"each_shared", "one_shared", "one_exclusive"})
      add_readers("file_locks/unlocked" + as + "/peer:" + how, how);
    add_readers("file_locks/loader" + as, "loader");
    add_readers("file_locks/loader" + as + "/peer:unlocked", "without");
  }
}
