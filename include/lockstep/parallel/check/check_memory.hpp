// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <lockstep/core/free_memory.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/detail/device.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {
namespace detail {

/// Compares the memory of a session's arenas, which only depends on the model and the optimizer, with free memory.
class MemoryCheck {
 public:
  /// Memory that one process of a session takes at least, in one place.
  struct Need {
    double bytes = 0;
    int replicas = 0;
    std::string contents;  ///< "values, gradients and 2 optimizer moments"
  };

  MemoryCheck(Index parameters, int ranks_here, bool can_shard, int moments)
      : parameters_(parameters), ranks_here_(ranks_here), can_shard_(can_shard), moments_(moments) {}

  /// @param rank_threads the ranks of this process
  /// @throws ConfigError if the host's memory does not suffice
  void host(Need const& need, FreeMemory const& memory, int rank_threads) const;
  /// @throws ConfigError if the GPU's memory does not suffice
  void gpu(Need const& need, FreeMemory const& memory, int number) const;

 private:
  [[noreturn]] void refuse(Need const& need, std::string const& who, std::string const& where, std::string const& has,
                           std::string const& remedy) const;
  [[nodiscard]] std::string smaller_model() const;
  [[nodiscard]] std::string remedies(FreeMemory const& memory, bool too_large) const;

  Index parameters_;
  int ranks_here_;
  bool can_shard_;
  int moments_;
};

/// Computes what the arenas of a session take on the host and on GPUs, and checks it with MemoryCheck.
class MemoryNeeds {
 public:
  /// Sizes of the arenas.
  struct Sizes {
    Index parameters;               ///< without padding
    Index elements;                 ///< of an arena
    Index learned;                  ///< of the part of an arena that has moments
    std::size_t bytes_per_element;  ///< of a replica, without the optimizer's moments
    int moments;                    ///< of the optimizer
    int devices;                    ///< of this process
    int ranks;                      ///< all processes
  };

  MemoryNeeds(Sizes const& sizes, PolicySettings const& settings);

  /// Reads from the launcher's variables which ranks share this host. Without it, ranks are threads of this process.
  void find_ranks_of_host();
  /// @param threads of each replica on the host; 0 without replicas there
  /// @throws ConfigError if the host's memory does not suffice
  void check_host(int threads) const;
  /// @param of_devices the GPU of each device
  /// @param free_memory enters a GPU and returns its memory; it is called last for the first device's GPU
  /// @throws ConfigError if a GPU's memory does not suffice
  void check_gpus(std::vector<int> const& of_devices, FreeMemory (*free_memory)(int gpu)) const;

 private:
  [[nodiscard]] MemoryCheck check() const;

  Sizes sizes_;
  int ranks_here_;    // on this host
  int rank_threads_;  // ranks of this process
  bool can_shard_;
  double replica_bytes_, moment_bytes_;
  double start_bytes_;  // of initial values
  std::string contents_ = "values, gradients";
};

}  // namespace detail

/// Checks that the arenas of a trainer fit into memory, before anything is allocated. Counts values, gradients, 16-bit
/// shadows, optimizer moments and initial values; activations and batches come on top. With GPUs, the calling thread
/// enters the first shard's GPU.
/// @throws ConfigError that names what is needed, what is free, and remedies; CudaError if a GPU cannot be used
template <class Replica, class Optimizer, class Policy>
[[gnu::cold]] void check_memory(Policy& policy, nn::ParameterLayout const& layout) {
  using Space = typename Replica::Space;
  if (policy.shards() < 1) return;  // the session refuses it
  int const devices = policy.shards() / shards_of_device(policy), ranks = policy.all_shards() / policy.shards();
  detail::MemoryNeeds needs({layout.parameters(), layout.size(), layout.learned_size(), Replica::bytes_per_element,
                             Optimizer::states, devices, ranks},
                            settings_of(policy));
  if (ranks > 1) needs.find_ranks_of_host();
  if constexpr (Space::host_accessible) {
    needs.check_host(policy.threads_each());
  } else {
    needs.check_host(0);
    std::vector<int> gpus;
    for (int device = 0; device < devices; ++device) {
      auto const gpu = policy.place(device).gpu;
      if constexpr (requires { policy.communicator.gpu(); })
        if (gpu != policy.communicator.gpu()) return;  // the session refuses it
      gpus.push_back(gpu);
    }
    needs.check_gpus(gpus, detail::Device<Space>::free_memory);
  }
}

}}}  // namespace lockstep::parallel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/check/check_memory.ipp>
#endif
