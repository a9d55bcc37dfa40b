// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/progress.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/combine/hold_out.hpp>
#include <lockstep/data/combine/subset.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/source/csv_dataset.hpp>
#include <lockstep/data/source/csv_first_row.hpp>
#include <lockstep/data/source/open_npy.hpp>
#include <lockstep/interop/sentencepiece.hpp>

#include "model.hpp"

/// Reads a folder of poses: index.tsv (or index.csv) with the columns file, text and split, and one .npy file per
/// sample, [frames, joints, 3] of float16, float32 or float64. See docs/explanation/stories/pose-to-text.md.
namespace pose_to_text {
namespace data = lockstep::data;

enum class Part { training, dev, test };

/// Index of a folder with the number of frames of each file. It does not read the poses themselves.
class PoseFolder {
 public:
  struct Entry {
    std::string file, text;
    Part part = Part::training;
    std::int32_t frames = 0;  ///< 0: the file is unusable
  };

  /// Reads the index and the header of each file.
  /// @param path the folder, or an index file in it
  /// @param encoding of the index, as data::CsvOptions::encoding
  /// @param out receives progress if headers take long; null: none
  /// @throws DataError if the index is missing, empty or malformed, or if no file is usable
  /// @throws DataError for the first unusable file with OnFailure::raise
  PoseFolder(std::string const& path, std::string const& encoding, data::OnFailure on_failure, int threads,
             std::FILE* out)
      : index_(index_of(path)) {
    read_index(encoding, threads);
    read_headers(on_failure, threads, out);
  }

