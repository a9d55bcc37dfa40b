// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "block.hpp"
#include "device.hpp"

/// What a GPU could do nothing with, or worse, among the arguments of a kernel.
namespace cuda_emulation {

/// CUDA before 12.1 has room for no more.
inline constexpr std::size_t most_argument_bytes = 4096;

template <class T>
[[nodiscard]] char const* name_of() {
  return __PRETTY_FUNCTION__;
}

/// Whether an address is one of this process: neither of device memory nor of page-locked host memory, which GPUs read.
[[nodiscard]] inline bool is_pageable(std::uintptr_t address) {
  if (address >> 48 != 0 || address >> 44 < 5) return false;  // a number: heap, stack and libraries lie above
  auto const* const at = reinterpret_cast<std::byte const*>(address);
  auto& memory = Memory::instance();
  if (memory.find(at) || memory.find(at - 1)) return false;  // the end of an array is an address, too
  auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return ::msync(reinterpret_cast<void*>(address / page * page), page, MS_ASYNC) == 0;  // fails where nothing is mapped
}

template <class T>
void check_argument(std::size_t number, T value) {
  auto const refuse = [&](std::string const& why) {
    refuse_to_go_on("argument " + std::to_string(number) + " of a kernel " + why + ": " + name_of<T>());
  };
  if constexpr (std::is_pointer_v<T> && !std::is_void_v<std::remove_pointer_t<T>>)
    if (reinterpret_cast<std::uintptr_t>(value) % alignof(std::remove_pointer_t<T>) != 0) refuse("is not aligned");
  if constexpr (std::has_unique_object_representations_v<T>) {  // what lies in padding may look like anything
    std::uintptr_t words[(sizeof value + sizeof(std::uintptr_t) - 1) / sizeof(std::uintptr_t)] = {};
    std::memcpy(words, &value, sizeof value);
    std::size_t at = 0;
    for (auto const word : words) {
      if (is_pageable(word)) refuse("has the address of host memory at byte " + std::to_string(at));
      at += sizeof word;
    }
  }
}

/// Looks through all of them, for what only the host can read.
template <class... Parameters>
void check_arguments(Parameters const&... values) {
  std::size_t number = 0;
  (check_argument<Parameters>(number++, values), ...);
}

}  // namespace cuda_emulation
