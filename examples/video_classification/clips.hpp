// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lockstep/core/progress.hpp>
#include <lockstep/data/classes/class_names.hpp>
#include <lockstep/data/source/csv_dataset.hpp>
#include <lockstep/data/source/csv_first_row.hpp>
#include <lockstep/data/source/npy_files.hpp>
#include <lockstep/data/source/text_lines_dataset.hpp>
#include <lockstep/lockstep.hpp>

#include "model.hpp"

namespace video_classification {
namespace data = lockstep::data;
using lockstep::ConfigError, lockstep::DataError;

/// Extents of a clip; 0: from the data.
struct ClipSize {
  Index frames = 0, height = 0, width = 0;

  [[nodiscard]] Index pixels() const noexcept { return frames * height * width; }
  [[nodiscard]] std::string text() const {
    return std::to_string(frames) + " x " + std::to_string(height) + " x " + std::to_string(width);
  }
};

enum class Part { unspecified, training, evaluation };

/// Grayscale clips of a folder. Its index.csv has a row for each clip, with the columns file, first_frame, label and
/// video. The columns frames and split (train or test) are optional. A file is a .npy array of uint8, [frames, height,
/// width]. Labels are names of classes or their numbers. classes.txt, if it exists, has the names in order, one per
/// line.
/// A clip's bytes are read directly into the batch. Copies share the index: 24 bytes per clip, and the
/// names of files and videos. Thread-safe.
/// @throws DataError at construction, with the line, if the index is missing or wrong
/// @throws DataError on reading if a file is missing, damaged or of another size   @throws ConfigError if `wanted` is
/// not the size of the clips
class Clips {
 public:
  /// @param classes names of the classes that a model has learned, for evaluation data; empty: those of this folder
  /// @param threads that index the rows
  explicit Clips(std::string const& folder, ClipSize wanted = {}, data::ClassNames classes = {}, int threads = 1)
      : list_(std::make_shared<List>(List{.classes = std::move(classes)})) {
    namespace fs = std::filesystem;
    auto const index = (fs::path(folder) / "index.csv").string();
    std::error_code error;
    if (!fs::is_directory(folder, error))
      throw DataError(folder + (fs::exists(folder, error) ? ": is not a folder" : ": there is no such folder") +
                      "; --data takes a folder with index.csv and the files that it names");
    if (!fs::exists(index, error))
      throw DataError(folder + ": holds no index.csv, which has a row for each clip: file,first_frame,label,video");
    list_->index = index;
    Rows const rows(index, {.columns = {"file", "first_frame", "label", "video"}, .threads = threads});
    if (list_->classes.size() == 0) list_->classes = classes_of(folder, rows);
    read_rows(folder, rows);
    auto const columns = data::csv_first_row(index);
    auto const has = [&](char const* name) { return std::find(columns.begin(), columns.end(), name) != columns.end(); };
    if (has("split")) read_split(index, threads);
    find_size(wanted);
    if (has("frames")) read_frames(index, wanted, threads);
    auto const& size = list_->size;
    if (size.pixels() <= 0) throw DataError(index + ": has empty clips, " + size.text());
    for (auto const extent : {size.frames, size.height, size.width})
      list_->fingerprint = lockstep::mix(list_->fingerprint, static_cast<std::uint64_t>(extent));
  }

  [[nodiscard]] Index size() const noexcept { return std::ssize(list_->entries); }
  [[nodiscard]] Clip get(Index i) const {
    Clip clip{std::vector<std::uint8_t>(static_cast<std::size_t>(list_->size.pixels())), label(i)};
    read(entry(i), clip.pixels);
    return clip;
  }
  [[nodiscard]] data::SampleExtent<Clip> extent(Index) const noexcept { return {{list_->size.pixels()}}; }
  void read_into(Index i, data::Row<Clip> row) const {
    row[&Clip::label] = label(i);
    read(entry(i), row[&Clip::pixels]);
  }
  [[nodiscard]] std::string name(Index i) const {
    auto const first = entry(i).first_frame;
    return list_->files->path(entry(i).file) + ", frames " + std::to_string(first) + " to " +
           std::to_string(first + list_->size.frames - 1);
  }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return list_->fingerprint; }
  [[nodiscard]] Index groups() const noexcept { return std::ssize(list_->videos); }
  [[nodiscard]] Index group(Index i) const noexcept { return entry(i).video; }

