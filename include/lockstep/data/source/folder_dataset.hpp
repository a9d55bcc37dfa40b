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
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/source/detail/find_files.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// The bytes of a file, and the number of its class.
struct FileSample {
  std::vector<std::uint8_t> bytes;
  std::int32_t label = 0;
};

/// Reads one sample per file of a folder tree; the file's folder names its class. Takes all files that match a pattern
/// such as "clips/**/*.npy", in the order of their paths. `*`, `?` and `[...]` match within a name, `**` any depth of
/// folders, including links to folders, except to one that contains the link. The constructor stores file sizes. Each
/// `get` opens, reads and closes its file, so the number of files is not limited. Decode the bytes with
/// data::Transform. Copies share the list. Thread-safe.
/// @throws DataError from the constructor if no file matches or a folder cannot be searched
/// @throws DataError from reading if a file is missing, cannot be read, or has changed in size
class FolderDataset {
 public:
  /// Takes the folders that hold files as classes, sorted by name.
  explicit FolderDataset(std::string_view pattern) {
    auto found = find(pattern);
    std::vector<std::string> classes;
    for (auto const& file : found) classes.push_back(class_of(file.path));
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    list_ = list_of(std::move(found), std::move(classes));
  }
  /// Takes the given classes. Give the training data's classes to evaluation data, which may lack some of them:
  /// `FolderDataset{"test/*/*.jpg", training.classes()}`.
  /// @throws DataError if a file is in another folder
  /// @throws ConfigError if a class is given twice
  FolderDataset(std::string_view pattern, std::vector<std::string> classes)
      : list_(list_of(find(pattern), std::move(classes))) {}

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(list_->files.size()); }
  [[nodiscard]] FileSample get(Index i) const {
    FileSample out{std::vector<std::uint8_t>(static_cast<std::size_t>(file(i).bytes)), file(i).label};
    read(file(i), out.bytes);
    return out;
  }
  [[nodiscard]] SampleExtent<FileSample> extent(Index i) const noexcept { return {{file(i).bytes}}; }
  void read_into(Index i, Row<FileSample> row) const {
    row[&FileSample::label] = file(i).label;
    read(file(i), row[&FileSample::bytes]);
  }
  [[nodiscard]] std::string name(Index i) const { return file(i).path; }
  /// Returns the names of the classes in the order of their labels.
  [[nodiscard]] std::vector<std::string> const& classes() const noexcept { return list_->classes; }
  [[nodiscard]] std::int32_t label(Index i) const noexcept { return file(i).label; }
  /// Returns a hash of paths and sizes.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    std::uint64_t hash = 0;
    for (auto const& each : list_->files) hash = mix(hash, mix(each.path), static_cast<std::uint64_t>(each.bytes));
    return hash;
  }

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
  static std::string class_of(std::string_view path) {
    auto const slash = path.rfind('/');
    if (slash == std::string_view::npos) return ".";
    auto const folder = path.substr(0, slash);
    return std::string(folder.substr(folder.rfind('/') + 1));
  }
  static std::vector<detail::FoundFile> find(std::string_view pattern) {
    return detail::find_at_least_one_file(pattern, "FolderDataset: the pattern \"" + std::string(pattern) + "\"",
                                          detail::FolderLinks::follow);
  }
  static std::shared_ptr<List const> list_of(std::vector<detail::FoundFile> found, std::vector<std::string> classes) {
    std::unordered_map<std::string_view, std::int32_t> labels;
    for (auto const& name : classes)
      if (!labels.try_emplace(name, static_cast<std::int32_t>(labels.size())).second)
        throw ConfigError("FolderDataset: the class \"" + name + "\" is given twice; give each class once");
    auto list = std::make_shared<List>();
    for (auto& file : found) {
      auto const folder = class_of(file.path);
      auto const label = labels.find(folder);
      if (label == labels.end()) {
        auto const near = nearest(folder, classes);
        throw DataError(file.path + ": its folder \"" + folder + "\" is not one of the " +
                        std::to_string(classes.size()) + " classes that were given" +
                        (near.empty() ? "" : " (the nearest is \"" + near + "\")") +
                        "; move the file, or add its folder to the classes and train again");
      }
      list->files.push_back({std::move(file.path), file.bytes, label->second});
    }
    list->classes = std::move(classes);
    return list;
  }
  static void read(File const& file, std::span<std::uint8_t> out) {
    FileDescriptor const open(file.path);
    if (open.get() < 0) throw DataError(file.path + ": cannot be opened: " + system_message(errno));
    std::size_t got = 0;
    do {  // one system call for most files: it requests one byte more than expected
      char more = 0;
      std::array<::iovec, 2> const parts{{{out.data() + got, out.size() - got}, {&more, 1}}};
      auto const n = ::preadv(open.get(), parts.data(), 2, static_cast<::off_t>(got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw DataError(file.path + ": cannot be read: " + system_message(errno));
      if (n == 0) break;
      got += static_cast<std::size_t>(n);
    } while (got < out.size());
    if (got != out.size()) {
      throw DataError(file.path + ": has " + (got < out.size() ? std::to_string(got) : "more") + " bytes, and had " +
                      std::to_string(out.size()) + " when it was listed; leave the files alone while training");
    }
  }

  std::shared_ptr<List const> list_;
};

}}}  // namespace lockstep::data
