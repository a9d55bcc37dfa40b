// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/nearest.hpp>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/source/detail/find_files.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// The bytes of a file, and the number of its class.
struct FileSample {
  std::vector<std::uint8_t> bytes;  ///< whole content of the file
  std::int32_t label = 0;           ///< index in classes()
};

/// Reads one sample per file of a folder tree; the file's folder names its class. Takes all files that match a pattern
/// such as "clips/*.npy", in the order of their paths. `*`, `?` and `[...]` match within a name, `**` any depth of
/// folders, including links to folders, except to one that contains the link. The constructor stores file sizes. Each
/// `get` opens, reads and closes its file, so the number of files is not limited. Decode the bytes with
/// data::Transform. Copies share the list. Thread-safe.
/// @throws DataError from the constructor if no file matches or a folder cannot be searched
/// @throws DataError from reading if a file is missing, cannot be read, or has changed in size
class FolderDataset {
 public:
  /// Takes the folders that hold files as classes, sorted by name.
  explicit FolderDataset(std::string_view pattern);
  /// Takes the given classes. Give the training data's classes to evaluation data, which may lack some of them:
  /// `FolderDataset{"test/*/*.jpg", training.classes()}`.
  /// @throws DataError if a file is in another folder
  /// @throws ConfigError if a class is given twice
  FolderDataset(std::string_view pattern, std::vector<std::string> classes)
      : list_(list_of(find(pattern), std::move(classes))) {}

  /// Returns the number of files.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(list_->files.size()); }
  /// Reads file i of [0, size()).
  [[nodiscard]] FileSample get(Index i) const;
  /// Returns the size of file i in bytes.
  [[nodiscard]] SampleExtent<FileSample> extent(Index i) const noexcept { return {{file(i).bytes}}; }
  /// Reads file i into its row of a batch.
  void read_into(Index i, Row<FileSample> row) const;
  /// Returns the path of file i.
  [[nodiscard]] std::string name(Index i) const { return file(i).path; }
  /// Returns the names of the classes in the order of their labels.
  [[nodiscard]] std::vector<std::string> const& classes() const noexcept { return list_->classes; }
  /// Returns the label of file i without reading it.
  [[nodiscard]] std::int32_t label(Index i) const noexcept { return file(i).label; }
  /// Returns a hash of paths and sizes.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept;

 private:
  struct File {
    std::string path;
    Index bytes;
    std::int32_t label;
  };
  struct List {
    std::vector<std::string> classes;
    std::vector<File> files;
  };
  [[nodiscard]] File const& file(Index i) const noexcept { return list_->files[static_cast<std::size_t>(i)]; }
  static std::string class_of(std::string_view path);
  static std::vector<detail::FoundFile> find(std::string_view pattern);
  static std::shared_ptr<List const> list_of(std::vector<detail::FoundFile> found, std::vector<std::string> classes);
  static void read(File const& file, std::span<std::uint8_t> out);

  std::shared_ptr<List const> list_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/folder_dataset.ipp>
#endif
