// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <probe.hpp>

namespace lockstep_bench {

/// Works for about that many seconds and returns the work done per second.
using Rate = std::function<double(double seconds)>;

/// Median and quartiles.
struct Spread {
  double median = 0, low = 0, high = 0;

  static Spread of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    auto at = [&](double share) {
      auto const place = share * static_cast<double>(values.size() - 1);
      auto const below = static_cast<std::size_t>(place);
      auto const above = std::min(below + 1, values.size() - 1);
      auto const part = place - static_cast<double>(below);
      return values[below] * (1 - part) + values[above] * part;
    };
    return {at(0.5), at(0.25), at(0.75)};
  }
};

struct Blocks {
  double seconds = 0.5;  ///< a peer's turn
  int count = 9;         ///< blocks, each with one turn of either
};

/// Compares this library with its peers, prints a line for each case and appends it to the CSV file that
/// LOCKSTEP_RATIOS names (`benchmark,case,peer,ratio,low,high`): the median over blocks of our rate over the peer's,
/// with quartiles. 1 is parity, larger is better for us.
class Ratios {
 public:
  explicit Ratios(std::string benchmark) : benchmark_(std::move(benchmark)) {
    double load[1] = {0};
    getloadavg(load, 1);
    std::printf("%zu processors, %s; load over the last minute %.1f\n", processor_numbers().size(),
                Probe::measure().state(), load[0]);
    auto const* path = std::getenv("LOCKSTEP_RATIOS");
    if (path != nullptr) file_ = std::fopen(path, "a");
  }
  ~Ratios() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Ratios(Ratios const&) = delete;
  Ratios& operator=(Ratios const&) = delete;

  /// The two alternate, and take turns at being first, so that slow changes affect both equally. A block during which
  /// the machine changed its state is dropped.
  void compare(std::string const& name, std::string const& peer, Rate const& ours, Rate const& theirs,
               Blocks blocks = {}) {
    ours(blocks.seconds / 4);  // page faults, caches, lazy setup
    theirs(blocks.seconds / 4);
    std::vector<double> ratios;
    int shared = 0, dropped = 0;
    for (auto before = Probe::measure(); static_cast<int>(ratios.size()) + dropped < blocks.count;) {
      bool const we_first = (ratios.size() + static_cast<std::size_t>(dropped)) % 2 == 0;
      auto const first = (we_first ? ours : theirs)(blocks.seconds);
      auto const second = (we_first ? theirs : ours)(blocks.seconds);
      auto const after = Probe::measure();
      if (Probe::agree(before, after)) {
        ratios.push_back(we_first ? first / second : second / first);
        shared += after.round_trip_ns < 250 ? 1 : 0;
      } else {
        ++dropped;
      }
      before = after;
    }
    if (ratios.size() < 3) {
      std::printf("%-66s %-10s no ratio: the machine changed its state in %d of %d blocks\n", name.c_str(),
                  peer.c_str(), dropped, blocks.count);
      return;
    }
    char state[96];
    std::snprintf(state, sizeof state, "%zu blocks, %d with cores that share a cache, %d dropped", ratios.size(),
                  shared, dropped);
    report(name, peer, Spread::of(ratios), state);
  }

  /// A ratio that needs no alternation, such as one of counted instructions.
  void report(std::string const& name, std::string const& peer, Spread ratio, std::string const& how) {
    std::printf("%-66s %-10s %6.2f  (%.2f to %.2f; %s)\n", name.c_str(), peer.c_str(), ratio.median, ratio.low,
                ratio.high, how.c_str());
    std::fflush(stdout);
    if (file_ == nullptr) return;
    std::fprintf(file_, "%s,\"%s\",%s,%.3f,%.3f,%.3f\n", benchmark_.c_str(), name.c_str(), peer.c_str(), ratio.median,
                 ratio.low, ratio.high);
    std::fflush(file_);
  }

 private:
  std::string benchmark_;
  std::FILE* file_ = nullptr;
};

}  // namespace lockstep_bench
