// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/version.hpp>
#include <lockstep/parallel/wire_format.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// The value of --precision: what activations and their gradients are stored as. A program offers the flag by a member
/// `app::Precision precision = app::Precision::fp32;` of its options; its model's own layers must then compile for
/// all three.
enum class Precision {
  fp32,  ///< float
  bf16,  ///< bfloat16, as nn::InBfloat16
  fp16,  ///< float16, as nn::InFloat16, with a scaled loss
};

/// The flag's own word for it, as in run.json.
[[nodiscard]] constexpr char const* name(Precision precision) noexcept {
  if (precision == Precision::bf16) return "bf16";
  return precision == Precision::fp16 ? "fp16" : "fp32";
}

/// @throws ConfigError for gradients that are sent as float16 and have no loss scale
inline void check_wire(parallel::WireFormat wire, Precision precision) {
  if (wire == parallel::WireFormat::float16 && precision != Precision::fp16)
    throw ConfigError(std::string("--gradient-wire fp16 with --precision ") + name(precision) +
                      ": only the loss scale of --precision fp16 keeps gradients within float16's range; use "
                      "--gradient-wire bf16");
}

}}}  // namespace lockstep::app
