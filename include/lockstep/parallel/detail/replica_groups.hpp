// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/element_type.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tree_sum.hpp>
#include <lockstep/core/wait.hpp>
#include <lockstep/nn/autograd/replica_group.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Exchange point of one process's threads, one for each device, within a pass. No thread waits for a thread whose pass
/// is over: all get the exception that ended it.
class ThreadExchange {
 public:
  explicit ThreadExchange(int size);
  ~ThreadExchange();

  [[nodiscard]] int size() const noexcept { return static_cast<int>(contributions_.size()); }
  /// Starts a pass. Call it while no thread is in a pass.
  void begin() noexcept {
    arrived_ = 0;
    ended_ = 0;
    failure_ = nullptr;
  }
  /// Ends the calling thread's pass, after `failure` or normally.
  void end_pass(std::exception_ptr const& failure = nullptr) noexcept;

  /// Contribution of a thread: its bytes, and the kind of exchange.
  struct Contribution {
    void const* data = nullptr;
    std::size_t bytes = 0;
    char const* kind = "";
  };
  /// Calls f(contributions) with all contributions once all threads have arrived. Returns once all threads are done
  /// with them.
  /// @throws the exception that ended another thread's pass; CollectiveMismatch if a pass ended normally, or is in
  /// another exchange
  template <class Function>
  void exchange(int rank, Contribution const& mine, Function&& f) {
    contribute(rank, mine);
    f(contributions_);
    arrive_and_wait();
  }

 private:
  void contribute(int rank, Contribution const& mine);
  void arrive_and_wait();
  void fail(std::exception_ptr const& failure) noexcept;
  void next_round() noexcept;
  static std::exception_ptr pass_ended_error() noexcept;
  static std::string text(Contribution const& contribution);
  static constexpr char const* rule =
      ", such as a synchronized BatchNorm or nn::all_gather: all devices must run the same layers for any samples";

  std::mutex mutex_;
  Signal<> round_;
  int arrived_ = 0, ended_ = 0;
  std::exception_ptr failure_;
  std::vector<Contribution> contributions_;
};

/// Exchanges host memory between the threads of a ThreadExchange.
class ThreadTransport {
 public:
  ThreadTransport(ThreadExchange& meeting, int rank) noexcept : thread_exchange_(&meeting), rank_(rank) {}
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return thread_exchange_->size(); }
  void all_gather(void const* mine, void* all, std::size_t bytes);
  template <class Value>
  void reduce_scatter(Value const* in, Value* out, Index count);

 private:
  ThreadExchange* thread_exchange_;
  int rank_;
};

/// Exchanges memory in the communicator's space between ranks, after all operations that were started before.
template <comm::Communicator Communicator>
class RankTransport {
 public:
  explicit RankTransport(Communicator& communicator) noexcept : communicator_(&communicator) {}
  [[nodiscard]] int rank() const noexcept { return communicator_->rank(); }
  [[nodiscard]] int size() const noexcept { return communicator_->size(); }
  void all_gather(void const* mine, void* all, std::size_t bytes) {
    run({.type = ElementType::uint8,
         .data = all,
         .count = static_cast<Index>(bytes),
         .collective = comm::Collective::all_gather,
         .in = mine});
  }
  template <class Value>
  void reduce_scatter(Value const* in, Value* out, Index count) {
    run({.type = element_type_of<Value>,
         .data = out,
         .count = count,
         .collective = comm::Collective::reduce_scatter,
         .in = in});
  }

 private:
  void run(comm::CollectiveOperation operation) {
    communicator_->start(operation);
    communicator_->wait(operation);
  }
  Communicator* communicator_;
};

