// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/memory/cuda_graph.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// Number of keys whose graphs a CudaGraphCache keeps.
inline constexpr std::size_t max_recordings = 32;

/// CUDA graphs of one stream's work that depends only on its key and on the contents of device memory. The first time,
/// work of a key runs without a graph. The second time it is captured, because its memory has reached its final size.
/// Work that cannot be captured always runs without a graph. The most recently used keys are kept.
///
/// `Outcome` is the work's result on the host; it must be equal each time.
template <std::equality_comparable Key, class Outcome>
class CudaGraphCache {
 public:
  static constexpr std::size_t max_keys = max_recordings;  ///< graphs that are kept

  /// Launches a key's graph, or captures and launches it, and returns its outcome on the host. Returns null if the work
  /// did not run; the caller then runs it. `memory` identifies the work's memory: graphs with another number
  /// are discarded. The pointer is valid until the next call.
  /// @throws exceptions of `work`, except CudaError, which means that the work cannot be captured
  template <class Work>
  [[nodiscard]] Outcome const* run(Stream<CudaSpace> stream, Key const& key, std::uint64_t memory, Work&& work) {
    auto* const found = find(key, memory);
    if (!found) {
      add(key);
      return nullptr;
    }
    if (!found->graph && !capture(stream, *found, work)) return nullptr;
    found->graph.launch(stream);
    return &found->outcome;
  }
  /// Captures a key's work without running it, unless its graph can run already. Memory must have its final size.
  /// Returns the outcome, or null if the work cannot be captured. The pointer is valid until the next call.
  /// @throws as `run`
  template <class Work>
  [[nodiscard]] Outcome const* prepare(Stream<CudaSpace> stream, Key const& key, std::uint64_t memory, Work&& work) {
    auto* found = find(key, memory);
    if (!found) found = &add(key);
    if (!found->graph) {
      if (!capture(stream, *found, work)) return nullptr;
      found->graph.upload(stream);
    }
    return &found->outcome;
  }
  /// Returns the number of graphs that can run.
  [[nodiscard]] std::size_t graphs() const noexcept {
    return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(),
                                                  [](auto const& entry) { return static_cast<bool>(entry.graph); }));
  }

 private:
  static constexpr int max_failures = 2;  // memory that grew late can fail the first try

  struct Entry {
    Key key;
    std::uint64_t used;
    CudaGraph graph{};
    Outcome outcome{};
    int failures = 0;
  };

  /// Returns the key's entry, used now, or null. Discards graphs of other memory.
  [[nodiscard]] Entry* find(Key const& key, std::uint64_t memory) {
    if (std::exchange(memory_, memory) != memory)
      for (auto& entry : entries_) entry.graph = {};
    ++clock_;
    auto const found =
        std::find_if(entries_.begin(), entries_.end(), [&](auto const& entry) { return entry.key == key; });
    if (found == entries_.end()) return nullptr;
    found->used = clock_;
    return &*found;
  }
  Entry& add(Key const& key) {
    if (entries_.size() < max_keys) return entries_.emplace_back(Entry{key, clock_});
    auto const oldest = std::min_element(entries_.begin(), entries_.end(),
                                         [](auto const& a, auto const& b) { return a.used < b.used; });
    return *oldest = {key, clock_};
  }
  template <class Work>
  static bool capture(Stream<CudaSpace> stream, Entry& entry, Work&& work) {
    if (entry.failures == max_failures) return false;
    try {
      entry.graph = CudaGraph(stream, [&] { entry.outcome = work(); });
    } catch (CudaError const&) {
      cudaGetLastError();  // clears the error, or the runtime reports it again
      ++entry.failures;
      return false;
    }
    return true;
  }

  std::vector<Entry> entries_;
  std::uint64_t memory_ = 0, clock_ = 0;
};

}}}  // namespace lockstep::memory
