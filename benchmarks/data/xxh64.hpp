// SPDX-License-Identifier: Apache-2.0
// Includes xxhash with its functions inline, if it is installed: then LOCKSTEP_BENCH_XXHASH is 1.
#pragma once
#if __has_include(<xxhash.h>)
#define XXH_INLINE_ALL
#include <xxhash.h>
#define LOCKSTEP_BENCH_XXHASH 1
#else
#define LOCKSTEP_BENCH_XXHASH 0
#endif
