// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// A process's first GPU, and which kernels computed on it; empty on the CPU.
struct DeviceFacts {
  std::string name = {};                                            ///< of the GPU; empty on the CPU
  std::string compute_capability = {};                              ///< such as "9.0"
  std::vector<std::pair<std::string, std::string>> libraries = {};  ///< names and versions, such as {"cuda", "13.0"}
  std::string matmul_precision = {};                                ///< name of a MatmulPrecision
  std::string attention_kernels = {};                               ///< name of an AttentionKernels
  Index attention_by_cudnn = 0;                                     ///< passes that cuDNN computed: queued, or recorded
  Index attention_not_by_cudnn = 0;   ///< passes in 16 bits that other kernels computed although cuDNN was to be used
  std::string attention_reason = {};  ///< why cuDNN did not compute one of the latter
};

namespace detail {

/// Returns a version as text, such as "9.19.0" for the number 91900.
[[nodiscard]] inline std::string version_text(Index number) {
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
}

}  // namespace detail
}}}  // namespace lockstep::parallel
