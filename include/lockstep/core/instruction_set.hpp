// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <type_traits>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Vector instructions that a loop is compiled for, in addition to those that the build allows everywhere.
enum class InstructionSet {
  baseline,  ///< the build's own, narrower than the others
  avx2,      ///< 32-byte vectors
  avx512,    ///< 64-byte vectors
};

/// Returns the name of an instruction set, such as "avx2".
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
/// Whether loops are compiled for several instruction sets.
#define LOCKSTEP_HAS_INSTRUCTION_SETS 0
#endif

/// Instruction set that the build allows everywhere, for example with -march=native. Loops are compiled for no narrower
/// one.
#if !LOCKSTEP_HAS_INSTRUCTION_SETS
inline constexpr auto min_instruction_set = InstructionSet::baseline;
#elif defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
inline constexpr auto min_instruction_set = InstructionSet::avx512;
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
inline constexpr auto min_instruction_set = InstructionSet::avx2;
#else
inline constexpr auto min_instruction_set = InstructionSet::baseline;
#endif

// Define LOCKSTEP_ONE_INSTRUCTION_SET to compile a program quickly.
/// Widest instruction set that loops are compiled for.
#if LOCKSTEP_HAS_INSTRUCTION_SETS && !defined(LOCKSTEP_ONE_INSTRUCTION_SET)
inline constexpr auto widest_instruction_set = InstructionSet::avx512;
#else
inline constexpr auto widest_instruction_set = min_instruction_set;
#endif

/// Returns the widest of these sets that this processor and its operating system support.
[[nodiscard]] inline InstructionSet best_instruction_set() noexcept {
#if LOCKSTEP_HAS_INSTRUCTION_SETS
  if constexpr (min_instruction_set < widest_instruction_set) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
      return InstructionSet::avx512;
    if (__builtin_cpu_supports("avx2")) return InstructionSet::avx2;
  }
#endif
  return min_instruction_set;
}

// clang does not accept wide registers as operands of inline assembly in a function compiled for any set.
#if LOCKSTEP_HAS_INSTRUCTION_SETS && !defined(__clang__)
#define LOCKSTEP_HAS_BFLOAT16_PRODUCTS 1
#else
/// Whether products of bfloat16 are compiled.
#define LOCKSTEP_HAS_BFLOAT16_PRODUCTS 0
#endif

