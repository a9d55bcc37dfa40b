// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/memory/cuda.cuh>

#if defined(LOCKSTEP_NCCL)
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/comm/nccl/detail/rank_nccl.cuh>
#include <lockstep/comm/store/store_communicator.hpp>
#endif

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

#if defined(LOCKSTEP_NCCL)

/// Connects ranks that have one GPU each. NCCL runs operations on device memory, on a stream of its own. The world's
/// host engine runs operations on host memory, sums piggybacked doubles and finds missing ranks. Give an operation
/// device memory on all ranks or on none. Operations of each kind of memory complete in the order in which they were
/// started. `allocate` returns device memory that is registered with NCCL. Call it from one thread, with the same GPU
/// current.
///
/// Errors name a rank that is lost, late or in another operation, as with the host engine. NCCL is then aborted, and
/// the output of incomplete operations is undefined.
/// @determinism equal bits on all ranks; sums are in NCCL's order instead of the tree, and max ignores nan
class NcclCommunicator {
 public:
  using Space = CudaSpace;  ///< memory on which NCCL operates

  /// Uses the GPU whose number is the rank's local rank, modulo the number of visible GPUs. Makes it current.
  /// parallel::OnCuda gives the rank the same GPU.
  /// @collective   @throws CudaError, RankLost, RankStalled, CommunicationError
  explicit NcclCommunicator(launch::World const& world) : NcclCommunicator(world, default_gpu(world)) {}
  /// Uses GPU `gpu` of those that the process sees.
  NcclCommunicator(launch::World const& world, int gpu) : NcclCommunicator(world, host_engine(world), gpu) {}
  /// Uses the current GPU, and the caller's engine that connects the same ranks, for example MPI.
  NcclCommunicator(launch::World const& world, AnyCommunicator host)
      : self_(std::make_shared<detail::RankNccl>(world, std::move(host))) {}

  /// Uses GPU `gpu` and the caller's host engine.
  NcclCommunicator(launch::World const& world, AnyCommunicator host, int gpu)
      : NcclCommunicator(on(gpu, world), std::move(host)) {}

  /// Returns a GPU's PCI bus id, by which NCCL tells the GPUs of a host apart. @throws CudaError
  [[nodiscard]] static std::string pci_bus_id(int gpu) {
    char text[32] = {};
    memory::check_cuda(cudaDeviceGetPCIBusId(text, sizeof text, gpu), "cudaDeviceGetPCIBusId");
    return text;
  }
  /// Deprecated: use pci_bus_id().
  [[deprecated("pci_bus_id")]] [[nodiscard]] static std::string place_of(int gpu) { return pci_bus_id(gpu); }
  /// Returns the engine that connects the ranks of a world in host memory: the store if they are on several hosts.
  [[nodiscard]] static AnyCommunicator host_engine(launch::World const& world) {
    return world.engine == launch::Engine::store ? AnyCommunicator(StoreCommunicator(world)) : connect(world);
  }

  /// Returns this rank, in [0, size()).
  [[nodiscard]] int rank() const noexcept { return self_->rank(); }
  /// Returns the number of ranks.
  [[nodiscard]] int size() const noexcept { return self_->size(); }
  /// Returns the engine's name, "nccl".
  [[nodiscard]] char const* name() const noexcept { return "nccl"; }
  /// Returns the version of NCCL, such as 22809 for 2.28.9, or 0 if it is unknown.
  [[nodiscard]] static int version() noexcept {
    int version = 0;
    return ncclGetVersion(&version) == ncclSuccess ? version : 0;
  }
  /// Returns the number of the GPU among those that the process sees. It must be current in every call.
  [[nodiscard]] int gpu() const noexcept { return self_->gpu(); }

  /// Makes operations that start from now on wait for all work that the stream has at that time. Without it, device
  /// memory must be ready when its operation is started.
  ///
  /// While the stream is being captured (memory::CudaGraph), an operation on device memory becomes part of the
  /// recording. It is complete once all ranks have recorded the same operation, and runs each time the recording runs.
  /// Destroy recordings, once their work is done, before the last copy of their communicator. Destroying that copy acts
  /// like `abandon`.
  void follow(memory::Stream<CudaSpace> stream) { self_->follow(stream); }

  /// Completes all started operations, then returns zeroed device memory. Freeing it while an operation is incomplete
  /// abandons the operation and waits for the GPU. Use such memory for an operation on all ranks, at equal offsets in
  /// the block, or on none. NCCL works on it in place; other use is undefined.
  /// @collective   @throws CudaError
  [[nodiscard]] memory::Block allocate(std::size_t bytes) {
    if (bytes == 0) return {};
    auto owner = std::make_unique<Owner>(Owner{self_, nullptr});
    auto* const data = static_cast<std::byte*>(self_->allocate(bytes, &owner->registration));
    return {data, bytes, &release, owner.release()};
  }

  /// Starts an operation, which must live until it is complete. Never blocks.
  /// @throws ConfigError if no engine can run it
  void start(CollectiveOperation& operation) { self_->start(operation); }
  /// Starts an operation on device memory that is ready once the producing stream reaches `event`.
  void start_after(CollectiveOperation& operation, memory::CudaEvent const& event) { self_->start(operation, &event); }
  /// Advances the operations that were started.
  void progress() { self_->progress(); }
  /// Waits until the operation is complete.   @throws RankLost, RankStalled, CollectiveMismatch, CommunicationError
  void wait(CollectiveOperation const& operation) { self_->wait(operation); }
  /// Waits until all operations are complete.   @throws RankLost, RankStalled, CollectiveMismatch, CommunicationError
  void finish() { self_->finish(); }
  /// Aborts incomplete operations, recorded operations if any, and NCCL. Call it when you leave after an exception,
  /// before you free memory: freeing would wait for all peers. No collective works afterwards.
  void abandon() noexcept { self_->abandon(); }
  /// Returns the communicator of the ranks with this rank's color, ordered by key and then by rank.
  /// @param color 0 or more   @collective
  [[nodiscard]] NcclCommunicator split(int color, int key) { return NcclCommunicator(self_->split(color, key)); }

 private:
  struct Owner {
    std::shared_ptr<detail::RankNccl> self;
    void* registration;
  };
  explicit NcclCommunicator(std::shared_ptr<detail::RankNccl> self) : self_(std::move(self)) {}
  static int default_gpu(launch::World const& world) {
    int gpus = 0;
    memory::check_cuda(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
    return world.local_rank % gpus;  // never zero: the call above throws without a GPU
  }
  static launch::World const& on(int gpu, launch::World const& world) {
    memory::check_cuda(cudaSetDevice(gpu), ("cudaSetDevice(" + std::to_string(gpu) + ")").c_str());
    return world;
  }
  static void release(void* owner, std::byte* data, std::size_t) noexcept {
    std::unique_ptr<Owner> const mine(static_cast<Owner*>(owner));
    mine->self->free(data, mine->registration);
  }

  std::shared_ptr<detail::RankNccl> self_;
};
static_assert(Communicator<NcclCommunicator>);

#else

/// Placeholder without NCCL: its use fails to compile and names the target to link.
template <bool linked = false>
class NcclCommunicator {
  static_assert(linked, "Lockstep: NcclCommunicator needs the target lockstep::nccl (NCCL 2.19.4 or later)");
};

#endif

}}}  // namespace lockstep::comm
