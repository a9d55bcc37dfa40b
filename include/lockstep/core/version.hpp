// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The one place that holds the version; CMake reads it from here.
#define LOCKSTEP_VERSION_MAJOR 0
#define LOCKSTEP_VERSION_MINOR 1
#define LOCKSTEP_VERSION_PATCH 0

/// The inline namespace that everything lives in: two libraries built against different versions, or with and without
/// a library that computes for us, may meet in one program without sharing a symbol.
#if defined(LOCKSTEP_BLAS) && defined(LOCKSTEP_ONEDNN)
#define LOCKSTEP_ABI v0_1_blas_onednn
#elif defined(LOCKSTEP_BLAS)
#define LOCKSTEP_ABI v0_1_blas
#elif defined(LOCKSTEP_ONEDNN)
#define LOCKSTEP_ABI v0_1_onednn
#else
#define LOCKSTEP_ABI v0_1
#endif

#if defined(__FAST_MATH__)
#error "Lockstep: -ffast-math changes results between runs and builds; compile without it"
#endif

namespace lockstep::inline LOCKSTEP_ABI {

/// The version as text, for run records and error reports.
inline constexpr char version[] = "0.1.0";

}  // namespace lockstep::inline LOCKSTEP_ABI