/// A replica's group, connected by `Transport`. Copies a device's memory to the host and back, unless in_place.
template <class Transport, class Device, bool in_place>
class ReplicaGroup final : public nn::ReplicaGroup {
 public:
  ReplicaGroup(Transport transport, Device& device) noexcept : transport_(transport), device_(&device) {}
  [[nodiscard]] int size() const noexcept override { return transport_.size(); }
  [[nodiscard]] int rank() const noexcept override { return transport_.rank(); }
  void all_gather(void const* mine, void* all, std::size_t bytes) override {
    auto const replicas = static_cast<std::size_t>(size());
    exchange(mine, bytes, all, replicas * bytes,
             [&](void const* from, void* to) { transport_.all_gather(from, to, bytes); });
  }
  void all_gather(Index mine, Index* all) override {
    device_->expect_not_recorded(who);
    exchanged_ = true;
    auto const begin = Clock::seconds();
    transport_.all_gather(&mine, all, sizeof mine);
    seconds_ += Clock::seconds() - begin;
  }
  void reduce_scatter(float const* in, float* out, Index count) override { sum(in, out, count); }
  void reduce_scatter(double const* in, double* out, Index count) override { sum(in, out, count); }

  /// Begins a pass (begin_pass). Returns whether it had an exchange so far (has_exchanged).
  void begin_pass() noexcept { exchanged_ = false; }
  [[nodiscard]] bool has_exchanged() const noexcept { return exchanged_; }

 private:
  static constexpr char const* who = "layers that exchange numbers with other replicas";

  template <class Value>
  void sum(Value const* in, Value* out, Index count) {
    auto const bytes = static_cast<std::size_t>(count) * sizeof(Value);
    exchange(in, static_cast<std::size_t>(size()) * bytes, out, bytes, [&](void const* from, void* to) {
      transport_.reduce_scatter(static_cast<Value const*>(from), static_cast<Value*>(to), count);
    });
  }
  template <class Function>
  void exchange(void const* in, std::size_t in_bytes, void* out, std::size_t out_bytes, Function const& f) {
    device_->expect_not_recorded(who);
    exchanged_ = true;
    device_->stream().synchronize();
    auto const begin = Clock::seconds();
    if constexpr (in_place) {
      f(in, out);
    } else {
      if (in_host_.size() < in_bytes) in_host_.resize(in_bytes);
      if (out_host_.size() < out_bytes) out_host_.resize(out_bytes);
      device_->copy_to_host(in, in_host_.data(), in_bytes);
      f(in_host_.data(), out_host_.data());
      device_->copy_from_host(out_host_.data(), out, out_bytes);
    }
    seconds_ += Clock::seconds() - begin;
  }

  Transport transport_;
  Device* device_;
  bool exchanged_ = false;
  std::vector<std::byte> in_host_, out_host_;
};

/// Group of a replica that computes several shards in turns: they cannot exchange data within a pass.
class SequentialShards final : public nn::ReplicaGroup {
 public:
  explicit SequentialShards(int shards) noexcept : shards_(shards) {}
  [[nodiscard]] int size() const noexcept override { return shards_; }
  [[nodiscard]] int rank() const noexcept override { return 0; }
  void all_gather(void const*, void*, std::size_t) override { refuse(); }
  void all_gather(Index, Index*) override { refuse(); }
  void reduce_scatter(float const*, float*, Index) override { refuse(); }
  void reduce_scatter(double const*, double*, Index) override { refuse(); }

 private:
  /// @throws ConfigError
  [[noreturn]] void refuse() const;
  int shards_;
};

/// Group of a replica during a rehearsal, in which nothing is exchanged: replicas need not rehearse equal passes.
class NoExchange final : public nn::ReplicaGroup {
 public:
  explicit NoExchange(nn::ReplicaGroup const& group) noexcept : size_(group.size()), rank_(group.rank()) {}
  [[nodiscard]] int size() const noexcept override { return size_; }
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  void all_gather(void const*, void*, std::size_t) override { refuse(); }
  void all_gather(Index, Index*) override { refuse(); }
  void reduce_scatter(float const*, float*, Index) override { refuse(); }
  void reduce_scatter(double const*, double*, Index) override { refuse(); }

 private:
  /// @throws ConfigError
  [[noreturn]] static void refuse();
  int size_, rank_;
};

}}}  // namespace lockstep::parallel::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/detail/replica_groups.ipp>
#endif
