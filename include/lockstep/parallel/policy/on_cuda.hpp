// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <lockstep/memory/space.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Runs a policy's replicas on GPUs. Use it in a file that includes lockstep/cuda.cuh and is compiled by nvcc:
///   Trainer trainer(model, optimizer, parallel::OnCuda{parallel::SingleDevice{}});
/// Replica k of all uses the GPU gpus[k % gpus.size()]; replicas may share one. With a communicator that has a GPU, for
/// example NCCL's, it uses that GPU. After training, the thread's current device is its first shard's GPU.
/// @determinism as the policy, except matrix products, which depend on the kind of GPU and the cuBLASLt version, and
/// cuDNN's kernels, which depend on its version
template <class Policy>
struct OnCuda : Policy {
  using Space = CudaSpace;  ///< memory in which replicas compute

  std::vector<int> gpus = {};  ///< GPU numbers as the process sees them; empty: all GPUs, or the communicator's
  MatmulPrecision matmul_precision = MatmulPrecision::float32;  ///< arithmetic of matrix products in float
  AttentionKernels attention = AttentionKernels::own;           ///< kernels of attention in 16 bits

  /// Returns a local device's place: the policy's, with its GPU and this policy's settings.
  /// @throws CudaError with the driver's reason if there is no GPU
  template <class Where = CudaSpace>
  [[nodiscard]] Place place(int device) const {
    auto place = Policy::place(device);
    place.matmul_precision = matmul_precision;
    place.attention = attention;
    auto const replica = this->first_shard() / place.shards + device;
    if constexpr (requires(Policy const& policy) { policy.communicator.gpu(); })
      if (gpus.empty()) return place.gpu = this->communicator.gpu(), place;
    if (gpus.empty())
      place.gpu = replica % DevicesOf<Where>::count();
    else
      place.gpu = gpus[static_cast<std::size_t>(replica) % gpus.size()];
    return place;
  }

  /// The policy's session with replicas on GPUs.
  template <class Model, class Optimizer>
  using Session = typename Policy::template Session<Model, Optimizer, Space>;
};
/// Takes the type of the policy from the first argument.
template <class Policy>
OnCuda(Policy) -> OnCuda<Policy>;
/// Takes the type of the policy from the first argument.
template <class Policy>
OnCuda(Policy, std::vector<int>) -> OnCuda<Policy>;
/// Takes the type of the policy from the first argument.
template <class Policy>
OnCuda(Policy, std::vector<int>, MatmulPrecision) -> OnCuda<Policy>;
/// Takes the type of the policy from the first argument.
template <class Policy>
OnCuda(Policy, std::vector<int>, MatmulPrecision, AttentionKernels) -> OnCuda<Policy>;

}}}  // namespace lockstep::parallel
