// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <lockstep/comm/communicator.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Owns a communicator of any engine. Can be moved but not copied; costs an indirect call per operation.
class AnyCommunicator {
 public:
  /// Takes over a communicator of any engine.
  template <Communicator CommunicatorType>
  requires(!std::is_same_v<std::remove_cvref_t<CommunicatorType>, AnyCommunicator>) explicit AnyCommunicator(
      CommunicatorType communicator)
      : engine_(new Model<CommunicatorType>(std::move(communicator))) {}

  /// Returns this rank, in [0, size()).
  [[nodiscard]] int rank() const noexcept { return engine_->rank(); }
  /// Returns the number of ranks.
  [[nodiscard]] int size() const noexcept { return engine_->size(); }
  /// Returns the engine's name.
  [[nodiscard]] char const* name() const noexcept { return engine_->name(); }
  /// Returns zeroed memory that operations use without a copy.
  /// @collective with equal `bytes`
  [[nodiscard]] memory::Block allocate(std::size_t bytes) { return engine_->allocate(bytes); }
  /// Starts an operation, which must live until it is complete. Never blocks.
  void start(CollectiveOperation& operation) { engine_->start(operation); }
  /// Advances the operations that were started.
  void progress() { engine_->progress(); }
  /// Waits until the operation is complete.   @throws CommunicationError
  void wait(CollectiveOperation const& operation) { engine_->wait(operation); }
  /// Waits until all operations are complete.   @throws CommunicationError
  void finish() { engine_->finish(); }
  /// Returns the communicator of the ranks with this color, by key, then by rank.   @collective
  [[nodiscard]] AnyCommunicator split(int color, int key) { return AnyCommunicator(engine_->split(color, key)); }

  /// Copies the root's bytes to all ranks. Waits for this operation and for all that were started before.   @collective
  void broadcast(void* data, std::size_t bytes, int root) {
    run({.data = data, .count = static_cast<Index>(bytes), .collective = Collective::broadcast, .root = root});
  }
  /// Gathers `bytes` bytes of each rank: out[r * bytes ...] = `in` of rank r. Waits as broadcast does.   @collective
  void all_gather(void const* in, void* out, std::size_t bytes) {
    run({.data = out, .count = static_cast<Index>(bytes), .collective = Collective::all_gather, .in = in});
  }
  /// Returns once all ranks have called it and all operations that were started before are complete.   @collective
  void barrier() { run({.collective = Collective::barrier}); }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual int rank() const noexcept = 0;
    virtual int size() const noexcept = 0;
    virtual char const* name() const noexcept = 0;
    virtual memory::Block allocate(std::size_t bytes) = 0;
    virtual void start(CollectiveOperation& operation) = 0;
    virtual void progress() = 0;
    virtual void wait(CollectiveOperation const& operation) = 0;
    virtual void finish() = 0;
    virtual std::unique_ptr<Interface> split(int color, int key) = 0;
  };

  template <class CommunicatorType>
  struct Model final : Interface {
    explicit Model(CommunicatorType communicator) : engine(std::move(communicator)) {}
    int rank() const noexcept override { return engine.rank(); }
    int size() const noexcept override { return engine.size(); }
    char const* name() const noexcept override { return engine.name(); }
    memory::Block allocate(std::size_t bytes) override { return engine.allocate(bytes); }
    void start(CollectiveOperation& operation) override { engine.start(operation); }
    void progress() override { engine.progress(); }
    void wait(CollectiveOperation const& operation) override { engine.wait(operation); }
    void finish() override { engine.finish(); }
    std::unique_ptr<Interface> split(int color, int key) override {
      return std::unique_ptr<Interface>(new Model(engine.split(color, key)));
    }
    CommunicatorType engine;
  };

  explicit AnyCommunicator(std::unique_ptr<Interface> engine) : engine_(std::move(engine)) {}

  void run(CollectiveOperation operation) {
    operation.type = ElementType::uint8;
    engine_->start(operation);
    engine_->finish();
  }

  std::unique_ptr<Interface> engine_;
};
static_assert(Communicator<AnyCommunicator>);

}}}  // namespace lockstep::comm
