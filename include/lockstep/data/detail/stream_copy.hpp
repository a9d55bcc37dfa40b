// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data::detail {

/// From here on a copy goes past the caches: its target is not read before it is written, and what others keep in the
/// caches stays there. Smaller rows are likely to be still in them when they are used.
inline constexpr std::size_t stream_bytes = std::size_t{64} << 10;

#if defined(__x86_64__)
/// Writes a cache line past the caches.
inline void stream_line(std::byte* to, __m128i a, __m128i b, __m128i c, __m128i d) noexcept {
  auto* const line = reinterpret_cast<__m128i*>(to);
  _mm_stream_si128(line, a);
  _mm_stream_si128(line + 1, b);
  _mm_stream_si128(line + 2, c);
  _mm_stream_si128(line + 3, d);
}
inline void stream_line(std::byte* to, std::byte const* from) noexcept {
  auto const* const line = reinterpret_cast<__m128i const*>(from);
  stream_line(to, _mm_loadu_si128(line), _mm_loadu_si128(line + 1), _mm_loadu_si128(line + 2),
              _mm_loadu_si128(line + 3));
}

/// From two places a page and a half apart, with the two that follow asked for meanwhile: the processor looks ahead
/// within a page only, and has more reads under way where there are two of them. A whole page apart, reads would wait
/// for the stores before them on some processors (AMD's Zen 3), which compare places within a page: down to a ninth of
/// the rate, where `to` lies less than 512 bytes behind `from` in its page. `to` begins a cache line.
/// @return how many bytes were copied, all but less than six pages
inline std::size_t stream_pairs(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
  constexpr std::size_t apart = 4096 + 2048, ahead = 2 * apart;
  std::size_t at = 0;
  for (; at + ahead + 2 * apart <= bytes; at += 2 * apart) {
    for (auto line = at; line < at + apart; line += 64) {
      _mm_prefetch(reinterpret_cast<char const*>(from + line + ahead), _MM_HINT_T0);
      stream_line(to + line, from + line);
      _mm_prefetch(reinterpret_cast<char const*>(from + line + apart + ahead), _MM_HINT_T0);
      stream_line(to + line + apart, from + line + apart);
    }
  }
  return at;
}

/// Bytes before the first cache line that begins at `to` or after it.
inline std::size_t before_line(std::byte const* to) noexcept {
  return (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
}
#endif

/// memcpy, past the caches where it is large.
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
    _mm_sfence();  // such stores are not ordered by the mutex that hands the batch over
    return;
  }
#endif
  if (bytes > 0) std::memcpy(to, from, bytes);
}

/// Copies of one value, past the caches where they are many.
template <class T>
void stream_fill(T* begin, T* end, T value) noexcept {
#if defined(__x86_64__)
  auto const bytes = static_cast<std::size_t>(end - begin) * sizeof(T);
  if (bytes >= stream_bytes && 16 % sizeof(T) == 0 && reinterpret_cast<std::uintptr_t>(begin) % sizeof(T) == 0) {
    alignas(16) T sixteen[16 / sizeof(T) > 0 ? 16 / sizeof(T) : 1];
    for (auto& each : sixteen) each = value;
    auto const pattern = _mm_load_si128(reinterpret_cast<__m128i const*>(sixteen));
    auto* const out = reinterpret_cast<std::byte*>(begin);
    auto at = before_line(out);
    std::fill_n(begin, at / sizeof(T), value);
    for (; at + 64 <= bytes; at += 64) stream_line(out + at, pattern, pattern, pattern, pattern);
    std::fill(begin + at / sizeof(T), end, value);
    _mm_sfence();
    return;
  }
#endif
  std::fill(begin, end, value);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data::detail
