// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/element_type.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Element type in which ranks send gradients. With 16 bits each rank rounds its gradients of a step once, after all
/// micro-batches. All engines except NCCL sum them in float32, in the tree over ranks, and round the sum once. All
/// ranks get the same sum, so replicas stay bit-identical.
enum class WireFormat {
  float32,   ///< unchanged
  bfloat16,  ///< half the bytes: range of float32, 8 bits of precision
  float16,   ///< half the bytes: 11 bits of precision, up to 65504; for gradients with a loss scale (nn::InFloat16)
};

/// Returns the element type that is sent.
[[nodiscard]] constexpr ElementType element_type(WireFormat format) noexcept {
  if (format == WireFormat::bfloat16) return ElementType::bfloat16;
  return format == WireFormat::float16 ? ElementType::float16 : ElementType::float32;
}

/// Returns "fp32", "bf16" or "fp16", as in run.json and --gradient-wire.
[[nodiscard]] constexpr char const* name(WireFormat format) noexcept {
  if (format == WireFormat::bfloat16) return "bf16";
  return format == WireFormat::float16 ? "fp16" : "fp32";
}

}}}  // namespace lockstep::parallel
