// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/data/combine/transform.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/source/array_dataset.hpp>
#include <lockstep/data/source/folder_dataset.hpp>
#include <lockstep/data/source/mapped_reads.hpp>
#include <lockstep/data/source/open_npy.hpp>
#include <lockstep/data/source/tar_dataset.hpp>

#include "../../skip.hpp"
#include "../../temporary_folder.hpp"
#include "array_files.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

constexpr Index samples = 40, epochs = 3;

struct Numbers {
  std::vector<std::uint8_t> values;
};

/// Marks a place in strace's record: access() has no other effect here.
void mark(std::string const& what) { static_cast<void>(::access(("/mark/" + what).c_str(), F_OK)); }

template <class D>
void load(D dataset, std::string const& name, int workers) {
  data::DataLoader loader{
      std::move(dataset), data::ShuffledSampler{}, data::RaggedCollate{}, {.batch_size = 8, .workers = workers}};
  loader.start({}, 0, 0, 0);  // its threads
  mark("begin/" + name + std::to_string(workers));
  loader.start({}, 0, 0, epochs);
  for (Index i = 0; i < epochs * loader.steps(); ++i) static_cast<void>(loader.next());
  mark("end");
}

/// Counts the calls between the marks of a case.
std::map<std::string, int> calls_of(std::string const& record, std::string const& name) {
  std::map<std::string, int> out;
  auto at = record.find("\"/mark/begin/" + name + "\"");
  auto const end = record.find("\"/mark/end\"", at);
  REQUIRE(at != std::string::npos);
  REQUIRE(end != std::string::npos);
  while ((at = record.find('\n', at) + 1) < end) {  // "1234 pread64(3, ...", or "1234 <... pread64 resumed>"
    auto const call = record.find(' ', at) + 1, open = record.find('(', call);
    if (record.find_first_not_of(' ', call) < open && record[record.find_first_not_of(' ', call)] != '<')
      ++out[record.substr(record.find_first_not_of(' ', call), open - record.find_first_not_of(' ', call))];
  }
  out.erase("access");
  for (auto const* pipe : {"pipe", "pipe2"}) {  // used by sanitizers to inspect memory
    out["close"] -= 2 * out[pipe];
    out.erase(pipe);
  }
  if (out["close"] == 0) out.erase("close");
  return out;
}

}  // namespace

// Runs under strace, started by the case below.
TEST_CASE("loads from each kind of source" * doctest::skip()) {
  std::string const folder = std::getenv("LOCKSTEP_TEST_FOLDER");
  data::MappedReads const leave;
  for (int workers : {0, 2}) {
    auto const array = data::open_npy(folder + "/a.npy");
    load(data::ArrayDataset{data::ArrayMember{&Numbers::values, array.mapped(leave)}}, "mapped", workers);
    load(data::ArrayDataset{data::ArrayMember{&Numbers::values, array}}, "array", workers);
    load(data::FolderDataset(folder + "/files/*"), "folder", workers);
    load(data::Transform{data::TarDataset(folder + "/a.tar", data::TarIndex::memory),
                         [](data::TarSample const& sample) { return Numbers{sample.members.front().bytes}; }},
         "tar", workers);
  }
}

TEST_CASE("a sample takes one read, a file is opened and closed once for it, and nothing is locked") {
  TemporaryFolder const folder;
  std::string const row(64, 'x');
  std::string all;
  std::filesystem::create_directory(folder.path() / "files");
  for (Index i = 0; i < samples; ++i) {
    write_file(folder / ("files/" + std::to_string(i)), row);
    all += row;
  }
  write_file(folder / "a.npy", npy_of("|u1", "(" + std::to_string(samples) + ", 64)", all));
  REQUIRE(std::system(("cd '" + folder.path().string() + "/files' && tar cf ../a.tar *").c_str()) == 0);

  auto const record = folder / "calls";
  auto const strace = "strace -f -qq -o '" + record + "' -e trace=";
  if (std::system((strace + "access true 2>/dev/null").c_str()) != 0)
    return skip(Need::strace, "strace is not installed or may not trace");
  auto const self = std::filesystem::read_symlink("/proc/self/exe").string();
  auto const all_calls = "access,open,openat,creat,read,pread64,readv,preadv,preadv2,mmap,pipe,pipe2,close,flock,fcntl";
  // The leak checker cannot run under another tracer.
  REQUIRE(std::system(("ASAN_OPTIONS=detect_leaks=0 LOCKSTEP_TEST_FOLDER='" + folder.path().string() + "' " + strace +
                       all_calls + " '" + self + "' --no-skip --test-case='loads from each*' > /dev/null")
                          .c_str()) == 0);
  auto const text = read_file(record);
  for (std::string const workers : {"0", "2"}) {
    CAPTURE(workers);
    constexpr int read = samples * epochs;
    using Calls = std::map<std::string, int>;
    auto const without_memory = [&](std::string const& name) {
      auto calls = calls_of(text, name + workers);
      calls.erase("mmap");  // for threads and slabs
      return calls;
    };
    CHECK(without_memory("mapped") == Calls{});
    CHECK(without_memory("array") == Calls{{"pread64", read}});
    CHECK(without_memory("tar") == Calls{{"pread64", read}});
    CHECK(without_memory("folder") == Calls{{"openat", read}, {"preadv", read}, {"close", read}});
  }
}