/// Returns whether this processor multiplies pairs of bfloat16 and adds both products to a float (AVX512-BF16), and the
/// compiler can generate the instruction.
[[nodiscard]] inline bool multiplies_bfloat16() noexcept {
#if LOCKSTEP_HAS_BFLOAT16_PRODUCTS
  return best_instruction_set() == InstructionSet::avx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

/// Returns whether this processor multiplies tiles of bfloat16 (AMX-BF16) and the operating system permits it. Requests
/// the registers' permission from Linux once per process, which only allows their use.
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

/// Vector width that a body is compiled for. A type, so that the body can have values of that width. A wider value that
/// lives across loop iterations would be kept in memory.
template <std::size_t bytes>
struct Vectors {};

namespace detail {

/// Form in which a body is called: by copy if that is equivalent. The compiler then knows that stores through the
/// body's pointers change none of its captures, and keeps them in registers.
template <class Function, class Argument>
using Called =
    std::conditional_t<std::is_trivially_copyable_v<Function> &&
                           (std::is_invocable_v<Function const&> || std::is_invocable_v<Function const&, Argument>),
                       Function const, Function&>;

// These functions call the body themselves: clang inlines only direct calls of a `flatten` function. At -O2, g++ 12
// vectorizes almost nothing. By default it contracts a * b + c if fused instructions exist, so that bits would depend
// on the processor. However, clang has no such attribute (and vectorizes at -O2). Its builds must set
// -ffp-contract=off, as Lockstep's targets do. The optimize attribute comes before the target: g++ 14 forgets a target
// that precedes it.
#if defined(__clang__) || defined(__CUDA_ARCH__)
#define LOCKSTEP_COMPILED_FOR(level, ...) __VA_ARGS__
#define LOCKSTEP_AVX512 "avx512f,avx512vl,avx512bw,avx512dq"
#else
#define LOCKSTEP_COMPILED_FOR(level, ...) [[gnu::optimize(level, "fp-contract=off")]] __VA_ARGS__
#define LOCKSTEP_AVX512 "avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512"
#endif
// If wider sets are compiled too, only processors without AVX2 run the baseline.
#if LOCKSTEP_HAS_INSTRUCTION_SETS && !defined(LOCKSTEP_ONE_INSTRUCTION_SET)
#define LOCKSTEP_BASELINE_LEVEL "O2"
#else
#define LOCKSTEP_BASELINE_LEVEL "O3"
#endif

template <class Function>
LOCKSTEP_COMPILED_FOR(LOCKSTEP_BASELINE_LEVEL, [[gnu::flatten, gnu::noinline]])
decltype(auto) call_baseline(Function& f) {
  Called<Function, Vectors<16>> called(f);
  if constexpr (std::is_invocable_v<Function&>) {
    return called();
  } else {
    return called(Vectors<16>{});
  }
}

#if LOCKSTEP_HAS_INSTRUCTION_SETS
template <class Function>
LOCKSTEP_COMPILED_FOR("O3", [[gnu::flatten, gnu::noinline, gnu::target("avx2")]])
decltype(auto) call_avx2(Function& f) {
  Called<Function, Vectors<32>> called(f);
  if constexpr (std::is_invocable_v<Function&>) {
    return called();
  } else {
    return called(Vectors<32>{});
  }
}

template <class Function>
LOCKSTEP_COMPILED_FOR("O3", [[gnu::flatten, gnu::noinline, gnu::target(LOCKSTEP_AVX512)]])
decltype(auto) call_avx512(Function& f) {
  Called<Function, Vectors<64>> called(f);
  if constexpr (std::is_invocable_v<Function&>) {
    return called();
  } else {
    return called(Vectors<64>{});
  }
}
#endif

#undef LOCKSTEP_AVX512
#undef LOCKSTEP_COMPILED_FOR
#undef LOCKSTEP_BASELINE_LEVEL

}  // namespace detail

/// Calls f(a std::integral_constant) with `set`, or with the nearest set that loops are compiled for.
template <class Function>
decltype(auto) with_compiled_set([[maybe_unused]] InstructionSet set, Function&& f) {
  constexpr auto least = min_instruction_set, widest = widest_instruction_set;
  if constexpr (widest == InstructionSet::avx512 && least != widest)
    if (set == InstructionSet::avx512) return f(std::integral_constant<InstructionSet, InstructionSet::avx512>{});
  if constexpr (widest == InstructionSet::avx512 && least == InstructionSet::baseline)
    if (set == InstructionSet::avx2) return f(std::integral_constant<InstructionSet, InstructionSet::avx2>{});
  return f(std::integral_constant<InstructionSet, least>{});
}

/// Calls f(), or f(Vectors<bytes>{}), compiled for `set` or for the nearest set that loops are compiled for. The
/// processor must support `set`.
/// @determinism bitwise, for any set, if the body does the same arithmetic per element: nothing is contracted or
/// reassociated. A body that uses its vector width differently would differ.
template <class Function>
decltype(auto) with_instructions(InstructionSet set, Function&& f) {
  return with_compiled_set(set, [&f](auto compiled) -> decltype(auto) {
#if LOCKSTEP_HAS_INSTRUCTION_SETS
    if constexpr (compiled() == InstructionSet::avx512) return detail::call_avx512(f);
    if constexpr (compiled() == InstructionSet::avx2) return detail::call_avx2(f);
#endif
    if constexpr (compiled() == InstructionSet::baseline) return detail::call_baseline(f);
  });
}

/// Calls f(), or f(Vectors<bytes>{}), compiled for each set from min_instruction_set to widest_instruction_set. Runs
/// the version with the widest vectors that the processor has. The body should be a loop with the functions that it
/// inlines. Everything that f calls is inlined into each version, so keep checks and messages outside. Capture by value
/// ([=]) the variables that the loop reads: captures then stay in registers.
/// @determinism bitwise, on any processor; see with_instructions
template <class Function>
decltype(auto) with_best_instructions(Function&& f) {
  return with_instructions(best_instruction_set(), f);
}

}}  // namespace lockstep