  [[nodiscard]] std::string const& index() const noexcept { return index_; }
  [[nodiscard]] std::vector<Entry> const& entries() const noexcept { return entries_; }
  [[nodiscard]] Entry const& entry(Index i) const noexcept { return entries_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::string path(Index i) const { return (folder() / entry(i).file).string(); }
  [[nodiscard]] Index joints() const noexcept { return joints_; }
  /// Returns the number of unusable files, and below the reason for the first one.
  [[nodiscard]] Index bad() const noexcept { return bad_; }
  [[nodiscard]] std::string const& first_problem() const noexcept { return first_problem_; }
  [[nodiscard]] std::vector<Index> numbers_of(Part part) const {
    std::vector<Index> out;
    for (Index i = 0; i < std::ssize(entries_); ++i)
      if (entry(i).part == part) out.push_back(i);
    return out;
  }

  /// Opens a sample's file.   @throws DataError if its shape does not fit the folder's other files
  [[nodiscard]] data::FileArray open(Index i) const {
    auto array = data::open_npy(path(i));
    auto const fail = [&](std::string const& why) { throw lockstep::DataError(array.path() + ": " + why); };
    auto const type = array.type();
    if (type.kind != 'f') fail("holds " + type.name() + "; poses are float16, float32 or float64");
    if (array.shape().size() != 3 || array.shape()[2] != channels)
      fail("has the shape " + array.extents() + "; a pose has [frames, joints, 3]: x, y and confidence");
    if (array.rows() < 1 || array.shape()[1] < 1) fail("has the shape " + array.extents() + ", and holds no pose");
    if (joints_ > 0 && array.shape()[1] != joints_)
      fail("has " + std::to_string(array.shape()[1]) + " joints, and the folder's first pose has " +
           std::to_string(joints_) + "; give all files the same joints");
    return array;
  }
  /// Reads all numbers of a sample.   @throws DataError with frame and joint for a number that is not finite
  void read(Index i, std::span<float> out) const {
    auto const array = open(i);
    if (std::ssize(out) != array.rows() * array.width())
      throw lockstep::DataError(array.path() + ": has changed since its header was read; leave the files alone");
    if (array.type().bytes == 8) {
      auto const exact = array.numbers<double>();
      std::transform(exact.begin(), exact.end(), out.begin(), [](double x) { return static_cast<float>(x); });
    } else {
      array.read_rows(0, out);
    }
    auto const bad = std::find_if(out.begin(), out.end(), [](float x) { return !std::isfinite(x); });
    if (bad == out.end()) return;
    auto const place = bad - out.begin();
    throw lockstep::DataError(array.path() + ": frame " + std::to_string(place / (joints_ * channels)) + ", joint " +
                              std::to_string(place / channels % joints_) +
                              " is not finite; write 0 with confidence 0 for a missing joint, or see --on-failure");
  }
  /// Reads all samples; of more than 1 GiB of numbers, samples at equal distances.
  /// @param out receives progress; null: none
  /// @throws DataError for the first sample that cannot be read or has a number that is not finite
  void examine(int threads, std::FILE* out) const {
    Index numbers = 0;
    for (auto const& entry : entries_) numbers += entry.frames * joints_ * channels;
    auto const stride = numbers / (Index{1} << 28) + 1, count = (std::ssize(entries_) + stride - 1) / stride;
    std::vector<std::string> problems(static_cast<std::size_t>(count));
    lockstep::ThreadPool pool(threads);
    lockstep::Progress progress(out);
    progress.begin("checking poses of " + index_, count);
    pool.run(count, [&](Index k) {
      thread_local std::vector<float> pose;
      pose.resize(static_cast<std::size_t>(entry(k * stride).frames * joints_ * channels));
      try {
        if (!pose.empty()) read(k * stride, pose);
      } catch (lockstep::DataError const& error) {
        problems[static_cast<std::size_t>(k)] = error.what();
      }
      progress.add(1);
    });
    for (auto const& problem : problems)
      if (!problem.empty()) throw lockstep::DataError(problem);
  }

 private:
  struct Listed {
    std::string file, text, split;
  };
  struct Unsplit {
    std::string file, text;
  };

  static std::string index_of(std::string const& path) {
    namespace fs = std::filesystem;
    if (fs::is_regular_file(path)) return path;
    for (auto const* name : {"index.tsv", "index.csv"})
      if (auto const file = fs::path(path) / name; fs::exists(file)) return file.string();
    throw lockstep::ConfigError("--data " + path + ": " +
                                (fs::exists(path) ? "holds" : "does not exist; it must hold") +
                                (fs::exists(path) ? " neither index.tsv nor index.csv" : " index.tsv or index.csv") +
                                ", with the columns file, text and split");
  }
  [[nodiscard]] std::filesystem::path folder() const { return std::filesystem::path(index_).parent_path(); }

  void read_index(std::string const& encoding, int threads) {
    char const separator = index_.ends_with(".csv") ? ',' : '\t';
    auto const names = data::csv_first_row(index_, separator, encoding);
    if (std::find(names.begin(), names.end(), "split") == names.end()) {
      data::CsvDataset<Unsplit> const rows(
          index_, {.separator = separator, .columns = {"file", "text"}, .encoding = encoding, .threads = threads});
      for (Index i = 0; i < rows.size(); ++i) {
        auto row = rows.get(i);
        entries_.push_back({std::move(row.file), std::move(row.text)});
      }
      return;
    }
    data::CsvDataset<Listed> const rows(
        index_,
        {.separator = separator, .columns = {"file", "text", "split"}, .encoding = encoding, .threads = threads});
    for (Index i = 0; i < rows.size(); ++i) {
      auto row = rows.get(i);
      auto const is = [&](auto... words) { return ((row.split == words) || ...); };
      bool const dev = is("dev", "val", "valid", "validation"), test = is("test");
      if (!dev && !test && !is("train", "training", ""))
        rows.refuse(i, "split \"" + row.split + "\": must be train, dev (or val) or test");
      entries_.push_back({std::move(row.file), std::move(row.text),
                          dev    ? Part::dev
                          : test ? Part::test
                                 : Part::training});
    }
  }
  /// Reads the headers. The first usable file determines the number of joints.
  void read_headers(data::OnFailure on_failure, int threads, std::FILE* out) {
    std::vector<std::string> problems(entries_.size());
    auto const read = [&](Index i) {
      try {
        auto const array = open(i);
        entries_[static_cast<std::size_t>(i)].frames = static_cast<std::int32_t>(array.rows());
        if (joints_ == 0) joints_ = array.shape()[1];
      } catch (lockstep::DataError const& error) {
        if (on_failure == data::OnFailure::raise) throw;
        problems[static_cast<std::size_t>(i)] = error.what();
      }
    };
    Index first = 0;
    while (first < std::ssize(entries_) && joints_ == 0) read(first++);
    lockstep::ThreadPool pool(threads);
    lockstep::Progress progress(out);
    progress.begin("reading headers of " + index_, std::ssize(entries_) - first);
    pool.run(std::ssize(entries_) - first, [&](Index i) {
      read(first + i);
      progress.add(1);
    });
    for (auto const& problem : problems)
      if (!problem.empty() && bad_++ == 0) first_problem_ = problem;
    if (joints_ == 0) throw lockstep::DataError(index_ + ": none of its files can be used: " + first_problem_);
  }

  std::string index_;
  std::vector<Entry> entries_;
  Index joints_ = 0, bad_ = 0;
  std::string first_problem_;
};

/// Input of the decoder: the text, or only the begin piece for decoding.
enum class Reads { text, begin };

/// Dataset of a folder's samples as `Clip`s. It opens a file when its sample is read, without locks, and reads its
/// numbers directly into the batch. It encodes the text at the same time.
class PoseDataset {
 public:
  PoseDataset(std::shared_ptr<PoseFolder const> folder, lockstep::interop::SentencePiece pieces, Index max_length,
              Reads reads)
      : folder_(std::move(folder)), pieces_(std::move(pieces)), max_length_(max_length), reads_(reads) {}

