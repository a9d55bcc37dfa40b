// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "block.hpp"
#include "device.hpp"

/// Finds kernel arguments that a GPU cannot use, such as pointers to pageable host memory.
namespace cuda_emulation {

/// Limit of CUDA before 12.1.
inline constexpr std::size_t most_argument_bytes = 4096;

template <class T>
[[nodiscard]] constexpr char const* name_of() {
  return __PRETTY_FUNCTION__;
}

/// An argument, and its place among the values of all, so that the code for arguments is compiled once, and not for
/// each kernel.
struct Argument {
  std::size_t bytes, at;
  std::size_t alignment;  // alignment of the pointed-to value
  bool is_unique;         // std::has_unique_object_representations_v
  char const* name;       // name of its type
};

template <class T>
[[nodiscard]] constexpr Argument describe(std::size_t& end) {
  using Pointed = std::conditional_t<std::is_pointer_v<T> && !std::is_void_v<std::remove_pointer_t<T>>,
                                     std::remove_pointer_t<T>, std::byte>;
  auto const at = (end + alignof(T) - 1) / alignof(T) * alignof(T);
  end = at + sizeof(T);
  return {sizeof(T), at, alignof(Pointed), std::has_unique_object_representations_v<T>, name_of<T>()};
}

template <class Numbers, class... Parameters>
struct Signature;
template <std::size_t... number, class... Parameters>
struct Signature<std::index_sequence<number...>, Parameters...> {
  static constexpr auto arguments = [] {
    [[maybe_unused]] std::size_t end = 0;
    return std::array<Argument, sizeof...(Parameters)>{describe<Parameters>(end)...};
  }();
  static void call(void (*kernel)(), [[maybe_unused]] std::byte const* values) {
    reinterpret_cast<void (*)(Parameters...)>(kernel)(
        *reinterpret_cast<Parameters const*>(values + arguments[number].at)...);
  }
};

/// A kernel with any parameters.
struct Kernel {
  template <class... Parameters>
  explicit Kernel(void (*kernel)(Parameters...))
      : function(reinterpret_cast<void (*)()>(kernel)),
        call(Signature<std::index_sequence_for<Parameters...>, Parameters...>::call),
        arguments(Signature<std::index_sequence_for<Parameters...>, Parameters...>::arguments) {}

  [[nodiscard]] std::uintptr_t address() const noexcept { return reinterpret_cast<std::uintptr_t>(function); }

  void (*function)();
  void (*call)(void (*function)(), std::byte const* values);
  std::span<Argument const> arguments;
};

/// Whether an address belongs to this process, and is neither device memory nor page-locked host memory, which GPUs
/// read.
[[nodiscard]] inline bool is_pageable(std::uintptr_t address) {
  // a number: heap, stack and libraries have larger addresses
  if (address >> 48 != 0 || address >> 44 < 5) return false;
  auto const* const at = reinterpret_cast<std::byte const*>(address);
  auto& memory = Memory::instance();
  if (memory.find(at) || memory.find(at - 1)) return false;  // the end of an array is an address, too
  auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return ::msync(reinterpret_cast<void*>(address / page * page), page, MS_ASYNC) == 0;  // fails for unmapped memory
}

/// Copies them to contiguous memory.
[[nodiscard]] inline std::vector<std::byte> values_of(std::span<Argument const> arguments, void const* const* each) {
  if (arguments.empty()) return {};
  std::vector<std::byte> values(arguments.back().at + arguments.back().bytes);
  for (auto const& argument : arguments) std::memcpy(&values[argument.at], *each++, argument.bytes);
  return values;
}

/// Searches all of them for values that only the host can read.
inline void check_arguments(std::span<Argument const> arguments, std::byte const* values) {
  for (auto const& argument : arguments) {
    auto const refuse = [&](std::string const& why) {
      auto const number = static_cast<std::size_t>(&argument - arguments.data());
      refuse_to_go_on("argument " + std::to_string(number) + " of a kernel " + why + ": " + argument.name);
    };
    auto const word = [&](std::size_t at) {
      std::uintptr_t read = 0;
      std::memcpy(&read, values + argument.at + at, std::min(sizeof read, argument.bytes - at));
      return read;
    };
    if (argument.alignment > 1 && word(0) % argument.alignment != 0) refuse("is not aligned");
    if (!argument.is_unique) continue;  // padding may contain any bytes
    for (std::size_t at = 0; at < argument.bytes; at += sizeof(std::uintptr_t))
      if (is_pageable(word(at))) refuse("has the address of host memory at byte " + std::to_string(at));
  }
}

}  // namespace cuda_emulation
