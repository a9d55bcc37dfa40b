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

/// Recordings of one stream's work that depends only on its key and on the contents of device memory. The first time,
/// work of a key runs unrecorded. The second time it is recorded, because its memory has reached its final size. Work
/// that cannot be recorded always runs unrecorded. The most recently used keys are kept.
///
/// `Outcome` is the work's result on the host; it must be equal each time.
template <std::equality_comparable Key, class Outcome>
class CudaRecordings {
 public:
  static constexpr std::size_t most_keys = 32;

  /// Runs a key's recording, or records and runs it, and returns its outcome on the host. Returns null if the work did
  /// not run; the caller then runs it unrecorded. `memory` identifies the work's memory: recordings with another number
  /// are discarded. The pointer is valid until the next call.
  /// @throws exceptions of `work`, except CudaError, which means that recording is impossible
  template <class Work>
  [[nodiscard]] Outcome const* run(Stream<CudaSpace> stream, Key const& key, std::uint64_t memory, Work&& work) {
    if (std::exchange(memory_, memory) != memory)
      for (auto& entry : entries_) entry.graph = {};
    ++clock_;
    auto const found =
        std::find_if(entries_.begin(), entries_.end(), [&](auto const& entry) { return entry.key == key; });
    if (found == entries_.end()) return add(key), nullptr;
    found->used = clock_;
    if (!found->graph && !record(stream, *found, work)) return nullptr;
    found->graph.launch(stream);
    return &found->outcome;
  }
  /// Returns the number of recordings that can run at once.
  [[nodiscard]] std::size_t recorded() const noexcept {
    return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(),
                                                  [](auto const& entry) { return static_cast<bool>(entry.graph); }));
  }

 private:
  static constexpr int most_failures = 2;  // memory that grew late can fail the first try

  struct Entry {
    Key key;
    std::uint64_t used;
    CudaGraph graph{};
    Outcome outcome{};
    int failures = 0;
  };

  void add(Key const& key) {
    if (entries_.size() < most_keys) {
      entries_.push_back({key, clock_});
    } else {
      auto const oldest = std::min_element(entries_.begin(), entries_.end(),
                                           [](auto const& a, auto const& b) { return a.used < b.used; });
      *oldest = {key, clock_};
    }
  }
  template <class Work>
  static bool record(Stream<CudaSpace> stream, Entry& entry, Work&& work) {
    if (entry.failures == most_failures) return false;
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
