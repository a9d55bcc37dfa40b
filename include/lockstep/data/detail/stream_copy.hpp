// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// From this size on, copies bypass the caches. The target is then not read before it is written, and other data stays
/// in the caches. Smaller rows are likely to be in the caches when they are used.
inline constexpr std::size_t stream_bytes = std::size_t{64} << 10;

#if defined(__x86_64__)
// Instructions as the compilers' own functions: the header of intrinsics takes them longer than all of this folder.
typedef long long Streamed __attribute__((vector_size(16)));

/// Stores 16 bytes and bypasses the caches. `to` is aligned to 16 bytes.
inline void stream_store(std::byte* to, Streamed value) noexcept {
#if defined(__clang__)
  __builtin_nontemporal_store(value, reinterpret_cast<Streamed*>(to));
#else
  __builtin_ia32_movntdq(reinterpret_cast<Streamed*>(to), value);
#endif
}
/// Writes a cache line with stores that bypass the caches.
inline void stream_line(std::byte* to, Streamed a, Streamed b, Streamed c, Streamed d) noexcept {
  stream_store(to, a);
  stream_store(to + 16, b);
  stream_store(to + 32, c);
  stream_store(to + 48, d);
}
inline void stream_line(std::byte* to, std::byte const* from) noexcept {
  Streamed line[4];
  std::memcpy(line, from, sizeof line);
  stream_line(to, line[0], line[1], line[2], line[3]);
}

/// Copies from two streams a page and a half apart, and prefetches the next two. The hardware prefetcher
/// works only within a page, and two streams keep more reads in flight. The distance is not a whole page: some
/// processors (AMD's Zen 3) compare only addresses within a page, so reads would wait for earlier stores. The rate
/// would drop to a ninth where `to` is less than 512 bytes after `from` within its page. `to` is aligned to a cache
/// line.
/// @return the number of bytes copied; fewer than six pages remain
inline std::size_t stream_pairs(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
  constexpr std::size_t stream_distance = 4096 + 2048, prefetch_distance = 2 * stream_distance;
  std::size_t at = 0;
  for (; at + prefetch_distance + 2 * stream_distance <= bytes; at += 2 * stream_distance) {
    for (auto line = at; line < at + stream_distance; line += 64) {
      __builtin_prefetch(from + line + prefetch_distance);
      stream_line(to + line, from + line);
      __builtin_prefetch(from + line + stream_distance + prefetch_distance);
      stream_line(to + line + stream_distance, from + line + stream_distance);
    }
  }
  return at;
}

/// Returns the number of bytes before the first cache line that begins at or after `to`.
inline std::size_t before_line(std::byte const* to) noexcept {
  return (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
}
#endif

/// memcpy that bypasses the caches for large sizes.
inline void stream_copy(void* to, void const* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  if (bytes >= stream_bytes) {
    auto* const out = static_cast<std::byte*>(to);
    auto const* const in = static_cast<std::byte const*>(from);
    auto at = before_line(out);
    std::memcpy(out, in, at);
    at += stream_pairs(out + at, in + at, bytes - at);
    for (; at + 64 <= bytes; at += 64) stream_line(out + at, in + at);
    std::memcpy(out + at, in + at, bytes - at);
    __builtin_ia32_sfence();  // the mutex that publishes the batch does not order non-temporal stores
    return;
  }
#endif
  if (bytes > 0) std::memcpy(to, from, bytes);
}

/// Fills a range with one value. Bypasses the caches for large ranges.
template <class Value>
void stream_fill(Value* begin, Value* end, Value value) noexcept {
#if defined(__x86_64__)
  auto const bytes = static_cast<std::size_t>(end - begin) * sizeof(Value);
  if (bytes >= stream_bytes && 16 % sizeof(Value) == 0 &&
      reinterpret_cast<std::uintptr_t>(begin) % sizeof(Value) == 0) {
    alignas(16) Value sixteen[16 / sizeof(Value) > 0 ? 16 / sizeof(Value) : 1];
    for (auto& each : sixteen) each = value;
    Streamed pattern;
    std::memcpy(&pattern, sixteen, sizeof pattern);
    auto* const out = reinterpret_cast<std::byte*>(begin);
    auto at = before_line(out);
    std::fill_n(begin, at / sizeof(Value), value);
    for (; at + 64 <= bytes; at += 64) stream_line(out + at, pattern, pattern, pattern, pattern);
    std::fill(begin + at / sizeof(Value), end, value);
    __builtin_ia32_sfence();
    return;
  }
#endif
  std::fill(begin, end, value);
}

}}}  // namespace lockstep::data::detail
