// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/element_type.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// What gradients are sent as when ranks sum them. In 16 bits each rank rounds once what it has found in a step, all of
/// its micro-batches together; engines of Lockstep sum that in float32, in the tree over ranks, and round the sum once.
/// All ranks take the same sum, so replicas stay equal bit for bit.
enum class WireFormat {
  float32,   ///< as they are
  bfloat16,  ///< half the bytes: the range of float32, 8 bits of precision
  float16,   ///< half the bytes: 11 bits of precision, up to 65504: for gradients with a loss scale (nn::InFloat16)
};

[[nodiscard]] constexpr ElementType element_type(WireFormat format) noexcept {
  if (format == WireFormat::bfloat16) return ElementType::bfloat16;
  return format == WireFormat::float16 ? ElementType::float16 : ElementType::float32;
}

/// "fp32", "bf16" or "fp16", as in run.json and --gradient-wire.
[[nodiscard]] constexpr char const* name(WireFormat format) noexcept {
  if (format == WireFormat::bfloat16) return "bf16";
  return format == WireFormat::float16 ? "fp16" : "fp32";
}

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