  [[nodiscard]] std::int32_t label(Index i) const noexcept { return entry(i).label; }
  [[nodiscard]] Part part(Index i) const noexcept { return list_->parts[static_cast<std::size_t>(group(i))]; }
  [[nodiscard]] ClipSize const& clip_size() const noexcept { return list_->size; }
  [[nodiscard]] data::ClassNames const& classes() const noexcept { return list_->classes; }
  /// Returns the paths of the index and of the arrays.
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> all{list_->index};
    for (Index i = 0; i < list_->files->size(); ++i) all.push_back(list_->files->path(i));
    return all;
  }
  [[nodiscard]] std::vector<std::string> const& videos() const noexcept { return list_->videos; }

  /// Number of clips that cannot be read, and the reason for the first one.
  struct Unreadable {
    Index clips = 0;
    std::string first;
  };
  /// Checks the header of each clip's file. Opens a file once if its clips are adjacent in the index.
  [[nodiscard]] Unreadable examine(lockstep::Progress&& progress = lockstep::Progress()) const {
    progress.begin("checking clips", size());
    Unreadable found;
    std::optional<data::FileArray> array;
    std::int32_t file = -1;
    for (auto const& clip : list_->entries) {
      try {
        if (clip.file != file || !array) {
          array.reset();
          file = clip.file;
          array = open(file);
        }
        check(clip, *array);
      } catch (DataError const& error) {
        if (found.clips++ == 0) found.first = error.what();
      }
      progress.add(1);
    }
    return found;
  }

 private:
  struct Entry {
    std::int32_t file, video, label;
    Index first_frame;
  };
  struct List {
    data::ClassNames classes{};
    ClipSize size{};
    std::optional<data::NpyFiles> files{};
    std::string index{};
    std::vector<std::string> videos{};
    std::vector<Part> parts{};  // by video
    std::vector<Entry> entries{};
    std::uint64_t fingerprint = 0;
  };
  struct Columns {
    std::string file;
    Index first_frame;
    std::string label, video;
  };
  using Rows = data::CsvDataset<Columns>;

  /// Returns the names in classes.txt, or those of the labels.
  static data::ClassNames classes_of(std::string const& folder, Rows const& rows) {
    std::vector<std::string> names;
    auto const file = std::filesystem::path(folder) / "classes.txt";
    bool const named = std::filesystem::exists(file);
    if (named) {
      data::TextLinesDataset const lines(file.string());
      for (Index i = 0; i < lines.size(); ++i) names.push_back(lines.get(i));
    } else {
      for (Index i = 0; i < rows.size(); ++i) {
        names.push_back(rows.get(i).label);
        if (names.back().find_first_not_of(' ') == std::string::npos)
          rows.refuse(i, "the label is empty; give one, or remove the row");
        if (names.back().find_first_of("\r\n") != std::string::npos)
          rows.refuse(i, "the label has a line break; remove it");
      }
    }
    auto classes = named ? data::ClassNames(std::move(names)) : data::ClassNames::of_labels(std::move(names));
    if (classes.size() < 2) throw DataError(folder + ": has a single class; a classifier needs two or more");
    return classes;
  }

  void read_rows(std::filesystem::path const& folder, Rows const& rows) {
    std::vector<std::string> paths;
    std::unordered_map<std::string, std::int32_t> files, videos;
    auto const number_of = [](auto& known, auto& names, std::string const& name, std::string const& value) {
      auto const [place, is_new] = known.try_emplace(name, static_cast<std::int32_t>(names.size()));
      if (is_new) names.push_back(value);
      return place->second;
    };
    for (Index i = 0; i < rows.size(); ++i) {
      auto const row = rows.get(i);
      auto const label = list_->classes.find(row.label);
      if (!label)
        rows.refuse(i, list_->classes.why_unknown(row.label) +
                           ": correct it, or name the class in the training data's classes.txt");
      if (row.first_frame < 0) rows.refuse(i, "first_frame " + std::to_string(row.first_frame) + ": must be 0 or more");
      list_->entries.push_back({number_of(files, paths, row.file, (folder / row.file).string()),
                                number_of(videos, list_->videos, row.video, row.video), *label, row.first_frame});
    }
    list_->entries.shrink_to_fit();
    list_->parts.assign(list_->videos.size(), Part::unspecified);
    list_->files.emplace(std::move(paths));
    list_->fingerprint = rows.fingerprint();
  }

  void read_split(std::string const& index, int threads) {
    struct Split {
      std::string split;
    };
    data::CsvDataset<Split> const rows(index, {.columns = {"split"}, .threads = threads});
    for (Index i = 0; i < rows.size(); ++i) {
      auto const word = rows.get(i).split;
      if (word != "train" && word != "test") rows.refuse(i, "split \"" + word + "\": must be train or test");
      auto const here = word == "train" ? Part::training : Part::evaluation;
      auto& part = list_->parts[static_cast<std::size_t>(group(i))];
      if (part != Part::unspecified && part != here)
        rows.refuse(i, "the video \"" + list_->videos[static_cast<std::size_t>(group(i))] +
                           "\" has clips in train and in test, which makes the accuracy too high; give all its clips "
                           "one split");
      part = here;
    }
  }

  /// Takes the size from the first readable file and compares it with `wanted`.
  void find_size(ClipSize const& wanted) {
    Index first = 0;
    auto const array = [&] {
      for (;; ++first) try {
          return open(entry(first).file);
        } catch (DataError const&) {
          if (first + 1 == size()) throw;
        }
    }();
    auto const agree = [&](char const* flag, Index given, Index found) {
      if (given != 0 && given != found)
        throw ConfigError(std::string(flag) + " " + std::to_string(given) + ": the clips have " +
                          std::to_string(found) + " (" + array.path() + " " + array.extents() +
                          "); leave the flag out");
      return found;
    };
    list_->size = {wanted.frames != 0 ? wanted.frames : array.rows() - entry(first).first_frame,
                   agree("--height", wanted.height, array.shape()[1]),
                   agree("--width", wanted.width, array.shape()[2])};
  }
  void read_frames(std::string const& index, ClipSize const& wanted, int threads) {
    struct Frames {
      Index frames;
    };
    data::CsvDataset<Frames> const rows(index, {.columns = {"frames"}, .threads = threads});
    list_->size.frames = rows.get(0).frames;
    for (Index i = 0; i < rows.size(); ++i)
      if (auto const frames = rows.get(i).frames; frames != list_->size.frames)
        rows.refuse(i, "a clip of " + std::to_string(frames) + " frames, and the first one has " +
                           std::to_string(list_->size.frames) + "; give all clips the same number");
    if (wanted.frames != 0 && wanted.frames != list_->size.frames)
      throw ConfigError("--frames " + std::to_string(wanted.frames) + ": the clips have " +
                        std::to_string(list_->size.frames) + " (" + index + "); leave the flag out");
  }

  [[nodiscard]] Entry const& entry(Index i) const noexcept { return list_->entries[static_cast<std::size_t>(i)]; }
  [[nodiscard]] data::FileArray open(Index file) const {
    auto array = list_->files->array(file);
    array.expect_type<std::uint8_t>("a clip");
    if (array.shape().size() != 3)
      throw DataError(array.path() + ": has the extents " + array.extents() + "; clips need [frames, height, width]");
    return array;
  }
  void check(Entry const& clip, data::FileArray const& array) const {
    auto const& size = list_->size;
    auto const fail = [&](std::string const& why) {
      throw DataError(array.path() + ": has the extents " + array.extents() + ", and a clip of " + size.text() + why);
    };
    if (array.shape()[1] != size.height || array.shape()[2] != size.width)
      fail(" was expected; resize its frames, or leave it out of index.csv");
    if (clip.first_frame > array.rows() - size.frames)
      fail(" begins at frame " + std::to_string(clip.first_frame) +
           "; give the clips' length by --frames or a column frames, or leave this one out of index.csv");
  }
  void read(Entry const& clip, std::span<std::uint8_t> out) const {
    auto const array = open(clip.file);
    check(clip, array);
    array.read_rows(clip.first_frame, out);
  }

  std::shared_ptr<List> list_;
};

}  // namespace video_classification
