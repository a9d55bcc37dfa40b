// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <version>

/// The only definition of the version; CMake reads it from here.
#define LOCKSTEP_VERSION_MAJOR 0
#define LOCKSTEP_VERSION_MINOR 1
#define LOCKSTEP_VERSION_PATCH 0

/// Two ways to use one source. By default the library is header-only. With LOCKSTEP_COMPILED, which the CMake target
/// lockstep::compiled defines, headers only declare their longer functions, and a library is linked. LOCKSTEP_INLINE
/// begins a function in an implementation file (.ipp), and LOCKSTEP_COLD_INLINE one that runs at most once per fit,
/// evaluation or save, which compilers optimize for size.
#if defined(LOCKSTEP_COMPILED)
#if !defined(LOCKSTEP_INLINE)
#define LOCKSTEP_INLINE
#endif
#define LOCKSTEP_ABI_WAY _linked
#else
#define LOCKSTEP_INLINE inline
#define LOCKSTEP_ABI_WAY
#endif
#define LOCKSTEP_COLD_INLINE [[gnu::cold]] LOCKSTEP_INLINE

/// Inline namespace of the whole library. It differs between versions, ways of use, compute libraries, single and
/// multiple instruction sets, and levels of checks. Libraries built in different ways can therefore share a program
/// without sharing symbols.
#if defined(LOCKSTEP_BLAS)
#define LOCKSTEP_ABI_BLAS _blas
#else
#define LOCKSTEP_ABI_BLAS
#endif
#if defined(LOCKSTEP_ONEDNN)
#define LOCKSTEP_ABI_ONEDNN _onednn
#else
#define LOCKSTEP_ABI_ONEDNN
#endif
#if defined(LOCKSTEP_CUDNN) && !defined(LOCKSTEP_COMPILED)  // linked, only lockstep::compiled_cuda depends on it
#define LOCKSTEP_ABI_CUDNN _cudnn
#else
#define LOCKSTEP_ABI_CUDNN
#endif
#if defined(LOCKSTEP_ONE_INSTRUCTION_SET)
#define LOCKSTEP_ABI_SET _one_set
#else
#define LOCKSTEP_ABI_SET
#endif
/// Level of run-time checks (contract.hpp). None is 0 or 1, the values of a misspelt name and of a macro without a
/// value.
#define LOCKSTEP_CONTRACT_OFF 5
#define LOCKSTEP_CONTRACT_CHEAP 10
#define LOCKSTEP_CONTRACT_NORMAL 20
#if !defined(LOCKSTEP_CONTRACT_LEVEL)
#define LOCKSTEP_CONTRACT_LEVEL LOCKSTEP_CONTRACT_NORMAL
#endif
#if LOCKSTEP_CONTRACT_LEVEL >= LOCKSTEP_CONTRACT_NORMAL
#define LOCKSTEP_ABI_CHECKS
#elif LOCKSTEP_CONTRACT_LEVEL >= LOCKSTEP_CONTRACT_CHEAP
#define LOCKSTEP_ABI_CHECKS _cheap
#else
#define LOCKSTEP_ABI_CHECKS _off
#endif
#define LOCKSTEP_ABI_JOIN(a, b, c, d, e, f, g) a##b##c##d##e##f##g
#define LOCKSTEP_ABI_JOINED(a, b, c, d, e, f, g) LOCKSTEP_ABI_JOIN(a, b, c, d, e, f, g)
#define LOCKSTEP_ABI                                                                                      \
  LOCKSTEP_ABI_JOINED(v0_1, LOCKSTEP_ABI_WAY, LOCKSTEP_ABI_BLAS, LOCKSTEP_ABI_ONEDNN, LOCKSTEP_ABI_CUDNN, \
                      LOCKSTEP_ABI_SET, LOCKSTEP_ABI_CHECKS)

#if !defined(__linux__)
#error "Lockstep: it needs Linux"
#endif
#if __cplusplus < 202002L
#error "Lockstep: it needs C++20: compile with -std=c++20 or later"
#endif
#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 200000  // it has no std::stop_token, nor from_chars of a double
#error "Lockstep: it needs a libc++ newer than 19, or libstdc++: compile with -stdlib=libstdc++"
#endif
#if !defined(__cpp_exceptions) || !defined(__cpp_rtti)
#error "Lockstep: it needs exceptions and type information: compile without -fno-exceptions and -fno-rtti"
#endif
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error \
    "Lockstep: -ffast-math changes results between runs and builds, and -ffinite-math-only hides a nan; compile files that include Lockstep without, or add -fno-fast-math -ffp-contract=off"
#endif
#if defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)  // clang defines neither
#error \
    "Lockstep: -funsafe-math-optimizations and its parts change results between builds; compile files that include Lockstep without, or add -fno-unsafe-math-optimizations"
#endif
#if defined(slots) || defined(signals)
#error "Lockstep: Qt's macros slots and signals: define QT_NO_KEYWORDS, or include Lockstep first"
#endif
#if LOCKSTEP_CONTRACT_LEVEL != LOCKSTEP_CONTRACT_NORMAL && LOCKSTEP_CONTRACT_LEVEL != LOCKSTEP_CONTRACT_CHEAP && \
    LOCKSTEP_CONTRACT_LEVEL != LOCKSTEP_CONTRACT_OFF
#error \
    "Lockstep: LOCKSTEP_CONTRACT_LEVEL must be LOCKSTEP_CONTRACT_NORMAL, LOCKSTEP_CONTRACT_CHEAP or LOCKSTEP_CONTRACT_OFF"
#endif

// A program whose files use the library in both ways has two of everything, so it must not link. Linkers reject a
// symbol that one file defines as thread-local and another as an ordinary variable. lld 19 does not, for files of
// clang, but rejects a section of both.
#if defined(__ELF__) && !defined(__CUDA_ARCH__)
#define LOCKSTEP_MIX_SECTION \
  gnu::section(".lockstep_is_linked_in_one_file_and_header_only_in_another"), gnu::used, gnu::retain
#if defined(LOCKSTEP_COMPILED)
extern "C" [[gnu::visibility("hidden")]] char lockstep_is_linked_in_one_file_and_header_only_in_another;
#else
extern "C" {
[[gnu::used, gnu::visibility("hidden")]] inline __thread char lockstep_is_linked_in_one_file_and_header_only_in_another;
#if defined(__clang__)
[[LOCKSTEP_MIX_SECTION, gnu::visibility("hidden")]] inline __thread char lockstep_is_header_only;
#endif
}
#endif
#endif

namespace lockstep { inline namespace LOCKSTEP_ABI {

#if defined(__ELF__) && !defined(__CUDA_ARCH__) && defined(LOCKSTEP_COMPILED)
namespace detail {
[[gnu::used]] inline char const* const linked = &lockstep_is_linked_in_one_file_and_header_only_in_another;
}
#endif

/// The version as a string, for run records and error reports.
inline constexpr char version[] = "0.1.0";

}}  // namespace lockstep
