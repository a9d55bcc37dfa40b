// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/detail/data_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE DataFile::DataFile(std::string path) : path_(std::move(path)), file_(path_) {
  if (file_.get() < 0) {
    auto const error = errno;
    throw DataError(path_ + ": cannot be opened: " + system_message(error) +
                    (error == EMFILE || error == ENFILE
                         ? "; raise how many may be open (ulimit -n), or join small files to larger ones"
                         : "; check the path and its permissions"));
  }
  struct ::stat status {};
  if (::fstat(file_.get(), &status) != 0) throw DataError(path_ + ": cannot be examined: " + system_message(errno));
  if (S_ISDIR(status.st_mode)) throw DataError(path_ + ": is a directory; give a file in it");
  if (!S_ISREG(status.st_mode))
    throw DataError(path_ + ": is not a regular file; every rank reads it, so copy it to one");
  size_ = static_cast<std::uint64_t>(status.st_size);
  modified_ns_ = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

LOCKSTEP_INLINE std::uint64_t DataFile::size_now() const noexcept {
  struct ::stat status {};
  return ::fstat(file_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

LOCKSTEP_INLINE void DataFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  auto const got =
      read_at(file_.get(), reinterpret_cast<char*>(out.data()), out.size(), static_cast<std::size_t>(offset), path_);
  if (got == out.size()) return;
  fail("ends at byte " + std::to_string(size_now()) + ", and " + std::to_string(out.size()) +
       " bytes were requested from byte " + std::to_string(offset) +
       "; the file was cut off or has changed, write it again");
}

LOCKSTEP_INLINE std::string DataFile::read_text(std::uint64_t offset, std::uint64_t bytes, char const* what) const {
  require_range(offset, bytes, what);
  std::string out(static_cast<std::size_t>(bytes), '\0');
  read(offset, std::as_writable_bytes(std::span(out.data(), out.size())));
  return out;
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

}}}  // namespace lockstep::data::detail