  [[nodiscard]] Index size() const noexcept { return std::ssize(folder_->entries()); }
  [[nodiscard]] Clip get(Index i) const {
    auto const lengths = extent(i).lengths;
    Clip clip;
    clip.numbers.resize(static_cast<std::size_t>(lengths[0]));
    clip.frames.resize(static_cast<std::size_t>(lengths[1]));
    clip.tokens.resize(static_cast<std::size_t>(lengths[2]));
    clip.next.resize(clip.tokens.size());
    fill(i, clip.numbers, clip.frames, clip.tokens, clip.next);
    return clip;
  }
  [[nodiscard]] data::SampleExtent<Clip> extent(Index i) const {
    Index frames = folder_->entry(i).frames;
    if (frames == 0) frames = folder_->open(i).rows();  // throws the reason
    auto const tokens = std::ssize(encoded(i)) + 1;
    return {{frames * folder_->joints() * channels, frames, tokens, tokens}};
  }
  void read_into(Index i, data::Row<Clip> row) const {
    fill(i, row[&Clip::numbers], row[&Clip::frames], row[&Clip::tokens], row[&Clip::next]);
  }
  [[nodiscard]] std::string name(Index i) const { return folder_->entry(i).file; }
  /// Returns a fingerprint of names, texts, lengths and pieces, without reading the poses.
  [[nodiscard]] std::uint64_t fingerprint() const {
    auto hash = lockstep::mix(lockstep::mix(pieces_.bytes()), static_cast<std::uint64_t>(max_length_));
    for (auto const& entry : folder_->entries())
      hash = lockstep::mix(hash, lockstep::mix(entry.file), lockstep::mix(entry.text),
                           static_cast<std::uint64_t>(entry.frames));
    return hash;
  }
  /// Returns the sample's text as pieces, truncated to --max-length.
  [[nodiscard]] std::vector<std::int32_t> encoded(Index i) const {
    if (reads_ == Reads::begin) return {};
    auto pieces = pieces_.encode(folder_->entry(i).text);
    if (std::ssize(pieces) > max_length_) pieces.resize(static_cast<std::size_t>(max_length_));
    return pieces;
  }
  [[nodiscard]] bool is_cut(Index i) const { return std::ssize(pieces_.encode(folder_->entry(i).text)) > max_length_; }

 private:
  void fill(Index i, std::span<float> numbers, std::span<std::uint8_t> frames, std::span<std::int32_t> tokens,
            std::span<std::int32_t> next) const {
    folder_->read(i, numbers);
    std::fill(frames.begin(), frames.end(), std::uint8_t{1});
    auto const pieces = encoded(i);
    tokens[0] = pieces_.begin();
    std::copy(pieces.begin(), pieces.end(), tokens.begin() + 1);
    std::copy(pieces.begin(), pieces.end(), next.begin());
    next.back() = pieces_.end();
  }

  std::shared_ptr<PoseFolder const> folder_;
  lockstep::interop::SentencePiece pieces_;
  Index max_length_;
  Reads reads_;
};

/// Samples and folders of training and evaluation.
struct Parts {
  std::shared_ptr<PoseFolder const> training_folder, evaluation_folder;
  std::vector<Index> training, evaluation;
};

/// Selects the samples of training and evaluation.
/// @param eval_data another folder for evaluation; empty: the dev (or test) samples of `path`, else a tenth of its
/// training samples, chosen by the seed
inline Parts read_parts(std::string const& path, std::string const& eval_data, std::string const& encoding, Part wanted,
                        data::OnFailure on_failure, std::uint64_t seed, int threads, std::FILE* shown) {
  Parts out;
  out.training_folder = out.evaluation_folder =
      std::make_shared<PoseFolder const>(path, encoding, on_failure, threads, shown);
  if (!eval_data.empty())
    out.evaluation_folder = std::make_shared<PoseFolder const>(eval_data, encoding, on_failure, threads, shown);
  out.training = out.training_folder->numbers_of(Part::training);
  auto const other = wanted == Part::dev ? Part::test : Part::dev;
  for (auto const part : {wanted, other})
    if (out.evaluation.empty()) out.evaluation = out.evaluation_folder->numbers_of(part);
  if (out.training.empty())
    throw lockstep::DataError(out.training_folder->index() + ": has no training samples; give some the split train");
  if (out.evaluation_folder->joints() != out.training_folder->joints())
    throw lockstep::DataError(out.evaluation_folder->index() + ": its poses have " +
                              std::to_string(out.evaluation_folder->joints()) + " joints, and those of --data have " +
                              std::to_string(out.training_folder->joints()) + "; give both the same joints");
  if (!out.evaluation.empty()) return out;
  if (!eval_data.empty()) {
    out.evaluation = out.evaluation_folder->numbers_of(Part::training);
    return out;
  }
  auto const parts = data::hold_out(data::InMemoryDataset{out.training}, 0.1, seed);
  std::vector<Index> training;
  for (Index i = 0; i < parts.training.size(); ++i) training.push_back(parts.training.get(i));
  for (Index i = 0; i < parts.evaluation.size(); ++i) out.evaluation.push_back(parts.evaluation.get(i));
  out.training = std::move(training);
  return out;
}

}  // namespace pose_to_text
