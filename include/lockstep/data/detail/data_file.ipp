// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/detail/data_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE DataFile::DataFile(std::string path) : path_(std::move(path)) {
  auto opened = open_regular_file(path_);
  size_ = opened.size();
  modified_ns_ = opened.modified_ns();
  is_own_ = opened.is_own();
  file_ = std::move(opened.file);
}

LOCKSTEP_INLINE DataFile::DataFile(std::string path, FileDescriptor file)
    : path_(std::move(path)), file_(std::move(file)), size_(size_now()) {}

LOCKSTEP_INLINE std::uint64_t DataFile::size_now() const noexcept {
  struct ::stat status {};
  return ::fstat(file_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

LOCKSTEP_INLINE void DataFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  auto const got = read_at(file_.get(), reinterpret_cast<char*>(out.data()), out.size(), offset, path_);
  if (got == out.size()) return;
  fail("ends at byte " + std::to_string(size_now()) + ", and " + std::to_string(out.size()) +
       " bytes were requested from byte " + std::to_string(offset) +
       "; the file was cut off or has changed, write it again");
}

LOCKSTEP_INLINE std::string DataFile::read_text(std::uint64_t offset, std::uint64_t bytes, char const* what) const {
  require_range(offset, bytes, what);
  return with_memory_for(path_, bytes, [&] {
    std::string out(bytes, '\0');
    read(offset, std::as_writable_bytes(std::span(out.data(), out.size())));
    return out;
  });
}

LOCKSTEP_INLINE std::string DataFile::read_claimed_text(std::uint64_t offset, std::uint64_t bytes, std::uint64_t most,
                                                        char const* what) const {
  require_range(offset, bytes, what);
  if (bytes > most)
    fail("claims that " + std::string(what) + " has " + std::to_string(bytes) + " bytes, and at most " +
         std::to_string(most) + " are read; the file is damaged, write it again");
  return with_memory_for(path_, bytes, [&] { return read_text_at(file_.get(), offset, bytes, path_, what); });
}

LOCKSTEP_INLINE void DataFile::require_range(std::uint64_t offset, std::uint64_t bytes, std::string_view what) const {
  if (offset <= size_ && bytes <= size_ - offset) return;
  fail(std::string(what) + " needs " + std::to_string(bytes) + " bytes from byte " + std::to_string(offset) +
       ", but the file has " + std::to_string(size_) + "; it was cut off or is damaged, write it again");
}

LOCKSTEP_INLINE std::uint64_t DataFile::fingerprint() const {
  constexpr std::uint64_t part = 4096;
  auto const bytes = std::min(part, size_);
  return mix(mix(read_text(0, bytes, "")), mix(read_text(size_ - bytes, bytes, "")), size_);
}

LOCKSTEP_INLINE std::uint64_t DataFile::spread_fingerprint() const {
  constexpr std::uint64_t part = 4096, parts = 64;
  auto const bytes = std::min(part, size_), last = size_ - bytes;
  auto hash = mix(size_);
  for (std::uint64_t i = 0; i < parts; ++i)
    hash = mix(hash, mix(read_text(last / (parts - 1) * i + (i == parts - 1 ? last % (parts - 1) : 0), bytes, "")));
  return hash;
}

}}}  // namespace lockstep::data::detail
