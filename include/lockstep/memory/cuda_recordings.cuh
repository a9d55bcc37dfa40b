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

namespace lockstep::inline LOCKSTEP_ABI::memory {

/// Recordings of one stream's work that its key and the contents of device memory say everything about. Work is
/// recorded when its key comes back, because memory is as large as it needs by then; it is done plainly the first time,
/// and for good where it cannot be recorded. The keys used last are kept.
///
/// `Outcome` is what the work leaves on the host: it is the same each time.
template <std::equality_comparable Key, class Outcome>
class CudaRecordings {
 public:
  static constexpr std::size_t most_keys = 32;

  /// Does the work of a key as it was recorded, or records and does it, and says what it leaves on the host. Null: it
  /// was not done, and the caller does it plainly. `memory` tells where the work's memory lies: recordings of another
  /// number are forgotten. The pointer is valid until the next call.
  /// @throws what `work` throws but for CudaError, which a recording that is not possible ends with
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
  /// That can be done at once.
  [[nodiscard]] std::size_t recorded() const noexcept {
    return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(),
                                                  [](auto const& entry) { return static_cast<bool>(entry.graph); }));
  }

 private:
  static constexpr int most_failures = 2;  // memory that grew late may have prevented the first try

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
      cudaGetLastError();  // the runtime would tell it again
      ++entry.failures;
      return false;
    }
    return true;
  }

  std::vector<Entry> entries_;
  std::uint64_t memory_ = 0, clock_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::memory
