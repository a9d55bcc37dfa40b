// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

/// Runs CUDA kernels on the host, with a fiber for each thread of a block, so that their logic can be tested without a
/// GPU. Blocks run in sequence and threads in one order, reversed in the next launch, so an unordered sum or a missing
/// barrier tends to show. Speed and races between blocks are not emulated.
///
/// The bodies in block.cpp are compiled with optimization in each build, because kernels spend most of their time at
/// barriers.
namespace cuda_emulation {

struct Three {
  unsigned x = 1, y = 1, z = 1;
};

inline constexpr unsigned warp_size = 32, max_threads = 1024;

/// The line of a kernel at which its threads wait.
struct Site {
  char const* file = "";
  int line = 0;
};

/// Numbers of the running thread and block, and their counts.
struct Position {
  Three thread{0, 0, 0}, block{0, 0, 0}, threads, blocks;
};
inline Position position;

/// A kernel with its arguments: each thread calls call(kernel, values).
struct Body {
  void (*call)(void (*kernel)(), std::byte const* values);
  void (*kernel)();
  std::byte const* values;
};

/// Runs a kernel's blocks in sequence, because block-shared variables are static.
void run(Three grid, Three block_size, std::size_t shared_bytes, Body body);

void wait_for_block(Site site);
/// Whole warps only: `mask` names the participating lanes.
void wait_for_warp(unsigned mask, Site site);
/// Every lane stores a value and then reads another lane's.
std::uint64_t exchange_bits(unsigned mask, std::uint64_t bits, unsigned from, Site site);
template <class T>
T exchange(unsigned mask, T value, unsigned from, Site site) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange_bits(mask, bits, from, site);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
/// Bit i is set if lane i's predicate is true.
unsigned ballot(unsigned mask, bool predicate, Site site);
unsigned lane() noexcept;

/// The dynamic shared memory of the running block. Its bytes are NaNs of every type until a thread writes them.
std::byte* dynamic_shared();

}  // namespace cuda_emulation
