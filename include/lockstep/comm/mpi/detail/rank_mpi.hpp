// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_MPI)
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/detail/check.hpp>
#include <lockstep/comm/detail/descriptor.hpp>
#include <lockstep/comm/detail/operation_sizes.hpp>
#include <lockstep/comm/detail/tree_reduce.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/wait.hpp>
#include <lockstep/launch/wait_limits.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// One rank of a group that MPI connects. Sums are computed here, so that they are bit-identical to other engines: MPI
/// only transfers data.
///
/// Every operation begins with a header of fixed size from each rank to all: its descriptor, piggybacked doubles and
/// small inputs. Ranks detect mismatched operations by these headers. Larger sums are then exchanged in slices: each
/// rank reduces its slice and sends it to all. Chunks limit the scratch memory.
class RankMpi {
 public:
  RankMpi(MPI_Comm group, launch::WaitLimits limits, std::function<void(std::string const&)> warn)
      : group_(group), limits_(limits), warn_(std::move(warn)) {
    must(MPI_Comm_set_errhandler(group_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    must(MPI_Comm_rank(group_, &rank_), "MPI_Comm_rank");
    must(MPI_Comm_size(group_, &size_), "MPI_Comm_size");
    auto const ranks = static_cast<std::size_t>(size_);
    headers_.resize(ranks);
    inputs_.resize(ranks);
    for (auto* numbers : {&lengths_, &offsets_, &receive_lengths_, &receive_offsets_}) numbers->resize(ranks);
  }
  RankMpi(RankMpi const&) = delete;
  RankMpi& operator=(RankMpi const&) = delete;
  ~RankMpi() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return;
    if (in_flight())
      static_cast<void>(buffers_.release());  // MPI may still use them
    else
      MPI_Comm_free(&group_);
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  void start(CollectiveOperation& operation) {
    check(operation, rank_, size_);
    operation.started_seconds = Clock::seconds();
    operation.finished_seconds = 0;
    operations_.push_back(&operation);
    progress();
  }

  void progress() {
    try {
      advance_all();
    } catch (...) {
      failure_ = std::current_exception();  // the operation may not live on
      throw;
    }
  }

  /// Returns once `condition()` is true. MPI does not tell which rank is missing.
  template <class Condition>
  void wait_until(Condition const& condition) {
    try {
      wait_within_limits(condition);
    } catch (...) {  // also of the function for warnings: the operations may not live on
      if (!operations_.empty()) failure_ = std::current_exception();
      throw;
    }
  }
  void wait(CollectiveOperation const& operation) {
    wait_until([&] { return operation.complete(); });
  }
  void finish() {
    wait_until([&] { return operations_.empty(); });
  }

  [[nodiscard]] MPI_Comm split(int color, int key) {
    if (color < 0)
      throw ConfigError("MpiCommunicator::split: the color is " + std::to_string(color) + "; MPI takes none below 0");
    finish();
    MPI_Comm part = MPI_COMM_NULL;
    must(MPI_Comm_split(group_, color, key, &part), "MPI_Comm_split");
    return part;
  }
  /// Returns whether MPI may read and write memory of an operation. After a failure this remains so until MPI_Finalize,
  /// because collectives of MPI cannot be cancelled.
  [[nodiscard]] bool in_flight() const noexcept { return mpi_request_ != MPI_REQUEST_NULL; }
  [[nodiscard]] launch::WaitLimits limits() const noexcept { return limits_; }
  [[nodiscard]] auto const& warn() const noexcept { return warn_; }

 private:
  enum class Phase { idle, exchange_headers, scatter, gather };
  static constexpr Index small_bytes = 256;
  static constexpr Index scratch_bytes = Index{16} << 20;

  struct Header {
    Descriptor descriptor;
    std::uint32_t number;
    std::array<double, static_cast<std::size_t>(CollectiveOperation::max_piggybacked_scalars)> scalars;
    std::array<std::byte, static_cast<std::size_t>(small_bytes)> input;
  };

  /// Memory of this object that MPI reads and writes.
  struct Buffers {
    std::vector<Header> headers;
    std::vector<int> lengths, offsets, receive_lengths, receive_offsets;
    std::vector<std::byte> scratch;
  };

  void must(int code, char const* call) const {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw CommunicationError("MpiCommunicator: rank " + std::to_string(rank_) + ": " + call +
                             " failed: " + std::string(text, static_cast<std::size_t>(length)) +
                             "; another rank may be lost, which one is not determined");
  }
  void advance_all() {
    while (!mismatch_ && !failure_ && !operations_.empty()) {
      if (phase_ == Phase::idle) {
        exchange_headers();
      } else {
        int done = 0;
        must(MPI_Test(&mpi_request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done == 0) return;
        advance();
      }
    }
  }
  template <class Condition>
  void wait_within_limits(Condition const& condition) {
    if (failure_) std::rethrow_exception(failure_);
    auto since = Clock::seconds();
    bool warned = false;
    auto number = number_;
    for (Backoff backoff;;) {
      progress();
      if (mismatch_) throw_mismatch();
      if (condition()) return;
      if (operations_.empty()) throw ConfigError("Communicator::wait: the operation was never started");
      if (backoff.pause()) continue;
      ::sched_yield();  // MPI makes progress only inside calls, so there is nothing to sleep on
      auto const now = Clock::seconds();
      if (std::exchange(number, number_) != number_) since = now;
      auto const message = [&] {
        return "rank " + std::to_string(rank_) + " has waited " + std::to_string(std::lround(now - since)) +
               " s in operation " + std::to_string(number_) + " (" +
               describe(descriptor_of(*operations_.front(), rank_)) + ") for another rank; which one is not determined";
      };
      if (now - since > limits_.stall_seconds) throw RankStalled(-1, message() + ". The limit is over");
      if (warned || now - since < limits_.warn_seconds) continue;
      warned = true;
      if (warn_) warn_(message() + "; still waiting");
    }
  }

  /// Returns scratch memory: allocated at first use, then kept.
  [[nodiscard]] std::byte* scratch(Index bytes) {
    if (std::ssize(scratch_) < bytes) scratch_.resize(static_cast<std::size_t>(bytes));
    return scratch_.data();
  }
  [[nodiscard]] static MPI_Datatype type_of(Index bytes) noexcept {
    return bytes == 1 ? MPI_UINT8_T : bytes == 2 ? MPI_UINT16_T : bytes == 4 ? MPI_UINT32_T : MPI_UINT64_T;
  }
  [[nodiscard]] static std::byte* at(void* data, Index elements, CollectiveOperation const& operation) noexcept {
    return static_cast<std::byte*>(data) + elements * element_bytes(operation);
  }
  [[nodiscard]] bool small(CollectiveOperation const& operation) const noexcept {
    return largest_input_bytes(operation, size_) <= small_bytes;
  }

  void exchange_headers() {
    auto& operation = *operations_.front();
    Header& mine = headers_[static_cast<std::size_t>(rank_)];
    mine.descriptor = descriptor_of(operation, rank_);
    mine.number = number_;
    std::copy(operation.piggybacked_scalars.begin(), operation.piggybacked_scalars.end(), mine.scalars.begin());
    auto const bytes = static_cast<std::size_t>(input_bytes(operation, rank_, size_));
    if (small(operation) && bytes != 0) std::memcpy(mine.input.data(), input_of(operation), bytes);
    must(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, headers_.data(), sizeof(Header), MPI_BYTE, group_, &mpi_request_),
         "MPI_Iallgather");
    phase_ = Phase::exchange_headers;
  }

  void advance() {
    auto& operation = *operations_.front();
    if (phase_ == Phase::exchange_headers) return process_headers(operation);
    if (phase_ == Phase::scatter) return combine(operation);
    begin_ += chunk_;
    next_chunk(operation);
  }

  void process_headers(CollectiveOperation& operation) {
    auto const expected = descriptor_of(operation, rank_);
    for (auto const& header : headers_) mismatch_ = mismatch_ || !matches(expected, header.descriptor);
    if (mismatch_) return;
    if (!operation.piggybacked_scalars.empty()) {
      gather_inputs([](Header const& header) { return static_cast<void const*>(header.scalars.data()); });
      void* const out = operation.piggybacked_scalars.data();
      reduce_range(Reduction::sum, ElementType::float64, inputs_.data(), size_, &out, 1, 0,
                   std::ssize(operation.piggybacked_scalars));
    }
    begin_ = 0;
    if (!small(operation)) return next_chunk(operation);
    auto const own = operation.collective == Collective::reduce_scatter
                         ? rank_ * operation.count * element_bytes(operation)
                         : Index{0};
    gather_inputs([own](Header const& header) { return static_cast<void const*>(header.input.data() + own); });
    if (reduces(operation.collective))
      reduce_range(operation.reduction, operation.type, inputs_.data(), size_, &operation.data, 1, 0, operation.count);
    else
      copy_small(operation);
    complete();
  }
  template <class Input>
  void gather_inputs(Input const& input) {
    for (std::size_t r = 0; r < headers_.size(); ++r) inputs_[r] = input(headers_[r]);
  }
  void copy_small(CollectiveOperation const& operation) const {
    Index offset = 0;
    for (int r = 0; r < size_; ++r) {
      bool const from_here = operation.collective == Collective::all_gather ||
                             (operation.collective == Collective::broadcast && r == operation.root);
      auto const n = from_here ? part_elements(operation, r) : Index{0};
      if (n != 0)
        std::memcpy(at(operation.data, offset, operation), inputs_[static_cast<std::size_t>(r)],
                    static_cast<std::size_t>(n * element_bytes(operation)));
      if (operation.collective == Collective::all_gather) offset += part_elements(operation, r);
    }
  }

  void next_chunk(CollectiveOperation& operation) {
    auto const size = element_bytes(operation);
    auto const type = type_of(size);
    chunk_ = std::min(largest_part(operation) - begin_, scratch_bytes / size / input_parts(operation, size_));
    if (chunk_ <= 0) return complete();
    switch (operation.collective) {
      case Collective::all_reduce:
      case Collective::reduce_scatter:
        return scatter(operation, type);
      case Collective::broadcast:
        must(MPI_Ibcast(at(operation.data, begin_, operation), static_cast<int>(chunk_), type, operation.root, group_,
                        &mpi_request_),
             "MPI_Ibcast");
        break;
      default:
        gather_parts(operation, type);
    }
    phase_ = Phase::gather;
  }

  /// Sends slice j of this rank's chunk to rank j.
  void scatter(CollectiveOperation& operation, MPI_Datatype type) {
    bool const to_all = operation.collective == Collective::all_reduce;
    Index offset = 0;
    for (int r = 0; r < size_; ++r) {
      auto const i = static_cast<std::size_t>(r);
      lengths_[i] = static_cast<int>(to_all ? chunk_ * (r + 1) / size_ - chunk_ * r / size_ : chunk_);
      offsets_[i] = static_cast<int>(to_all ? offset : 0);
      offset += lengths_[i];
    }
    auto const own = lengths_[static_cast<std::size_t>(rank_)];
    auto* const received = scratch((to_all ? 1 : 2) * Index{size_} * own * element_bytes(operation));
    void const* from = at(const_cast<void*>(input_of(operation)), begin_, operation);
    if (!to_all) from = pack(operation, received + Index{size_} * own * element_bytes(operation));
    for (int r = 0; r < size_; ++r) {
      auto const i = static_cast<std::size_t>(r);
      receive_lengths_[i] = own;
      receive_offsets_[i] = r * own;
      inputs_[i] = received + Index{r} * own * element_bytes(operation);
      if (!to_all) offsets_[i] = static_cast<int>(r * chunk_);
    }
    must(MPI_Ialltoallv(from, lengths_.data(), offsets_.data(), type, received, receive_lengths_.data(),
                        receive_offsets_.data(), type, group_, &mpi_request_),
         "MPI_Ialltoallv");
    phase_ = Phase::scatter;
  }
  /// Concatenates the chunk of each part: parts may be farther apart in memory than MPI can count.
  std::byte const* pack(CollectiveOperation const& operation, std::byte* to) const {
    auto const bytes = chunk_ * element_bytes(operation);
    for (Index part = 0; part < size_; ++part)
      std::memcpy(to + part * bytes,
                  static_cast<std::byte const*>(input_of(operation)) +
                      (part * operation.count + begin_) * element_bytes(operation),
                  static_cast<std::size_t>(bytes));
    return to;
  }

  void combine(CollectiveOperation& operation) {
    bool const to_all = operation.collective == Collective::all_reduce;
    auto const i = static_cast<std::size_t>(rank_);
    void* const out = at(operation.data, begin_ + (to_all ? offsets_[i] : 0), operation);
    reduce_range(operation.reduction, operation.type, inputs_.data(), size_, &out, 1, 0, lengths_[i]);
    if (!to_all) {
      begin_ += chunk_;
      return next_chunk(operation);
    }
    must(MPI_Iallgatherv(MPI_IN_PLACE, 0, type_of(element_bytes(operation)), at(operation.data, begin_, operation),
                         lengths_.data(), offsets_.data(), type_of(element_bytes(operation)), group_, &mpi_request_),
         "MPI_Iallgatherv");
    phase_ = Phase::gather;
  }

  void gather_parts(CollectiveOperation& operation, MPI_Datatype type) {
    Index offset = 0;
    for (int r = 0; r < size_; ++r) {
      lengths_[static_cast<std::size_t>(r)] = static_cast<int>(part_elements(operation, r));
      offsets_[static_cast<std::size_t>(r)] = static_cast<int>(offset);
      offset += part_elements(operation, r);
    }
    if (offset > INT_MAX)
      throw ConfigError("MpiCommunicator: an all_gather of " + std::to_string(offset) +
                        " elements; MPI counts only to " + std::to_string(INT_MAX) + ": gather in several operations");
    chunk_ = largest_part(operation);
    auto const own = static_cast<std::size_t>(rank_);
    bool const in_place = input_of(operation) == at(operation.data, offsets_[own], operation);
    must(MPI_Iallgatherv(in_place ? MPI_IN_PLACE : input_of(operation), lengths_[own], type, operation.data,
                         lengths_.data(), offsets_.data(), type, group_, &mpi_request_),
         "MPI_Iallgatherv");
  }

  void complete() {
    operations_.front()->finished_seconds = Clock::seconds();
    operations_.pop_front();
    ++number_;
    phase_ = Phase::idle;
  }

  [[noreturn]] void throw_mismatch() const {
    throw CollectiveMismatch(mismatch_message(
        "operation " + std::to_string(number_), rank_, size_, descriptor_of(*operations_.front(), rank_),
        [](int r) { return "rank " + std::to_string(r); },
        [&](int r) { return &headers_[static_cast<std::size_t>(r)].descriptor; }));
  }

  MPI_Comm group_;
  launch::WaitLimits limits_;
  std::function<void(std::string const&)> warn_;
  int rank_ = 0, size_ = 1;
  std::deque<CollectiveOperation*> operations_;  // from the oldest incomplete one to the newest
  std::uint32_t number_ = 0;
  Phase phase_ = Phase::idle;
  MPI_Request mpi_request_ = MPI_REQUEST_NULL;
  Index begin_ = 0, chunk_ = 0;
  std::unique_ptr<Buffers> buffers_ = std::make_unique<Buffers>();
  std::vector<Header>& headers_ = buffers_->headers;
  std::vector<int>&lengths_ = buffers_->lengths, &offsets_ = buffers_->offsets;
  std::vector<int>&receive_lengths_ = buffers_->receive_lengths, &receive_offsets_ = buffers_->receive_offsets;
  std::vector<std::byte>& scratch_ = buffers_->scratch;
  std::vector<void const*> inputs_;
  bool mismatch_ = false;
  std::exception_ptr failure_;
};
}}}  // namespace lockstep::comm::detail
#endif
