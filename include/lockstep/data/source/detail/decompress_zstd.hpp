// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_ZSTD)
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/sha256.hpp>
#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/detail/partial_path.hpp>
#include <lockstep/data/source/detail/mds_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Decompresses a zstd file, which must hold `bytes` bytes, to a new file. The new file appears complete or not at all.
/// @param sha256 of the compressed file, or null; it is compared while the file is read
/// @throws DataError if the content has another hash or size or is damaged, or the file cannot be written
/// @source RFC 8878
inline void decompress_zstd(DataFile const& from, std::string const& to, std::uint64_t bytes,
                            std::string const* sha256) {
  struct Output {
    std::string path, partial;
    std::FILE* file;
    ~Output() {
      if (file != nullptr) std::fclose(file);
      std::remove(partial.c_str());
    }
    void expect(bool holds) const {
      if (!holds) throw DataError(path + ": cannot be written: " + system_message(errno));
    }
  };
  auto const partial = partial_path(to);
  Output out{to, partial, std::fopen(partial.c_str(), "wbx")};
  out.expect(out.file != nullptr);
  std::unique_ptr<::ZSTD_DCtx, std::size_t (*)(::ZSTD_DCtx*)> const context(::ZSTD_createDCtx(), ::ZSTD_freeDCtx);
  // A frame may ask for a window of 128 MiB or more, whatever its size; none needs one that exceeds its content.
  auto const window = std::clamp(static_cast<int>(std::bit_width(bytes)), 23, 27);
  if (!context || ::ZSTD_isError(::ZSTD_DCtx_setParameter(context.get(), ::ZSTD_d_windowLogMax, window)) != 0)
    throw std::bad_alloc();
  std::vector<std::byte> packed(::ZSTD_DStreamInSize()), plain(::ZSTD_DStreamOutSize());
  std::uint64_t written = 0;
  std::size_t expected = 1;  // 0 after the end of a frame
  Sha256 hash;
  std::uint64_t at = 0;
  auto const check_hash = [&] {
    if (sha256 != nullptr) check_mds_hash(from, hash, at, *sha256);
  };
  auto const fail = [&](std::string const& why) {
    check_hash();  // names the cause
    from.fail(why);
  };
  while (at < from.size() && written <= bytes) {
    auto const part = static_cast<std::size_t>(std::min<std::uint64_t>(packed.size(), from.size() - at));
    from.read(at, std::span(packed).first(part));
    if (sha256 != nullptr) hash.update(std::span(packed).first(part));
    at += part;
    ::ZSTD_inBuffer in{packed.data(), part, 0};
    for (bool more = true; in.pos < in.size || more;) {
      ::ZSTD_outBuffer made{plain.data(), plain.size(), 0};
      expected = ::ZSTD_decompressStream(context.get(), &made, &in);
      if (::ZSTD_isError(expected) != 0)
        fail("cannot be decompressed: " + std::string(::ZSTD_getErrorName(expected)) + "; write it again");
      written += made.pos;
      if (written > bytes) break;
      out.expect(std::fwrite(plain.data(), 1, made.pos, out.file) == made.pos);
      more = made.pos == made.size && expected != 0;
    }
  }
  if (expected != 0 && written <= bytes) fail("ends within its compressed data; it was cut off, write it again");
  if (written != bytes)
    fail("holds " + std::string(written > bytes ? "more than " : "") + std::to_string(std::min(written, bytes)) +
         " bytes, and the index says " + std::to_string(bytes) + "; one of the two is damaged");
  check_hash();
  auto* const file = out.file;
  out.file = nullptr;
  out.expect(std::fclose(file) == 0);
  out.expect(std::rename(partial.c_str(), to.c_str()) == 0);
}

}}}  // namespace lockstep::data::detail
#endif
