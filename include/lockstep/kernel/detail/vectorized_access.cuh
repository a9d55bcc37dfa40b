// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/rounded_product.cuh>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Largest number of bytes of one thread's access: a device's widest load and store.
inline constexpr std::size_t widest_access_bytes = 16;

/// Number of adjacent elements of this type in the widest access.
template <class Scalar>
inline constexpr int elements_per_access = static_cast<int>(widest_access_bytes / sizeof(Scalar));

inline namespace LOCKSTEP_CUDA_ABI {

/// Adjacent elements of one thread. The last thread of a row or vector may have fewer. Reads and writes any tensors
/// with the same layout, with accesses as wide as type and address allow. cub::BlockLoad and cub::BlockStore access one
/// tile of a block instead, whose alignment is known when the kernel is compiled.
template <int count>
class VectorizedAccess {
 public:
  static constexpr int size = count;
  template <class Scalar>
  using Values = Scalar[static_cast<std::size_t>(count)];

  /// Elements from `first` on, of `end` in all.
  __device__ VectorizedAccess(Index first, Index end) noexcept
      : first_(first), valid_(static_cast<int>(min(Index{count}, end - first))) {}

  [[nodiscard]] __device__ Index first() const noexcept { return first_; }
  [[nodiscard]] __device__ bool has(int j) const noexcept { return j < valid_; }

  /// Computes x[j] = from[first + j], or zero after the end.
  template <class Scalar>
  __device__ void load(Scalar const* from, Values<Scalar>& x) const noexcept {
    if (auto const* const at = from + first_; is_wide(at)) {
      load_all(at, x);
    } else {
      for (int j = 0; j < count; ++j) x[j] = has(j) ? at[j] : Scalar{};
    }
  }
  /// Loads and converts to the type of the computation.
  template <class Scalar, class Number>
  __device__ void load_as(Scalar const* from, Values<Number>& x) const noexcept {
    Values<Scalar> stored;
    load(from, stored);
    for (int j = 0; j < count; ++j) x[j] = static_cast<Number>(stored[j]);
  }

  /// Computes to[first + j] = x[j], except after the end.
  template <class Scalar>
  __device__ void store(Values<Scalar> const& x, Scalar* to) const noexcept {
    if (auto* const at = to + first_; is_wide(at)) {
      store_all(x, at);
    } else {
      for (int j = 0; j < count; ++j)
        if (has(j)) at[j] = x[j];
    }
  }
  /// Loads all elements, if all are there and the address is aligned for the access. Has no branch, so nvcc queues
  /// several such loads before it waits for the first.
  template <class Scalar>
  __device__ void load_whole(Scalar const* from, Values<Scalar>& x) const noexcept {
    load_all(from + first_, x);
  }
  /// Stores all elements, rounded to the stored type, under the same conditions.
  template <class Number, class Scalar>
  __device__ void put_whole(Values<Number> const& x, Scalar* to) const noexcept {
    Values<Scalar> stored;
    for (int j = 0; j < count; ++j) stored[j] = static_cast<Scalar>(x[j]);
    store_all(stored, to + first_);
  }
  /// Stores x, rounded to the stored type; or adds x to the stored values and then rounds.
  template <class Number, class Scalar>
  __device__ void put(Values<Number> const& x, Scalar* to, Write write = Write::overwrite) const noexcept {
    Values<Scalar> stored;
    if (write == Write::add) load(to, stored);
    for (int j = 0; j < count; ++j)
      stored[j] = static_cast<Scalar>(write == Write::add ? rounded_sum(static_cast<Number>(stored[j]), x[j]) : x[j]);
    store(stored, to);
  }

  /// Computes to[first + j] *= factors[j], rounded to the stored type.
  template <class Scalar, class Number>
  __device__ void multiply(Scalar* to, Values<Number> const& factors) const noexcept {
    Values<Number> x;
    load_as(to, x);
    for (int j = 0; j < count; ++j) x[j] *= factors[j];
    put(x, to);
  }

 private:
  /// Bytes of one access.
  template <class Scalar>
  static constexpr std::size_t access = sizeof(Values<Scalar>) < widest_access_bytes ? sizeof(Values<Scalar>)
                                                                                     : widest_access_bytes;

  /// Loads all elements. Accesses of the widest size use a type of the device's own. nvcc splits other copies into
  /// single elements when it merges them with the loop for a row's end.
  template <class Scalar>
  static __device__ void load_all(Scalar const* at, Values<Scalar>& x) noexcept {
    if constexpr (access<Scalar> == sizeof(uint4)) {
      for (int j = 0; j < count; j += elements_per_access<Scalar>) {
        uint4 const piece = *reinterpret_cast<uint4 const*>(at + j);
        std::memcpy(static_cast<void*>(x + j), &piece, sizeof piece);
      }
    } else {
      std::memcpy(x, __builtin_assume_aligned(static_cast<void const*>(at), access<Scalar>), sizeof x);
    }
  }
  template <class Scalar>
  static __device__ void store_all(Values<Scalar> const& x, Scalar* at) noexcept {
    if constexpr (access<Scalar> == sizeof(uint4)) {
      for (int j = 0; j < count; j += elements_per_access<Scalar>) {
        uint4 piece;
        std::memcpy(&piece, x + j, sizeof piece);
        __stwb(reinterpret_cast<uint4*>(at + j), piece);
      }
    } else {
      std::memcpy(__builtin_assume_aligned(static_cast<void*>(at), access<Scalar>), x, sizeof x);
    }
  }
  template <class Scalar>
  [[nodiscard]] __device__ bool is_wide(Scalar const* at) const noexcept {
    return valid_ == count && reinterpret_cast<std::uintptr_t>(at) % access<Scalar> == 0;
  }

  Index first_;
  int valid_;
};

/// Calls f(0), ..., f(count - 1), where each argument is a constant of its own type, so that arrays indexed by it stay
/// in registers.
template <int count, class Function>
__device__ void for_constants(Function const& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) { (f(std::integral_constant<int, i>{}), ...); }
  (std::make_integer_sequence<int, count>{});
}

/// Calls f(group) for each group of `count` adjacent elements among `size`, one thread each.
template <int count, class Function>
LOCKSTEP_CUDA_KERNEL void run_vectorized(Index size, Function f) {
  for (auto first = grid_thread() * count; first < size; first += grid_threads() * count)
    f(VectorizedAccess<count>(first, size));
}

}  // namespace LOCKSTEP_CUDA_ABI

/// As many adjacent elements of this type as one access holds, and their values in the type of the computation.
template <class Scalar>
using WidestAccess = VectorizedAccess<elements_per_access<Scalar>>;
template <class Scalar>
using AccessNumbers = typename WidestAccess<Scalar>::template Values<Accumulate<Scalar>>;

/// Queues f(WidestAccess<Scalar>) for all of a vector of `size` elements of type Scalar, one thread each.
template <class Scalar, class Function>
void for_vectorized(char const* name, memory::Stream<CudaSpace> stream, Index size, Function const& f) {
  constexpr int count = elements_per_access<Scalar>;
  launch(name, stream, (size + count - 1) / count, run_vectorized<count, Function>, size, f);
}

}}}  // namespace lockstep::kernel::detail
