// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/app/detail/nccl.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Value of --backend: the backend that runs models.
enum class Backend {
  host,  ///< the CPU
  cuda,  ///< GPUs
};

/// Whether this program was built with CUDA: lockstep/cuda.cuh was included before this header.
template <class Devices = parallel::DevicesOf<CudaSpace>>
inline constexpr bool built_with_cuda = requires {
  Devices::count();
};

/// GPUs that this program can use.
struct Gpus {
  bool built = false;    ///< whether the program was built with CUDA
  int count = 0;         ///< number of GPUs
  std::string why = {};  ///< the driver's reason if there is no GPU
  bool joined = false;   ///< whether the program was also built with NCCL
  bool cudnn = false;    ///< whether the program was also built with cuDNN

  /// Asks the driver. Throws nothing: without a GPU, `count` is 0 and `why` says the reason.
  template <class Devices = parallel::DevicesOf<CudaSpace>>
  [[nodiscard]] static Gpus detect() {
    Gpus gpus;
    if constexpr (built_with_cuda<Devices>) {
      gpus.built = true;
      gpus.joined = detail::built_with_nccl<>;
      gpus.cudnn = Devices::have_cudnn();
      try {
        gpus.count = Devices::count();
      } catch (CudaError const& error) {
        gpus.why = error.what();
      }
    }
    return gpus;
  }
};

}}}  // namespace lockstep::app
