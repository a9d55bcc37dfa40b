// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whether AddressSanitizer or ThreadSanitizer, which have their own allocators, is compiled in.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKSTEP_SANITIZED 1
#elif defined(__has_feature)
#define LOCKSTEP_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define LOCKSTEP_SANITIZED 0
#endif
