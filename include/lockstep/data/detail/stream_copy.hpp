// SPDX-License-Identifier: Apache-2.0
#pragma once
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
/// Fills whole blocks of 64 bytes of `to` past the caches, with what `load(offset)` gives; a cache line is written at
/// once or not at all. The rest, less than a block at either end, is `edge(begin, end)`.
template <class Load, class Edge>
void stream(std::byte* to, std::size_t bytes, Load&& load, Edge&& edge) {
  auto const head = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
  edge(std::size_t{0}, head);
  auto at = head;
  for (; at + 64 <= bytes; at += 64) {
    __m128i const a = load(at), b = load(at + 16), c = load(at + 32), d = load(at + 48);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), a);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + 16), b);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + 32), c);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + 48), d);
  }
  edge(at, bytes);
  _mm_sfence();  // such stores are not ordered by the mutex that hands the batch over
}
#endif

/// memcpy, past the caches where it is large.
inline void stream_copy(void* to, void const* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  if (bytes >= stream_bytes) {
    auto* const out = static_cast<std::byte*>(to);
    auto const* const in = static_cast<std::byte const*>(from);
    return stream(
        out, bytes, [=](std::size_t at) { return _mm_loadu_si128(reinterpret_cast<__m128i const*>(in + at)); },
        [=](std::size_t begin, std::size_t end) { std::memcpy(out + begin, in + begin, end - begin); });
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
    return stream(
        reinterpret_cast<std::byte*>(begin), bytes, [=](std::size_t) { return pattern; },
        [=](std::size_t first, std::size_t last) {
          for (auto k = first / sizeof(T); k < last / sizeof(T); ++k) begin[k] = value;
        });
  }
#endif
  for (; begin != end; ++begin) *begin = value;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data::detail
