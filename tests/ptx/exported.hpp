// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Begins a function with a name that programs link against. The emulation has a function of this name, too: ours is
/// another one to the compiler and an equal symbol to the linker.
#define PTX_EXPORTED(type, name, parameters)            \
  extern "C" type ptx_##name parameters __asm__(#name); \
  extern "C" type ptx_##name parameters
