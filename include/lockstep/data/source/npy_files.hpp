// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/source/file_array.hpp>
#include <lockstep/data/source/mapped_reads.hpp>
#include <lockstep/data/source/open_npy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Gives access to the arrays of any number of .npy files. Maps up to `max_mapped` files at construction. With more
/// files, `array` opens each on demand, so the limit of open files does not apply. Copies share the list. Thread-safe.
class NpyFiles {
 public:
  static constexpr Index default_max_mapped = 64;  ///< files that are memory-mapped by default

  /// Does not throw for a file that cannot be opened. Instead `array` throws, so that a loader can skip its samples.
  explicit NpyFiles(std::vector<std::string> paths, Index max_mapped = default_max_mapped) {
    auto list = std::make_shared<List>();
    list->paths = std::move(paths);
    if (std::ssize(list->paths) <= max_mapped) {
      list->mapped.resize(list->paths.size());
      for (std::size_t i = 0; i < list->paths.size(); ++i) {
        try {
          list->mapped[i] = open_npy(list->paths[i]).mapped(list->mapped_reads);
        } catch (DataError const&) {
        }
      }
    }
    list_ = std::move(list);
  }

  /// Returns the number of files.
  [[nodiscard]] Index size() const noexcept { return std::ssize(list_->paths); }
  /// Returns the path of file i of [0, size()).
  [[nodiscard]] std::string const& path(Index i) const noexcept { return list_->paths[static_cast<std::size_t>(i)]; }
  /// Returns the array in file i of [0, size()).   @throws DataError if the file is missing or damaged
  [[nodiscard]] FileArray array(Index i) const {
    auto const& mapped = list_->mapped;
    if (!mapped.empty() && mapped[static_cast<std::size_t>(i)]) return *mapped[static_cast<std::size_t>(i)];
    return open_npy(path(i));
  }

 private:
  struct List {
    MappedReads mapped_reads;  // outlives the mappings
    std::vector<std::string> paths;
    std::vector<std::optional<FileArray>> mapped;
  };
  std::shared_ptr<List const> list_;
};

}}}  // namespace lockstep::data
