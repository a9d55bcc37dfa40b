// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/text/detail/token_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE Checksum TokenHeader::compute_header_checksum() const noexcept {
  return checksum(std::as_bytes(std::span(this, 1)).first(offsetof(TokenHeader, header_checksum)));
}

LOCKSTEP_INLINE bool TokenHeader::fits(std::uint64_t bytes) const noexcept {
  if (file_bytes != bytes || tokens > bytes / sizeof(std::int32_t) || checksums_at < body || checksums_at > bytes ||
      vocabulary_bytes > bytes || classes_bytes > bytes || vocabulary_at > bytes || tokens_at > bytes)
    return false;
  auto next = body;  // no sum below overflows, since each term is at most the file's size
  for (auto const& part : parts) {
    if (part.rows > bytes / sizeof(TokenRecord) || part.records_at < next || part.records_at > bytes) return false;
    next = part.records_at + part.rows * sizeof(TokenRecord);
  }
  return next <= tokens_at && tokens_at + tokens * sizeof(std::int32_t) == vocabulary_at &&
         vocabulary_at + vocabulary_bytes + classes_bytes == checksums_at &&
         checksums_at + blocks() * sizeof(Checksum) == bytes;
}

LOCKSTEP_INLINE TokenFile::TokenFile(std::string path, TokenKey const& key) : file_(std::move(path)) {
  header_ = file_.read_number<TokenHeader>(0);
  auto const& h = header_;
  if (h.magic != TokenHeader::magic_of_format || h.header_checksum != h.compute_header_checksum() || h.key != key ||
      !h.fits(file_.size()))
    file_.fail("does not hold these prepared texts, or was damaged");
  auto const checksums = read_checksums();
  if (h.checksums != checksum(std::as_bytes(std::span(checksums)))) file_.fail("has damaged checksums");
  texts_ = file_.read_text(h.vocabulary_at, h.vocabulary_bytes + h.classes_bytes, "the vocabulary");
  if (h.texts != checksum(std::as_bytes(std::span(texts_)))) file_.fail("has a damaged vocabulary");
}

LOCKSTEP_INLINE void TokenFile::verify(ThreadPool& pool, Progress* progress) const {
  auto const checksums = read_checksums();
  each_token_block(header_, pool, progress, [&](std::size_t block, std::uint64_t begin, std::uint64_t bytes) {
    thread_local std::vector<std::byte> content;
    content.resize(bytes);
    file_.read(begin, content);
    if (checksum(content) != checksums[block]) file_.fail("is damaged at byte " + std::to_string(begin) + " or after");
  });
}

LOCKSTEP_INLINE std::string_view TokenFile::vocabulary() const noexcept {
  return std::string_view(texts_).substr(0, static_cast<std::size_t>(header_.vocabulary_bytes));
}

LOCKSTEP_INLINE std::string_view TokenFile::classes() const noexcept {
  return std::string_view(texts_).substr(static_cast<std::size_t>(header_.vocabulary_bytes));
}

LOCKSTEP_INLINE TokenRecord TokenFile::record(std::size_t part, Index i) const {
  auto const at = header_.parts[part].records_at + static_cast<std::uint64_t>(i) * sizeof(TokenRecord);
  auto const out = file_.read_number<TokenRecord>(at);
  if (out.begin > header_.tokens || out.length > header_.tokens - out.begin)
    file_.fail("was damaged while it was in use; restart the program, which prepares it again");
  return out;
}

LOCKSTEP_INLINE void TokenFile::read(TokenRecord const& record, std::span<std::int32_t> out) const {
  file_.read(header_.tokens_at + record.begin * sizeof(std::int32_t), std::as_writable_bytes(out));
}

LOCKSTEP_INLINE std::vector<Checksum> TokenFile::read_checksums() const {
  auto const bytes = header_.blocks() * sizeof(Checksum);
  file_.require_range(header_.checksums_at, bytes, "the checksums");
  std::vector<Checksum> checksums(header_.blocks());
  file_.read(header_.checksums_at, std::as_writable_bytes(std::span(checksums)));
  return checksums;
}

LOCKSTEP_INLINE void TokenFileWriter::seal(TokenHeader header, std::string const& vocabulary,
                                           std::string const& classes, ThreadPool& pool, Progress* progress) const {
  auto const texts = vocabulary + classes;
  header.vocabulary_at = header.tokens_at + header.tokens * sizeof(std::int32_t);
  header.vocabulary_bytes = vocabulary.size();
  header.classes_bytes = classes.size();
  header.checksums_at = header.vocabulary_at + texts.size();
  header.file_bytes = header.checksums_at + header.blocks() * sizeof(Checksum);
  header.texts = checksum(std::as_bytes(std::span(texts)));
  write(header.vocabulary_at, std::span(texts.data(), texts.size()));
  std::vector<Checksum> checksums(header.blocks());
  each_token_block(header, pool, progress, [&](std::size_t block, std::uint64_t begin, std::uint64_t bytes) {
    thread_local std::vector<std::byte> content;
    content.resize(bytes);
    read(begin, std::span(content));
    checksums[block] = checksum(content);
  });
  write(header.checksums_at, std::span<Checksum const>(checksums));
  header.checksums = checksum(std::as_bytes(std::span(checksums)));
  header.header_checksum = header.compute_header_checksum();
  write(0, std::span<TokenHeader const>(&header, 1));
}

}}}  // namespace lockstep::data::detail
