// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/checksum.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/progress.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/data/detail/data_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Identifies the content of a token file: equal sources and equal rules give equal keys.
using TokenKey = std::array<std::uint64_t, 2>;

/// One text of a token file.
struct TokenRecord {
  std::uint64_t begin = 0;   ///< of its first token, in tokens
  std::uint32_t length = 0;  ///< tokens
  std::int32_t label = 0;
};

/// The first bytes of a token file. From byte 4096 on follow: the records of all parts, the tokens (std::int32_t), the
/// vocabulary and the classes as text, and a checksum of each MiB of these.
struct TokenHeader {
  static constexpr std::array<char, 16> magic_of_format{'l', 'o', 'c', 'k', 's', 't', 'e', 'p',
                                                        ' ', 't', 'o', 'k', 'e', 'n', 's', '2'};
  static constexpr std::uint64_t body = 4096, block = std::uint64_t{1} << 20;
  struct Part {
    std::uint64_t rows = 0, truncated = 0, empty = 0, fingerprint = 0, records_at = 0;
    std::int32_t least_label = 0, largest_label = 0;
  };
  std::array<char, 16> magic = magic_of_format;
  TokenKey key{};
  std::array<Part, 2> parts{};
  std::uint64_t tokens = 0, tokens_at = 0, vocabulary_at = 0, vocabulary_bytes = 0, classes_bytes = 0, checksums_at = 0,
                file_bytes = 0;
  Checksum texts{}, checksums{},
      header_checksum{};  // of vocabulary and classes, of the checksums, of all before itself

  [[nodiscard]] std::uint64_t blocks() const noexcept { return (checksums_at - body + block - 1) / block; }
  [[nodiscard]] Checksum compute_header_checksum() const noexcept;
  /// Whether all parts are inside a file of `bytes` bytes, in their order and without overlap. Anybody can compute the
  /// checksums of a file that claims anything.
  [[nodiscard]] bool fits(std::uint64_t bytes) const noexcept;
};
static_assert(std::is_trivially_copyable_v<TokenHeader> && sizeof(TokenHeader) <= TokenHeader::body);
static_assert(sizeof(TokenRecord) == 16);

/// Calls f for each MiB of a token file's body, from several threads, in no order.
template <class Function>
void each_token_block(TokenHeader const& header, ThreadPool& pool, Progress* progress, Function const& f) {
  if (progress) progress->begin("checking prepared texts", static_cast<Index>(header.blocks()));
  pool.run(static_cast<Index>(header.blocks()), [&](Index block) {
    auto const begin = TokenHeader::body + static_cast<std::uint64_t>(block) * TokenHeader::block;
    f(static_cast<std::size_t>(block), begin, std::min(TokenHeader::block, header.checksums_at - begin));
    if (progress) progress->add(1);
  });
}

/// A token file opened for reading. Thread-safe.
class TokenFile {
 public:
  /// Checks everything except the records and tokens. @throws DataError if it is not the file of this key
  TokenFile(std::string path, TokenKey const& key);
  /// @throws DataError if a byte of the records or tokens has changed since it was written
  void verify(ThreadPool& pool, Progress* progress) const;

  [[nodiscard]] TokenHeader const& header() const noexcept { return header_; }
  [[nodiscard]] std::string const& path() const noexcept { return file_.path(); }
  /// Whether the file belongs to the user of this process or to root.
  [[nodiscard]] bool is_own() const noexcept { return file_.is_own(); }
  [[nodiscard]] std::string_view vocabulary() const noexcept;
  [[nodiscard]] std::string_view classes() const noexcept;
  /// @throws DataError if the file has become shorter, or the record does not fit it
  [[nodiscard]] TokenRecord record(std::size_t part, Index i) const;
  void read(TokenRecord const& record, std::span<std::int32_t> out) const;

 private:
  [[nodiscard]] std::vector<Checksum> read_checksums() const;

  DataFile file_;
  TokenHeader header_;
  std::string texts_;
};

/// Writes a file at any place, from several threads. Does not own the descriptor.
class TokenFileWriter {
 public:
  TokenFileWriter(int file, std::string path) : file_(file), path_(std::move(path)) {}

  /// @throws DataError with the system's reason
  template <class Value>
  void write(std::uint64_t at, std::span<Value const> values) const {
    auto const* from = reinterpret_cast<char const*>(values.data());
    for (auto left = values.size_bytes(); left > 0;) {
      auto const written = ::pwrite(file_, from, left, static_cast<::off_t>(at));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0)
        throw DataError(path_ + ": prepared texts cannot be written: " + system_message(written == 0 ? ENOSPC : errno) +
                        "; free space there, or choose another folder for them");
      from += written;
      at += static_cast<std::uint64_t>(written);
      left -= static_cast<std::size_t>(written);
    }
  }
  template <class Value>
  void read(std::uint64_t at, std::span<Value> values) const {
    if (read_at(file_, reinterpret_cast<char*>(values.data()), values.size_bytes(), at, path_) != values.size_bytes())
      throw DataError(path_ + ": became shorter while it was written");
  }
  /// Writes vocabulary, classes, checksums and the header, which complete the file.
  void seal(TokenHeader header, std::string const& vocabulary, std::string const& classes, ThreadPool& pool,
            Progress* progress) const;

 private:
  int file_;
  std::string path_;
};

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/text/detail/token_file.ipp>
#endif
