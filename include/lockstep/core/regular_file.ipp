// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/regular_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_COLD_INLINE RegularFile open_regular_file(std::string const& path, char const* failed) {
  RegularFile out{FileDescriptor(path)};
  if (out.file.get() < 0) {
    auto const error = errno;
    throw DataError(path + ": " + failed + ": " + system_message(error) +
                    (error == EMFILE || error == ENFILE
                         ? "; raise how many may be open (ulimit -n), or join small files to larger ones"
                         : "; check the path and its permissions"));
  }
  if (::fstat(out.file.get(), &out.status) != 0)
    throw DataError(path + ": cannot be examined: " + system_message(errno));
  if (S_ISDIR(out.status.st_mode))
    throw DataError(path + ": cannot be read, since it is a directory; give a file in it");
  if (!S_ISREG(out.status.st_mode))
    throw DataError(path + ": is not a regular file; every rank reads it, so copy it to one");
  return out;
}

LOCKSTEP_COLD_INLINE std::string read_text_at(int fd, std::uint64_t offset, std::uint64_t bytes,
                                              std::string const& path, char const* what) {
  constexpr std::uint64_t piece = std::uint64_t{1} << 20;
  std::string out;
  while (out.size() < bytes) {
    auto const done = out.size(), part = static_cast<std::size_t>(std::min(piece, bytes - done));
    out.resize(done + part);
    auto const got = read_at(fd, out.data() + done, part, offset + done, path);
    if (got < part)
      throw DataError(path + ": ends within " + what + ", after " + std::to_string(done + got) + " of its " +
                      std::to_string(bytes) + " bytes; it was cut off or has changed, write it again");
    if (auto const zero = out.find('\0', done); zero != std::string::npos)
      throw DataError(path + ": " + what + " of " + std::to_string(bytes) + " bytes holds a zero byte at offset " +
                      std::to_string(offset + zero) + ", which no text does; the file is damaged, write it again");
  }
  return out;
}

LOCKSTEP_COLD_INLINE std::string read_text_file(std::string const& path, std::uint64_t most) {
  auto const opened = open_regular_file(path);
  if (opened.size() > most)
    throw DataError(path + ": has " + std::to_string(opened.size()) + " bytes, and at most " + std::to_string(most) +
                    " are read of such a file; is it another file?");
  return read_text_at(opened.file.get(), 0, opened.size(), path, "the text");
}

}}  // namespace lockstep
