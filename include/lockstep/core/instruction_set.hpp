// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <type_traits>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI {

/// The vector instructions that a loop is compiled for, besides what the build allows anyway.
enum class InstructionSet {
  baseline,  ///< the build's own, narrower than the others
  avx2,      ///< 32-byte vectors
  avx512,    ///< 64-byte vectors
};

[[nodiscard]] constexpr char const* to_string(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::avx512:
      return "avx512";
    case InstructionSet::avx2:
      return "avx2";
    default:
      return "baseline";
  }
}

#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
#define LOCKSTEP_HAS_INSTRUCTION_SETS 1
#else
#define LOCKSTEP_HAS_INSTRUCTION_SETS 0
#endif

/// The set that the build allows on every processor that it is for, by -march=native for one: loops are compiled for no
/// narrower one.
#if !LOCKSTEP_HAS_INSTRUCTION_SETS
inline constexpr auto least_instruction_set = InstructionSet::baseline;
#elif defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
inline constexpr auto least_instruction_set = InstructionSet::avx512;
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
inline constexpr auto least_instruction_set = InstructionSet::avx2;
#else
inline constexpr auto least_instruction_set = InstructionSet::baseline;
#endif

// A program that is to be compiled quickly defines LOCKSTEP_ONE_INSTRUCTION_SET.
/// The widest set that loops are compiled for.
#if LOCKSTEP_HAS_INSTRUCTION_SETS && !defined(LOCKSTEP_ONE_INSTRUCTION_SET)
inline constexpr auto widest_instruction_set = InstructionSet::avx512;
#else
inline constexpr auto widest_instruction_set = least_instruction_set;
#endif

/// The widest of these that this processor and its operating system support.
[[nodiscard]] inline InstructionSet best_instruction_set() noexcept {
#if LOCKSTEP_HAS_INSTRUCTION_SETS
  if constexpr (least_instruction_set < widest_instruction_set) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
      return InstructionSet::avx512;
    if (__builtin_cpu_supports("avx2")) return InstructionSet::avx2;
  }
#endif
  return least_instruction_set;
}

// clang takes no wide registers as operands of instructions that are spelt out where a function is for any set.
#if LOCKSTEP_HAS_INSTRUCTION_SETS && !defined(__clang__)
#define LOCKSTEP_HAS_BFLOAT16_PRODUCTS 1
#else
#define LOCKSTEP_HAS_BFLOAT16_PRODUCTS 0
#endif

