// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <lockstep/comm/communicator.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm {

/// Owns a communicator of any engine. Moves, does not copy; costs an indirect call per operation.
class AnyCommunicator {
 public:
  template <Communicator C>
  requires(!std::is_same_v<std::remove_cvref_t<C>, AnyCommunicator>) explicit AnyCommunicator(C communicator)
      : engine_(std::make_unique<Model<C>>(std::move(communicator))) {}

  [[nodiscard]] int rank() const noexcept { return engine_->rank(); }
  [[nodiscard]] int size() const noexcept { return engine_->size(); }
  [[nodiscard]] char const* name() const noexcept { return engine_->name(); }
  [[nodiscard]] memory::Block allocate(std::size_t bytes) { return engine_->allocate(bytes); }
  void start(Piece& piece) { engine_->start(piece); }
  void progress() { engine_->progress(); }
  void finish() { engine_->finish(); }
  void broadcast(void* data, std::size_t bytes, int root) { engine_->broadcast(data, bytes, root); }
  void all_gather(void const* in, void* out, std::size_t bytes) { engine_->all_gather(in, out, bytes); }
  void barrier() { engine_->barrier(); }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual int rank() const noexcept = 0;
    virtual int size() const noexcept = 0;
    virtual char const* name() const noexcept = 0;
    virtual memory::Block allocate(std::size_t bytes) = 0;
    virtual void start(Piece& piece) = 0;
    virtual void progress() = 0;
    virtual void finish() = 0;
    virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
    virtual void all_gather(void const* in, void* out, std::size_t bytes) = 0;
    virtual void barrier() = 0;
  };

  template <class C>
  struct Model final : Interface {
    explicit Model(C communicator) : engine(std::move(communicator)) {}
    int rank() const noexcept override { return engine.rank(); }
    int size() const noexcept override { return engine.size(); }
    char const* name() const noexcept override { return engine.name(); }
    memory::Block allocate(std::size_t bytes) override { return engine.allocate(bytes); }
    void start(Piece& piece) override { engine.start(piece); }
    void progress() override { engine.progress(); }
    void finish() override { engine.finish(); }
    void broadcast(void* data, std::size_t bytes, int root) override { engine.broadcast(data, bytes, root); }
    void all_gather(void const* in, void* out, std::size_t bytes) override { engine.all_gather(in, out, bytes); }
    void barrier() override { engine.barrier(); }
    C engine;
  };

  std::unique_ptr<Interface> engine_;
};
static_assert(Communicator<AnyCommunicator>);

}  // namespace lockstep::inline LOCKSTEP_ABI::comm
