// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/shared_memory/detail/rank_block.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

LOCKSTEP_INLINE void SharedDescriptor::store(Descriptor const& d, std::uint32_t number) noexcept {
  std::array<std::uint64_t, words> copy;
  std::memcpy(copy.data(), &d, sizeof d);
  for (std::size_t i = 0; i < words; ++i) words_[i].store(copy[i], std::memory_order_relaxed);
  number_.store(number + 1, std::memory_order_release);
}

LOCKSTEP_INLINE bool SharedDescriptor::has_number(std::uint32_t number) const noexcept {
  return number_.load(std::memory_order_acquire) == number + 1;
}

LOCKSTEP_INLINE Descriptor SharedDescriptor::load() const noexcept {
  std::array<std::uint64_t, words> copy;
  for (std::size_t i = 0; i < words; ++i) copy[i] = words_[i].load(std::memory_order_relaxed);
  Descriptor d;
  std::memcpy(&d, copy.data(), sizeof d);
  return d;
}

LOCKSTEP_INLINE Index SharedDescriptor::address() const noexcept {
  return static_cast<Index>(
      words_[offsetof(Descriptor, address) / sizeof(std::uint64_t)].load(std::memory_order_relaxed));
}

LOCKSTEP_INLINE bool reached(std::uint32_t value, std::uint32_t target) noexcept {
  return static_cast<std::int32_t>(value - target) >= 0;
}

}}}  // namespace lockstep::comm::detail