/// Whether this processor multiplies pairs of bfloat16 itself and adds both products to a float (AVX512-BF16), and the
/// compiler can have it do so.
[[nodiscard]] inline bool multiplies_bfloat16() noexcept {
#if LOCKSTEP_HAS_BFLOAT16_PRODUCTS
  return best_instruction_set() == InstructionSet::avx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

/// Whether this processor multiplies whole tiles of bfloat16 (AMX-BF16), and the operating system lets it: Linux is
/// asked for the registers once per process, which only allows to use them.
[[nodiscard]] inline bool multiplies_bfloat16_tiles() noexcept {
#if LOCKSTEP_HAS_BFLOAT16_PRODUCTS && defined(__linux__)
  static bool const can = [] {
    constexpr int request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
    return multiplies_bfloat16() && __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
           syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  }();
  return can;
#else
  return false;
#endif
}

/// How wide the vectors are that a body is compiled for: a type, so that the body can have values of that width. A
/// wider one that lasts from one turn of a loop to the next would be kept in memory.
template <std::size_t bytes>
struct Vectors {};

namespace detail {

/// What a body is called as. Where that means the same, as a copy: the compiler then knows that stores through the
/// body's pointers change none of its captures, and keeps them in registers.
template <class F, class V>
using Called = std::conditional_t<std::is_trivially_copyable_v<F> &&
                                      (std::is_invocable_v<F const&> || std::is_invocable_v<F const&, V>),
                                  F const, F&>;

// The body is called here and not by a helper: clang inlines what a `flatten` function calls itself, and no more. At
// -O2 g++ 12 vectorises almost nothing, and by default it contracts a * b + c where there are fused instructions, so
// that bits would depend on the processor. clang has no such attribute (and vectorises at -O2): there the build itself
// must say -ffp-contract=off, as Lockstep's targets do. What to optimise comes before what to compile for: g++ 14
// forgets a target that stands before it.
#if defined(__clang__) || defined(__CUDA_ARCH__)
#define LOCKSTEP_COMPILED_FOR(...) __VA_ARGS__
#define LOCKSTEP_AVX512 "avx512f,avx512vl,avx512bw,avx512dq"
#else
#define LOCKSTEP_COMPILED_FOR(...) [[gnu::optimize("O3", "fp-contract=off")]] __VA_ARGS__
#define LOCKSTEP_AVX512 "avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512"
#endif

template <class F>
LOCKSTEP_COMPILED_FOR([[gnu::flatten, gnu::noinline]])
decltype(auto) call_baseline(F& f) {
  Called<F, Vectors<16>> called(f);
  if constexpr (std::is_invocable_v<F&>) {
    return called();
  } else {
    return called(Vectors<16>{});
  }
}

#if LOCKSTEP_HAS_INSTRUCTION_SETS
template <class F>
LOCKSTEP_COMPILED_FOR([[gnu::flatten, gnu::noinline, gnu::target("avx2")]])
decltype(auto) call_avx2(F& f) {
  Called<F, Vectors<32>> called(f);
  if constexpr (std::is_invocable_v<F&>) {
    return called();
  } else {
    return called(Vectors<32>{});
  }
}

template <class F>
LOCKSTEP_COMPILED_FOR([[gnu::flatten, gnu::noinline, gnu::target(LOCKSTEP_AVX512)]])
decltype(auto) call_avx512(F& f) {
  Called<F, Vectors<64>> called(f);
  if constexpr (std::is_invocable_v<F&>) {
    return called();
  } else {
    return called(Vectors<64>{});
  }
}
#endif

#undef LOCKSTEP_AVX512
#undef LOCKSTEP_COMPILED_FOR

}  // namespace detail

/// f(a std::integral_constant) with `set`, or with the nearest one that loops are compiled for.
template <class F>
decltype(auto) with_compiled_set([[maybe_unused]] InstructionSet set, F&& f) {
  constexpr auto least = least_instruction_set, widest = widest_instruction_set;
  if constexpr (widest == InstructionSet::avx512 && least != widest)
    if (set == InstructionSet::avx512) return f(std::integral_constant<InstructionSet, InstructionSet::avx512>{});
  if constexpr (widest == InstructionSet::avx512 && least == InstructionSet::baseline)
    if (set == InstructionSet::avx2) return f(std::integral_constant<InstructionSet, InstructionSet::avx2>{});
  return f(std::integral_constant<InstructionSet, least>{});
}

/// f(), or f(Vectors<bytes>{}), compiled for `set`, which the processor must support, or for the nearest one that loops
/// are compiled for.
/// @determinism bitwise, whatever the set, for a body that does the same arithmetic per element: nothing is contracted
/// or reassociated. A body that asks for its own width would differ.
template <class F>
decltype(auto) with_instructions(InstructionSet set, F&& f) {
  return with_compiled_set(set, [&f](auto compiled) -> decltype(auto) {
#if LOCKSTEP_HAS_INSTRUCTION_SETS
    if constexpr (compiled() == InstructionSet::avx512) return detail::call_avx512(f);
    if constexpr (compiled() == InstructionSet::avx2) return detail::call_avx2(f);
#endif
    if constexpr (compiled() == InstructionSet::baseline) return detail::call_baseline(f);
  });
}

/// f(), or f(Vectors<bytes>{}), compiled for each set from least_instruction_set to widest_instruction_set, and run
/// with the widest vectors of these that the processor has. Meant for bodies that are a loop and what it calls inline:
/// everything that f calls is inlined into each version, so work that is not the loop (checks, messages) belongs
/// outside. Capture by value ([=]) what the loop reads: captures then stay in registers.
/// @determinism bitwise, whatever the processor; see with_instructions
template <class F>
decltype(auto) with_best_instructions(F&& f) {
  return with_instructions(best_instruction_set(), f);
}

}  // namespace lockstep::inline LOCKSTEP_ABI
