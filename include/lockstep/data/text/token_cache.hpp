// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/progress.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/detail/partial_path.hpp>
#include <lockstep/data/source/labelled_files_dataset.hpp>
#include <lockstep/data/text/detail/token_builder.hpp>
#include <lockstep/data/text/detail/token_file.hpp>
#include <lockstep/data/text/token_dataset.hpp>
#include <lockstep/data/text/vocabulary.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// A lock that one process or thread of a host holds at a time. Its name is the path of a file that exists while it is
/// held. The system releases it when a process dies. On a file system without locks, it excludes no one.
class [[nodiscard]] CacheLock {
 public:
  /// Waits for the lock, and shows that it waits.
  /// @throws DataError if the file cannot be created, or a stop is requested
  CacheLock(std::string path, Progress* progress, std::stop_token stop = {});
  ~CacheLock() { ::unlink(path_.c_str()); }

 private:
  std::string path_;
  FileDescriptor file_;
};

}}}  // namespace lockstep::data::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Identifies the sources of a TokenCache without reading them: files by path, length, inode and times. Also identifies
/// strings that change the content read from them, such as a seed that selects held-out texts.
class TextSources {
 public:
  /// Adds a file.   @throws DataError if it cannot be opened, or is not a regular file
  void add_file(std::string const& path);
  /// Adds all files of a dataset.
  void add_files(LabelledFilesDataset const& files);
  /// Adds a string.
  void add(std::string_view words) { string_hash_ = mix(string_hash_, mix(words)); }

  /// Returns a hash of the absolute paths.
  [[nodiscard]] std::uint64_t path_hash() const noexcept { return path_hash_; }
  /// Returns a hash of the files' lengths, inodes and times.
  [[nodiscard]] std::uint64_t file_hash() const noexcept { return file_hash_; }
  /// Returns a hash of the strings.
  [[nodiscard]] std::uint64_t string_hash() const noexcept { return string_hash_; }
  /// Returns the length of all files, in bytes.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::uint64_t path_hash_ = 0, file_hash_ = 0, string_hash_ = 0, bytes_ = 0;
};

/// Options of TokenCache: where cache files are, and who waits for them.
struct TokenCacheOptions {
  std::string folder = {};  ///< of cache files, created if missing; empty: each process prepares its own data in memory
  std::uint64_t min_bytes = 0;   ///< smaller sources are prepared in memory, even if `folder` is set
  int threads = 1;               ///< that prepare and check texts; the result does not depend on their number
  bool verify = true;            ///< reads a cache file once and compares checksums; false trusts an existing file
  Progress* progress = nullptr;  ///< shows the progress; null: no display
  std::stop_token stop = {};     ///< ends a wait for another process that prepares the texts
};

/// Texts as tokens of a vocabulary, in a file that is prepared once and shared by all processes of a host. A process's
/// own memory does not grow with the texts. One process prepares the file while others wait for its lock. A file that
/// is damaged, belongs to another user than this process's or root, or has other sources or rules, is prepared again. A
/// folder keeps the 8 most recently used files, and only the newest version of changed sources. Copies share the open
/// file. Thread-safe.
/// @source the file's layout: data/text/detail/token_file.hpp
class TokenCache {
 public:
  /// Opens the cache of these sources and rules, or prepares it. To prepare it, calls read(build), which must call
  /// build(training, evaluation, classes) once, with LabelledTexts and the names of the classes. The vocabulary
  /// consists of words of the training texts, as TokenCounts selects them, unless a pointer to another one, such as
  /// that of saved parameters, is the fourth argument; then add its text to `sources`. Tokens, labels, and fingerprints
  /// equal those of an InMemoryDataset of `vocabulary.encode(text, tokenizer, max_length)`.
  /// @param tokenizer several threads call `tokenizer(text, each)`
  /// @throws any exception of `read` and of the texts
  /// @throws DataError if the folder cannot be written
  /// @throws ConfigError if a rule is out of range, or the name of a class has a line break
  template <class Tokenizer, class Read>
  [[nodiscard]] static TokenCache prepare(TextSources const& sources, TokenRules const& rules,
                                          TokenCacheOptions const& options, Tokenizer const& tokenizer,
                                          Read const& read) {
    if (rules.vocabulary < 3 || rules.max_length < 1 || rules.max_length > 0x7fffffff)
      throw ConfigError("TokenCache: the vocabulary size is " + std::to_string(rules.vocabulary) + " and the length " +
                        std::to_string(rules.max_length) + "; they must be at least 3 and at least 1");
    auto const how = mix(mix(std::string_view(rules.tokenizer)), static_cast<std::uint64_t>(rules.vocabulary),
                         static_cast<std::uint64_t>(rules.min_count), static_cast<std::uint64_t>(rules.max_length),
                         sources.string_hash());
    detail::TokenKey const key{mix(sources.path_hash(), sources.file_hash()), how};
    auto const build = [&](int file, std::string const& path) {
      ThreadPool pool(options.threads);
      detail::TokenFileWriter const writer(file, path);
      bool built = false;
      read([&](LabelledTexts const& training, LabelledTexts const& evaluation, std::vector<std::string> const& classes,
               Vocabulary const* vocabulary = nullptr) {
        detail::TokenBuilder(writer, key, rules, pool, options.progress)
            .build(training, evaluation, one_per_line(classes), tokenizer, vocabulary);
        built = true;
      });
      if (!built) throw ConfigError("TokenCache: the function that reads texts has not called build(...)");
    };
    if (options.folder.empty() || sources.bytes() < options.min_bytes) return in_memory(key, build);
    return in_folder(sources, key, options, build);
  }

