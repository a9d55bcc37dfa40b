// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "program.hpp"

/// Estimates the GPU cost of accesses and instructions. At exit it writes a line for each source location to the file
/// that PTX_COUNTS names.
namespace ptx {

class Counts {
 public:
  static Counts& instance() {
    static auto& counts = *new Counts(std::getenv("PTX_COUNTS"));  // written after other static objects are destroyed
    return counts;
  }
  explicit Counts(char const* path) : path_(path) {}
  [[nodiscard]] bool wanted() const noexcept { return path_ != nullptr; }

  /// The lanes of a warp access memory together if each executes the access for the n-th time since its block began.
  void note(std::uint32_t thread, Instruction const& instruction, std::uint32_t time, std::uint64_t at,
            std::size_t bytes, bool writes, bool shared) {
    auto& access = accesses_[{thread / 32, &instruction, time, shared}];
    access.bytes = bytes;
    access.writes = writes;
    access.lanes.emplace_back(thread % 32, at);
  }
  /// Called when a warp multiplies two matrices.
  void note_product(std::string const& kernel) { ++products_[kernel]; }
  /// Called when a block of the kernel has ended; place(instruction) returns its source location.
  template <class Place>
  void end_block(std::string const& kernel, std::uint64_t steps, Place const& place) {
    steps_[kernel] += steps;
    for (auto& [key, access] : accesses_) {
      bool const shared = std::get<3>(key);
      auto& total = totals_[{kernel, place(*std::get<1>(key)),
                             (shared ? "shared " : "global ") + std::string(access.writes ? "write" : "read")}];
      ++total.times;
      total.lanes += access.lanes.size();
      std::sort(access.lanes.begin(), access.lanes.end());  // threads do not run in the order of lanes
      shared ? add_ways(total, access) : add_sectors(total, access);
    }
    accesses_.clear();
  }

  /// Writes a line with tab-separated fields for each location, and one for each kernel.
  [[nodiscard]] std::string text() const {
    std::string all = "kernel\tplace\taccess\ttimes\tlanes\tpieces\tleast pieces\n";
    for (auto const& [key, total] : totals_) {
      all += std::get<0>(key) + "\t" + std::get<1>(key) + "\t" + std::get<2>(key);
      for (auto const number : {total.times, total.lanes, total.pieces, total.least})
        all += "\t" + std::to_string(number);
      all += "\n";
    }
    for (auto const& [kernel, steps] : steps_) all += kernel + "\t\tinstructions\t" + std::to_string(steps) + "\n";
    for (auto const& [kernel, products] : products_)
      all += kernel + "\t\tproducts of matrices\t" + std::to_string(products) + "\n";
    return all;
  }
  void write() const {
    if (steps_.empty()) return;  // for example in a parent process
    auto* const file = std::fopen(path_, "w");
    if (!file) return;
    std::fputs(text().c_str(), file);
    std::fclose(file);
  }

 private:
  struct Access {
    std::size_t bytes = 0;
    bool writes = false;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> lanes;  // and their addresses
  };
  struct Total {
    std::uint64_t times = 0, lanes = 0, pieces = 0, least = 0;
  };

  /// Global memory is accessed in sectors of 32 bytes.
  static void add_sectors(Total& total, Access const& access) {
    std::set<std::uint64_t> sectors, places;
    for (auto const& [lane, at] : access.lanes) {
      places.insert(at);
      for (auto sector = at / 32; sector <= (at + access.bytes - 1) / 32; ++sector) sectors.insert(sector);
    }
    total.pieces += sectors.size();
    total.least += (places.size() * access.bytes + 31) / 32;
  }
  /// Shared memory has 32 banks of four bytes; accesses of lanes to different words of one bank are serialized. Wider
  /// accesses are made by a half or a quarter of a warp at a time.
  static void add_ways(Total& total, Access const& access) {
    auto const lanes = access.bytes <= 4 ? std::size_t{32} : 128 / access.bytes;
    for (std::size_t begin = 0; begin < access.lanes.size(); begin += lanes) {
      std::map<std::uint64_t, std::set<std::uint64_t>> words;
      for (auto i = begin; i < std::min(begin + lanes, access.lanes.size()); ++i) {
        auto const at = access.lanes[i].second;
        for (auto word = at / 4; word <= (at + access.bytes - 1) / 4; ++word) words[word % 32].insert(word);
      }
      std::size_t most = 0;
      for (auto const& [bank, of_bank] : words) most = std::max(most, of_bank.size());
      total.pieces += most;
      ++total.least;
    }
  }

  char const* path_;
  std::map<std::tuple<std::uint32_t, Instruction const*, std::uint32_t, bool>, Access> accesses_;
  std::map<std::tuple<std::string, std::string, std::string>, Total> totals_;
  std::map<std::string, std::uint64_t> steps_, products_;
};

}  // namespace ptx
