// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/app/backend.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/version.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/wire_format.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Value of --precision: the element type of stored activations and their gradients. A program offers the flag with a
/// member `app::Precision precision = app::Precision::fp32;` of its options. The model's own layers must then compile
/// for float, bfloat16 and float16.
enum class Precision {
  fp32,  ///< float
  tf32,  ///< float, and matrix products on GPUs round their factors to TF32, see parallel::MatmulPrecision
  bf16,  ///< bfloat16, as nn::InBfloat16
  fp16,  ///< float16, as nn::InFloat16, with loss scaling
};

/// Returns the flag's word, as in run.json.
[[nodiscard]] constexpr char const* name(Precision precision) noexcept {
  if (precision == Precision::tf32) return "tf32";
  if (precision == Precision::bf16) return "bf16";
  return precision == Precision::fp16 ? "fp16" : "fp32";
}

/// Checks that the backend computes in this precision.   @throws ConfigError if only a GPU has it
inline void check_backend(Backend backend, Precision precision) {
  if (backend == Backend::host && precision == Precision::tf32)
    throw ConfigError(
        "--precision tf32 with --backend host: only GPUs multiply in TF32; use --precision fp32 or bf16, or --backend "
        "cuda");
}

/// Checks the format in which gradients are sent.   @throws ConfigError for float16 without loss scaling
inline void check_wire(parallel::WireFormat wire, Precision precision) {
  if (wire == parallel::WireFormat::float16 && precision != Precision::fp16)
    throw ConfigError(std::string("--gradient-wire fp16 with --precision ") + name(precision) +
                      ": only the loss scale of --precision fp16 keeps gradients within float16's range; use "
                      "--gradient-wire bf16");
}

/// Checks the kernels of attention.   @throws ConfigError for cuDNN's if they do not compute in this precision
inline void check_attention(parallel::AttentionKernels kernels, Precision precision) {
  if (kernels == parallel::AttentionKernels::cudnn && (precision == Precision::fp32 || precision == Precision::tf32))
    throw ConfigError(std::string("--attention-kernels cudnn with --precision ") + name(precision) +
                      ": cuDNN computes attention in 16 bits only; use --precision bf16 or fp16, or leave it out");
}

}}}  // namespace lockstep::app
