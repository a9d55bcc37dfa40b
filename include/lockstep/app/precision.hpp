// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/backend.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep::inline LOCKSTEP_ABI::app {

/// The value of --precision: what activations and their gradients are stored as. A program offers the flag by a member
/// `app::Precision precision = app::Precision::fp32;` of its options; its model's own layers must then compile for
/// both.
enum class Precision {
  fp32,  ///< float
  bf16,  ///< bfloat16, as nn::InBfloat16
};

/// The flag's own word for it, as in run.json.
[[nodiscard]] constexpr char const* name(Precision precision) noexcept {
  return precision == Precision::bf16 ? "bf16" : "fp32";
}

/// @throws ConfigError for a precision that the backend has not got
inline void check_precision(Precision precision, Backend backend) {
  if (precision == Precision::bf16 && backend == Backend::cuda)
    throw ConfigError(
        "--precision bf16 with --backend cuda: activations in bfloat16 are for the host so far; use --precision fp32, "
        "or --backend host");
}

}  // namespace lockstep::inline LOCKSTEP_ABI::app