  /// Returns the training samples in your own type, an aggregate of the tokens and the label:
  /// `cache.training(&Article::tokens, &Article::label)`.
  template <class Sample, class Label>
  [[nodiscard]] TokenDataset<Sample, Label> training(std::vector<std::int32_t> Sample::*tokens,
                                                     Label Sample::*label) const {
    return {file_, 0, tokens, label};
  }
  /// Returns the evaluation samples in your own type, as `training` does.
  template <class Sample, class Label>
  [[nodiscard]] TokenDataset<Sample, Label> evaluation(std::vector<std::int32_t> Sample::*tokens,
                                                       Label Sample::*label) const {
    return {file_, 1, tokens, label};
  }
  /// Returns the vocabulary of the training texts, or the given one.
  [[nodiscard]] Vocabulary vocabulary() const { return Vocabulary::from_text(file_->vocabulary()); }
  /// Returns the vocabulary as Vocabulary::to_text writes it.
  [[nodiscard]] std::string vocabulary_text() const { return std::string(file_->vocabulary()); }
  /// Returns the names of the classes, in the order of the labels.
  [[nodiscard]] std::vector<std::string> classes() const;
  /// Returns the number of training texts.
  [[nodiscard]] Index training_size() const noexcept { return static_cast<Index>(file_->header().parts[0].rows); }
  /// Returns the number of evaluation texts.
  [[nodiscard]] Index evaluation_size() const noexcept { return static_cast<Index>(file_->header().parts[1].rows); }
  /// Returns the number of texts, in both parts, that had more than `max_length` tokens.
  [[nodiscard]] Index truncated() const noexcept;
  /// Returns the number of texts, in both parts, without a token, which have the single token Vocabulary::unknown.
  [[nodiscard]] Index empty() const noexcept;
  /// Returns the label that all training texts have, or nothing if they have several, or there are none.
  [[nodiscard]] std::optional<std::int32_t> only_training_label() const noexcept { return only_label(0); }
  /// Returns the label that all evaluation texts have, or nothing if they have several, or there are none.
  [[nodiscard]] std::optional<std::int32_t> only_evaluation_label() const noexcept { return only_label(1); }

 private:
  static constexpr std::size_t max_files = 8;
  static constexpr char const* file_extension = ".tokens";

  explicit TokenCache(std::shared_ptr<detail::TokenFile const> file) : file_(std::move(file)) {}

  [[nodiscard]] std::optional<std::int32_t> only_label(std::size_t part) const noexcept;
  /// @throws ConfigError for a name with a line break
  static std::string one_per_line(std::vector<std::string> const& names);
  template <class Build>
  static TokenCache in_memory(detail::TokenKey const& key, Build const& build) {
    FileDescriptor const file(::memfd_create("lockstep-tokens", MFD_CLOEXEC));
    if (file.get() < 0) throw DataError("TokenCache: no memory for texts: " + system_message(errno));
    auto const path = "/proc/self/fd/" + std::to_string(file.get());
    build(file.get(), path);
    return TokenCache(std::make_shared<detail::TokenFile const>(path, key));
  }
  template <class Build>
  static TokenCache in_folder(TextSources const& sources, detail::TokenKey const& key, TokenCacheOptions const& options,
                              Build const& build) {
    namespace fs = std::filesystem;
    std::error_code error;
    fs::create_directories(options.folder, error);
    if (error)
      throw DataError(options.folder + ": cannot be created for prepared texts: " + error.message() +
                      "; choose another folder");
    auto const path = options.folder + "/" + hexadecimal(sources.path_hash()) + "-" + hexadecimal(sources.file_hash()) +
                      "-" + hexadecimal(key[1]) + file_extension;
    if (auto found = try_open(path, key, options)) return *found;
    detail::CacheLock const lock(path + ".lock", options.progress, options.stop);
    if (auto found = try_open(path, key, options)) return *found;
    remove_partial(path);
    auto const partial = detail::partial_path(path);
    FileDescriptor const file(::open(partial.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.get() < 0)
      throw DataError(partial + ": cannot be created for prepared texts: " + system_message(errno) +
                      "; choose another folder");
    try {
      build(file.get(), partial);
      fs::rename(partial, path);
    } catch (...) {
      fs::remove(partial, error);
      throw;
    }
    remove_old_files(options.folder, path, hexadecimal(sources.path_hash()), hexadecimal(sources.file_hash()));
    return TokenCache(std::make_shared<detail::TokenFile const>(path, key));
  }
  static std::optional<TokenCache> try_open(std::string const& path, detail::TokenKey const& key,
                                            TokenCacheOptions const& options);
  /// Removes partial files of a process that was killed. Call with the lock held.
  static void remove_partial(std::string const& path);
  static void remove_old_files(std::string const& folder, std::string const& newest, std::string const& place,
                               std::string const& state);

  std::shared_ptr<detail::TokenFile const> file_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/text/token_cache.ipp>
#endif
