// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <type_traits>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI {

/// The vector instructions that a loop is compiled for, besides what the build allows anyway.
enum class InstructionSet {
  baseline,  ///< the build's own
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

// A program that is compiled for its own processor, or quickly, defines LOCKSTEP_ONE_INSTRUCTION_SET: loops are then
// compiled once, for what the build allows, instead of three times.
#if defined(__x86_64__) && !defined(__CUDA_ARCH__) && !defined(LOCKSTEP_ONE_INSTRUCTION_SET)
#define LOCKSTEP_HAS_INSTRUCTION_SETS 1
#else
#define LOCKSTEP_HAS_INSTRUCTION_SETS 0
#endif

/// The widest set that this processor and its operating system support.
[[nodiscard]] inline InstructionSet best_instruction_set() noexcept {
#if LOCKSTEP_HAS_INSTRUCTION_SETS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return InstructionSet::avx512;
  if (__builtin_cpu_supports("avx2")) return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
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

/// How wide the vectors are that a body is compiled for: a type, so that the body can have values of that width. A
/// wider one that lasts from one turn of a loop to the next would be kept in memory.
template <std::size_t bytes>
struct Vectors {};

namespace detail {

/// Calls f, with its vectors if it asks for them. Where that means the same, calls a copy: the compiler then knows that
/// stores through the body's pointers change none of its captures, and keeps them in registers.
template <std::size_t bytes, class F>
[[gnu::always_inline]] inline decltype(auto) call(F& f) {
  if constexpr (std::is_trivially_copyable_v<F> && std::is_invocable_v<F const&>) {
    F const copy(f);
    return copy();
  } else if constexpr (std::is_invocable_v<F&>) {
    return f();
  } else if constexpr (std::is_trivially_copyable_v<F> && std::is_invocable_v<F const&, Vectors<bytes>>) {
    F const copy(f);
    return copy(Vectors<bytes>{});
  } else {
    return f(Vectors<bytes>{});
  }
}

// At -O2 g++ 12 vectorises almost nothing, and by default it contracts a * b + c where there are fused instructions, so
// that bits would depend on the processor. clang has no such attribute (and vectorises at -O2): there the build itself
// must say -ffp-contract=off, as Lockstep's targets do.
#if defined(__clang__) || defined(__CUDA_ARCH__)
#define LOCKSTEP_COMPILED_FOR(...) __VA_ARGS__
#define LOCKSTEP_AVX512 "avx512f,avx512vl,avx512bw,avx512dq"
#else
#define LOCKSTEP_COMPILED_FOR(...) __VA_ARGS__ [[gnu::optimize("O3", "fp-contract=off")]]
#define LOCKSTEP_AVX512 "avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512"
#endif

#if defined(__AVX512F__)
#define LOCKSTEP_BASELINE_VECTOR 64
#elif defined(__AVX__)
#define LOCKSTEP_BASELINE_VECTOR 32
#else
#define LOCKSTEP_BASELINE_VECTOR 16
#endif

template <class F>
LOCKSTEP_COMPILED_FOR([[gnu::flatten, gnu::noinline]])
decltype(auto) call_baseline(F& f) {
  return call<LOCKSTEP_BASELINE_VECTOR>(f);
}

#if LOCKSTEP_HAS_INSTRUCTION_SETS
template <class F>
LOCKSTEP_COMPILED_FOR([[gnu::flatten, gnu::noinline, gnu::target("avx2")]])
decltype(auto) call_avx2(F& f) {
  return call<32>(f);
}

template <class F>
LOCKSTEP_COMPILED_FOR([[gnu::flatten, gnu::noinline, gnu::target(LOCKSTEP_AVX512)]])
decltype(auto) call_avx512(F& f) {
  return call<64>(f);
}
#endif

#undef LOCKSTEP_BASELINE_VECTOR
#undef LOCKSTEP_AVX512
#undef LOCKSTEP_COMPILED_FOR

}  // namespace detail

/// f(), or f(Vectors<bytes>{}), compiled for `set`, which the processor must support; `baseline` where the build knows
/// no other.
/// @determinism bitwise, whatever the set, for a body that does the same arithmetic per element: nothing is contracted
/// or reassociated. A body that asks for its own width would differ.
template <class F>
decltype(auto) with_instructions([[maybe_unused]] InstructionSet set, F&& f) {
#if LOCKSTEP_HAS_INSTRUCTION_SETS
  if (set == InstructionSet::avx512) return detail::call_avx512(f);
  if (set == InstructionSet::avx2) return detail::call_avx2(f);
#endif
  return detail::call_baseline(f);
}

/// f(), or f(Vectors<bytes>{}), compiled three times and run with the widest vectors that the processor has. Meant for
/// bodies that are a loop and what it calls inline: everything that f calls is inlined into each version, so work that
/// is not the loop (checks, messages) belongs outside. Capture by value ([=]) what the loop reads: captures then stay
/// in registers.
/// @determinism bitwise, whatever the processor; see with_instructions
template <class F>
decltype(auto) with_best_instructions(F&& f) {
  return with_instructions(best_instruction_set(), f);
}

}  // namespace lockstep::inline LOCKSTEP_ABI
