// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/memory/cuda.cuh>

#if defined(LOCKSTEP_NCCL)
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/connect.hpp>
#include <lockstep/comm/detail/rank_nccl.cuh>
#include <lockstep/comm/store_communicator.hpp>
#endif

namespace lockstep::inline LOCKSTEP_ABI::comm {

#if defined(LOCKSTEP_NCCL)

/// Joins ranks that have a GPU each: NCCL works on pieces in device memory, on a stream of its own, and the engine of
/// the world on pieces in host memory, on the riders, and on finding out who is missing. A piece lies in device memory
/// on all ranks or on none. Pieces of each kind complete in the order in which they were started. `allocate` gives
/// device memory that is registered with NCCL. All calls come from one thread, with the same GPU current.
///
/// A rank that is lost, late or of another mind is named as by the host's engine; NCCL is then aborted, and what the
/// pieces under way have written is undefined.
/// @determinism the same bits on all ranks; sums are in NCCL's order and not the tree, and max passes over nan
class NcclCommunicator {
 public:
  using Space = CudaSpace;

  /// Collective. On the host's GPU of the number of its rank there, from the first one on again where there are fewer.
  /// It becomes current, and is the one that parallel::OnCuda gives the rank.
  /// @throws CudaError, RankLost, RankStalled, CommunicationError
  explicit NcclCommunicator(launch::World const& world) : NcclCommunicator(world, usual_gpu(world)) {}
  /// The same on another, of those that the process sees.
  NcclCommunicator(launch::World const& world, int gpu) : NcclCommunicator(world, host_engine(world), gpu) {}
  /// The same on the GPU that is current, over an engine of the caller's that joins the same ranks, such as MPI.
  NcclCommunicator(launch::World const& world, AnyCommunicator host)
      : self_(std::make_shared<detail::RankNccl>(world, std::move(host))) {}

  /// The same on another GPU.
  NcclCommunicator(launch::World const& world, AnyCommunicator host, int gpu)
      : NcclCommunicator(on(gpu, world), std::move(host)) {}

  /// Where a GPU sits in its host, by which NCCL tells them apart. @throws CudaError
  [[nodiscard]] static std::string place_of(int gpu) {
    char text[32] = {};
    memory::check_cuda(cudaDeviceGetPCIBusId(text, sizeof text, gpu), "cudaDeviceGetPCIBusId");
    return text;
  }
  /// The engine that joins the ranks of a world in host memory: on several hosts their store.
  [[nodiscard]] static AnyCommunicator host_engine(launch::World const& world) {
    return world.engine == launch::Engine::store ? AnyCommunicator(StoreCommunicator(world)) : connect(world);
  }

  [[nodiscard]] int rank() const noexcept { return self_->rank(); }
  [[nodiscard]] int size() const noexcept { return self_->size(); }
  [[nodiscard]] char const* name() const noexcept { return "nccl"; }
  /// Of those that the process sees; it must be current in every call.
  [[nodiscard]] int gpu() const noexcept { return self_->gpu(); }

  /// Pieces that are started from now on begin when the work that the stream has by then is done. Without it, device
  /// memory is ready when its piece is started.
  ///
  /// While the stream is being recorded (memory::CudaGraph), a piece in device memory becomes part of the recording, is
  /// complete as soon as all ranks have recorded the same, and is done each time that the recording is. Recordings are
  /// destroyed, when what they do is done, before the last copy of their communicator; its end is then an `abandon`.
  void follow(memory::Stream<CudaSpace> stream) { self_->follow(stream); }

  /// Completes what was started, then gives zeroed device memory. Who gives it back while any piece is under way
  /// abandons that first, and waits for the GPU. A piece lies in such memory on all ranks, equally far from its start,
  /// or on none: NCCL, which works on it in place, leaves anything else undefined.
  /// @throws CudaError
  [[nodiscard]] memory::Block allocate(std::size_t bytes) {
    if (bytes == 0) return {};
    auto owner = std::make_unique<Owner>(Owner{self_, nullptr});
    auto* const data = static_cast<std::byte*>(self_->take(bytes, &owner->registration));
    return {data, bytes, &release, owner.release()};
  }

  /// @throws ConfigError when no engine could do it
  void start(Piece& piece) { self_->start(piece); }
  /// The same of a piece in device memory that is ready at a mark of the stream that makes it.
  void start_after(Piece& piece, memory::CudaEvent const& mark) { self_->start(piece, &mark); }
  void progress() { self_->progress(); }
  /// @throws RankLost, RankStalled, CollectiveMismatch, CommunicationError
  void wait(Piece const& piece) { self_->wait(piece); }
  /// @throws RankLost, RankStalled, CollectiveMismatch, CommunicationError
  void finish() { self_->finish(); }
  /// Gives up what was started and is not complete, and what was recorded, if anything, and NCCL with it: for who
  /// leaves after an exception, before memory is given back, which would wait for all peers. Nothing collective can be
  /// done afterwards.
  void abandon() noexcept { self_->abandon(); }
  /// Collective: the ranks that gave this rank's color, 0 or more, ordered by key and then by rank.
  [[nodiscard]] NcclCommunicator split(int color, int key) { return NcclCommunicator(self_->split(color, key)); }

 private:
  struct Owner {
    std::shared_ptr<detail::RankNccl> self;
    void* registration;
  };
  explicit NcclCommunicator(std::shared_ptr<detail::RankNccl> self) : self_(std::move(self)) {}
  static int usual_gpu(launch::World const& world) {
    int gpus = 0;
    memory::check_cuda(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
    return world.local_rank % gpus;  // without one, the call before has thrown
  }
  static launch::World const& on(int gpu, launch::World const& world) {
    memory::check_cuda(cudaSetDevice(gpu), ("cudaSetDevice(" + std::to_string(gpu) + ")").c_str());
    return world;
  }
  static void release(void* owner, std::byte* data, std::size_t) noexcept {
    std::unique_ptr<Owner> const mine(static_cast<Owner*>(owner));
    mine->self->give_back(data, mine->registration);
  }

  std::shared_ptr<detail::RankNccl> self_;
};
static_assert(Communicator<NcclCommunicator>);

#else

template <bool linked = false>
class NcclCommunicator {
  static_assert(linked, "Lockstep: NcclCommunicator needs the target lockstep::nccl (NCCL 2.19.4 or later)");
};

#endif

}  // namespace lockstep::inline LOCKSTEP_ABI::comm
