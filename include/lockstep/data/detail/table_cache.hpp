// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Cache of the latest tables by key, for orders that sort an epoch or a window of it. Thread-safe.
class TableCache {
 public:
  using Table = std::shared_ptr<std::vector<Index> const>;
  using Key = std::pair<Index, Index>;

  explicit TableCache(std::size_t max_tables) : max_tables_(max_tables) { tables_.reserve(max_tables); }

  /// Returns the table of a key; makes it with `make(table)` if it is not in the cache.
  template <class Make>
  [[nodiscard]] Table get(Key key, Make&& make) {
    std::lock_guard lock(mutex_);
    auto const found =
        std::find_if(tables_.begin(), tables_.end(), [&](auto const& each) { return each.first == key; });
    if (found != tables_.end()) return found->second;
    auto table = std::make_shared<std::vector<Index>>();
    make(*table);
    if (tables_.size() == max_tables_) tables_.erase(tables_.begin());
    tables_.emplace_back(key, table);
    return table;
  }

 private:
  std::mutex mutex_;
  std::size_t const max_tables_;
  std::vector<std::pair<Key, Table>> tables_;  // oldest first
};

}}}  // namespace lockstep::data::detail
