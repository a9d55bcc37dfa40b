// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Begins a function that programs know by this name, which the emulation's own function has, too: ours is another one
/// to the compiler, and the same to the linker.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define PTX_EXPORTED(type, name, parameters)            \
  extern "C" type ptx_##name parameters __asm__(#name); \
  extern "C" type ptx_##name parameters
