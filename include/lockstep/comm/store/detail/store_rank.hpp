// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <numeric>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <lockstep/comm/detail/check.hpp>
#include <lockstep/comm/detail/descriptor.hpp>
#include <lockstep/comm/detail/operation_sizes.hpp>
#include <lockstep/comm/detail/peer_watch.hpp>
#include <lockstep/comm/detail/tree_reduce.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/store/store.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// One rank of a group that a store connects. In each operation every rank contributes its descriptor, its piggybacked
/// doubles and its input. It receives all contributions and computes its own result. Larger operations are split into
/// chunks that fit a part of the store.
class StoreRank {
 public:
  explicit StoreRank(launch::World const& world) : StoreRank(world, "all", first_ranks(world.size)) {}
  StoreRank(StoreRank const&) = delete;
  StoreRank& operator=(StoreRank const&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(members_.size()); }

  void start(CollectiveOperation& operation);

  void progress();
  void wait(CollectiveOperation const& operation);
  void finish();

  /// Creates the communicator of the ranks with this color.   @collective
  [[nodiscard]] std::unique_ptr<StoreRank> split(int color, int key);

 private:
  StoreRank(launch::World const& world, std::string name, std::vector<int> members);
  static std::vector<int> first_ranks(int count);

  [[nodiscard]] std::string key_of(std::uint32_t number, Index chunk) const;
  [[nodiscard]] Index chunk_elements(CollectiveOperation const& operation) const noexcept;
  /// A chunk's elements of a rank's input: none if its part is shorter, or if only the root has input.
  struct Range {
    Index begin, count;
  };
  [[nodiscard]] Range range(CollectiveOperation const& operation, int rank, Index chunk) const noexcept;

  void contribute(CollectiveOperation const& operation, std::uint32_t number, Index chunk);

  /// Advances the oldest operation by one chunk if all contributions have arrived.
  bool advance();
  void set_inputs(std::size_t offset);
  void compute(CollectiveOperation const& operation, std::size_t header_bytes);
  [[noreturn]] void throw_wrong_size(int rank, std::size_t expected) const;
  /// Checks the sizes of all contributions to the current chunk before they are read.
  void check_contributions(CollectiveOperation const& operation, std::size_t header_bytes) const;
  void throw_if_mismatched(CollectiveOperation const& operation) const;

  /// Keeps an error for the next wait. Replaces a store that cannot be reached by the lost rank that explains it.
  template <class Function>
  void keep_error(Function const& f) {
    try {
      try {
        f();
      } catch (CommunicationError const& error) {
        if (typeid(error) != typeid(CommunicationError)) throw;  // it already names the cause
        watch_.throw_with_cause(error.what(), describe_wait());
      }
    } catch (CommunicationError const&) {
      failure_ = std::current_exception();
    } catch (...) {
      failure_ = std::current_exception();  // the operation may not live on
      throw;
    }
  }
  template <class Condition>
  void wait_until(Condition const& condition) {
    for (;;) {
      progress();
      if (failure_) std::rethrow_exception(failure_);
      if (condition()) return;
      if (operations_.empty()) throw ConfigError("Communicator::wait: the operation was never started");
      auto const number = oldest_;
      try {
        watch_.wait_until(
            [&] {
              progress();
              return failure_ || oldest_ != number;
            },
            [&] { return describe_wait(); }, [&] { return missing(); });
      } catch (...) {  // also of the function for warnings: the operation may not live on
        failure_ = std::current_exception();
      }
    }
  }
  [[nodiscard]] std::string describe_wait() const;
  /// Returns the group's ranks that have not reached the oldest operation; rank 0 if the store does not answer.
  [[nodiscard]] std::vector<int> missing();

  std::string name_;
  std::vector<int> members_;  // as ranks of the run
  PeerWatch watch_;
  launch::Store& store_;
  std::vector<int> group_ranks_;  // rank in the group for each rank of the run, or -1
  int rank_ = 0;
  std::deque<CollectiveOperation*> operations_;  // from the oldest incomplete one to the newest
  std::uint32_t oldest_ = 0;                     // number of the oldest operation
  Index chunk_ = 0;                              // its current chunk
  std::string message_;
  std::vector<std::string> contributions_;  // by rank of the group
  std::vector<void const*> inputs_;
  std::exception_ptr failure_;
};

}}}  // namespace lockstep::comm::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/comm/store/detail/store_rank.ipp>
#endif
