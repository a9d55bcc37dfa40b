// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda_emulation/device.hpp"
#include "parse.hpp"

/// Records the accesses of threads and reports accesses outside of arrays, misaligned accesses, reads of uninitialized
/// memory and data races.
namespace ptx {

/// The thread of an access: its number in the launch, and the number of barriers it has passed. PTX calls atomic,
/// volatile and relaxed accesses strong: they do not race with each other, but with other accesses.
struct Accessor {
  std::uint32_t launch = 0, block = 0, thread = 0, block_meetings = 0, warp_meetings = 0;
  struct {
    std::uint32_t line = 0;
    std::uint32_t file : 31 = 0, strong : 1 = 0;
  } at = {};
};

/// Reports of undefined behaviour, each printed once.
class Findings {
 public:
  static Findings& instance() {
    static Findings findings;
    return findings;
  }
  void add(std::string const& what) {
    if (!said_.insert(what).second) return;
    std::fprintf(stderr, "PTX: %s\n", what.c_str());
  }
  [[nodiscard]] bool any() const noexcept { return !said_.empty(); }
  /// Returns the findings until now and clears them, so that they do not fail the program.
  [[nodiscard]] std::set<std::string> take() { return std::exchange(said_, {}); }

 private:
  std::set<std::string> said_;
};

/// The last accesses to two adjacent bytes.
struct Cell {
  Accessor write, read;
};

class Region {
 public:
  Region(std::byte* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {}
  [[nodiscard]] bool holds(std::uint64_t at, std::size_t bytes) const noexcept {
    auto const before = at - reinterpret_cast<std::uint64_t>(begin_);
    return before <= bytes_ && bytes <= bytes_ - before;
  }

  /// Calls report(earlier access, whether it was a write) for each earlier access that races with this one.
  template <class Report>
  void note(std::uint64_t at, std::size_t bytes, bool writes, Accessor const& by, bool within_block,
            Report const& report) {
    if (bytes < 2) return;
    auto const first = (at - reinterpret_cast<std::uint64_t>(begin_)) / 2;
    if (cells_.size() < first + bytes / 2) cells_.resize(first + bytes / 2);
    for (auto i = first; i < first + bytes / 2; ++i) {
      auto& cell = cells_[i];
      if (races(cell.write, by, within_block)) report(cell.write, true);
      if (writes) {
        if (races(cell.read, by, within_block)) report(cell.read, false);
        cell.write = by;
      } else {
        cell.read = by;
      }
    }
  }
  [[nodiscard]] bool was_written(std::uint64_t at, Accessor const& by) const {
    auto const cell = (at - reinterpret_cast<std::uint64_t>(begin_)) / 2;
    if (cell >= cells_.size()) return false;
    auto const& write = cells_[cell].write;
    return write.launch == by.launch && write.block == by.block;
  }

 private:
  static bool races(Accessor const& earlier, Accessor const& by, bool within_block) noexcept {
    if (earlier.launch != by.launch || earlier.launch == 0 || (earlier.at.strong && by.at.strong)) return false;
    if (earlier.block != by.block) return !within_block;
    if (earlier.thread == by.thread || earlier.block_meetings != by.block_meetings) return false;
    return earlier.thread / 32 != by.thread / 32 || earlier.warp_meetings == by.warp_meetings;
  }

  std::byte* begin_;
  std::size_t bytes_;
  std::vector<Cell> cells_;
};

/// Device memory or page-locked memory; regions are looked up at their first access.
class Regions {
 public:
  static Regions& instance() {
    static Regions regions;
    return regions;
  }
  /// Locked while a kernel runs.
  static std::recursive_mutex& mutex() {
    static std::recursive_mutex mutex;
    return mutex;
  }
  Region* find(std::uint64_t at, std::size_t bytes) {
    if (last_ && last_->holds(at, bytes)) return last_;
    auto after = regions_.upper_bound(at);
    if (after != regions_.begin() && std::prev(after)->second.holds(at, bytes))
      return last_ = &std::prev(after)->second;
    auto const block = cuda_emulation::Memory::instance().find(reinterpret_cast<void const*>(at));
    if (!block || !block->holds(reinterpret_cast<void const*>(at), bytes)) return nullptr;
    auto const begin = reinterpret_cast<std::uint64_t>(block->begin);
    regions_.erase(begin);
    return last_ = &regions_.emplace(begin, Region(block->begin, block->bytes)).first->second;
  }
  /// Freed memory may be reused by another allocation.
  void forget(void const* memory) {
    std::lock_guard const lock(mutex());
    regions_.erase(reinterpret_cast<std::uint64_t>(memory));
    last_ = nullptr;
  }

 private:
  std::map<std::uint64_t, Region> regions_;
  Region* last_ = nullptr;
};

}  // namespace ptx
