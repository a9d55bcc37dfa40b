// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_MPI)
#include <mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/detail/check.hpp>
#include <lockstep/comm/detail/describe.hpp>
#include <lockstep/comm/detail/request.hpp>
#include <lockstep/comm/detail/tree_reduce.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/wait.hpp>
#include <lockstep/launch/wait_limits.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// One rank of a group that MPI connects. Sums are computed here, so that they are bit-identical to other engines: MPI
/// only transfers data.
///
/// Every operation begins with a note of fixed size from each rank to all: its request, piggybacked doubles and small
/// inputs. Ranks detect mismatched operations by these notes. Larger sums are then exchanged in slices: each rank
/// reduces its slice and sends it to all. Chunks limit the scratch memory.
class RankMpi {
 public:
  RankMpi(MPI_Comm group, launch::WaitLimits limits, std::function<void(std::string const&)> warn)
      : group_(group), limits_(limits), warn_(std::move(warn)) {
    must(MPI_Comm_set_errhandler(group_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    must(MPI_Comm_rank(group_, &rank_), "MPI_Comm_rank");
    must(MPI_Comm_size(group_, &size_), "MPI_Comm_size");
    auto const ranks = static_cast<std::size_t>(size_);
    notes_.resize(ranks);
    in_.resize(ranks);
    for (auto* numbers : {&lengths_, &places_, &others_lengths_, &others_places_}) numbers->resize(ranks);
  }
  RankMpi(RankMpi const&) = delete;
  RankMpi& operator=(RankMpi const&) = delete;
  ~RankMpi() {
    int over = 0;
    MPI_Finalized(&over);
    if (over == 0 && under_way_ == MPI_REQUEST_NULL) MPI_Comm_free(&group_);
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  void start(Piece& piece) {
    check(piece, rank_, size_);
    piece.started_seconds = Clock::seconds();
    piece.finished_seconds = 0;
    requests_.push_back(request_of(piece, piece.started_seconds));
    progress();
  }

  void progress() {
    while (!mismatch_ && !failure_ && !requests_.empty()) {
      if (phase_ == Phase::idle) {
        meet();
      } else {
        int done = 0;
        must(MPI_Test(&under_way_, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done == 0) return;
        advance();
      }
    }
  }

  /// Returns once `holds()` is true. MPI does not tell which rank is missing.
  template <class Holds>
  void wait_until(Holds const& holds) {
    try {
      wait_within_limits(holds);
    } catch (CommunicationError const&) {
      failure_ = std::current_exception();
      throw;
    }
  }
  void wait(Piece const& piece) {
    wait_until([&] { return piece.complete(); });
  }
  void finish() {
    wait_until([&] { return requests_.empty(); });
  }

  [[nodiscard]] MPI_Comm split(int color, int key) {
    if (color < 0)
      throw ConfigError("MpiCommunicator::split: the color is " + std::to_string(color) + "; MPI takes none below 0");
    finish();
    MPI_Comm part = MPI_COMM_NULL;
    must(MPI_Comm_split(group_, color, key, &part), "MPI_Comm_split");
    return part;
  }
  [[nodiscard]] launch::WaitLimits limits() const noexcept { return limits_; }
  [[nodiscard]] auto const& warn() const noexcept { return warn_; }

 private:
  enum class Phase { idle, meet, scatter, gather };
  static constexpr Index small_bytes = 256;
  static constexpr Index scratch_bytes = Index{16} << 20;

  struct Note {
    Descriptor descriptor;
    std::uint32_t number;
    std::array<double, static_cast<std::size_t>(Piece::most_riders)> rider;
    std::array<std::byte, static_cast<std::size_t>(small_bytes)> input;
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
  template <class Holds>
  void wait_within_limits(Holds const& holds) {
    if (failure_) std::rethrow_exception(failure_);
    auto since = Clock::seconds();
    bool warned = false;
    auto number = number_;
    for (Backoff backoff;;) {
      progress();
      if (mismatch_) throw_mismatch();
      if (holds()) return;
      if (requests_.empty()) throw ConfigError("Communicator::wait: the operation was never started");
      if (backoff.pause()) continue;
      ::sched_yield();  // MPI makes progress only inside calls, so there is nothing to sleep on
      auto const now = Clock::seconds();
      if (std::exchange(number, number_) != number_) since = now;
      auto const told = [&] {
        return "rank " + std::to_string(rank_) + " has waited " + std::to_string(std::lround(now - since)) +
               " s in operation " + std::to_string(number_) + " (" + describe(requests_.front().descriptor(rank_)) +
               ") for another rank; which one is not determined";
      };
      if (now - since > limits_.stall_seconds) throw RankStalled(-1, told() + ". The limit is over");
      if (warned || now - since < limits_.warn_seconds) continue;
      warned = true;
      if (warn_) warn_(told() + "; still waiting");
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
  [[nodiscard]] static std::byte* at(void* data, Index elements, Request const& what) noexcept {
    return static_cast<std::byte*>(data) + elements * what.element_bytes();
  }
  [[nodiscard]] bool small(Request const& what) const noexcept {
    return what.largest_part() * what.parts(size_) * what.element_bytes() <= small_bytes;
  }

  void meet() {
    auto const& what = requests_.front();
    Note& mine = notes_[static_cast<std::size_t>(rank_)];
    mine.descriptor = what.descriptor(rank_);
    mine.number = number_;
    std::copy(what.rider.begin(), what.rider.end(), mine.rider.begin());
    auto const bytes = static_cast<std::size_t>(what.bytes(rank_, size_));
    if (small(what) && bytes != 0) std::memcpy(mine.input.data(), what.in, bytes);
    must(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, notes_.data(), sizeof(Note), MPI_BYTE, group_, &under_way_),
         "MPI_Iallgather");
    phase_ = Phase::meet;
  }

  void advance() {
    auto& what = requests_.front();
    if (phase_ == Phase::meet) return met(what);
    if (phase_ == Phase::scatter) return combine(what);
    begin_ += chunk_;
    next_chunk(what);
  }

  void met(Request& what) {
    auto const expected = what.descriptor(rank_);
    for (auto const& note : notes_) mismatch_ = mismatch_ || !same(expected, note.descriptor);
    if (mismatch_) return;
    if (!what.rider.empty()) {
      gather_inputs([](Note const& note) { return static_cast<void const*>(note.rider.data()); });
      void* const out = what.rider.data();
      reduce_range(Operation::sum, ElementType::float64, in_.data(), size_, &out, 1, 0, std::ssize(what.rider));
    }
    begin_ = 0;
    if (!small(what)) return next_chunk(what);
    auto const own = what.kind == Kind::reduce_scatter ? rank_ * what.count * what.element_bytes() : Index{0};
    gather_inputs([own](Note const& note) { return static_cast<void const*>(note.input.data() + own); });
    if (what.kind == Kind::all_reduce || what.kind == Kind::reduce_scatter)
      reduce_range(what.operation, what.type, in_.data(), size_, &what.out, 1, 0, what.count);
    else
      place_small(what);
    complete();
  }
  template <class Input>
  void gather_inputs(Input const& input) {
    for (std::size_t r = 0; r < notes_.size(); ++r) in_[r] = input(notes_[r]);
  }
  void place_small(Request const& what) const {
    Index place = 0;
    for (int r = 0; r < size_; ++r) {
      bool const from_here = what.kind == Kind::all_gather || (what.kind == Kind::broadcast && r == what.root);
      auto const n = from_here ? what.part(r) : Index{0};
      if (n != 0)
        std::memcpy(at(what.out, place, what), in_[static_cast<std::size_t>(r)],
                    static_cast<std::size_t>(n * what.element_bytes()));
      if (what.kind == Kind::all_gather) place += what.part(r);
    }
  }

  void next_chunk(Request& what) {
    auto const size = what.element_bytes();
    auto const type = type_of(size);
    chunk_ = std::min(what.largest_part() - begin_, scratch_bytes / size / what.parts(size_));
    if (chunk_ <= 0) return complete();
    switch (what.kind) {
      case Kind::all_reduce:
      case Kind::reduce_scatter:
        return scatter(what, type);
      case Kind::broadcast:
        must(MPI_Ibcast(at(what.out, begin_, what), static_cast<int>(chunk_), type, what.root, group_, &under_way_),
             "MPI_Ibcast");
        break;
      default:
        gather_parts(what, type);
    }
    phase_ = Phase::gather;
  }

  /// Sends slice j of this rank's chunk to rank j.
  void scatter(Request& what, MPI_Datatype type) {
    bool const reduces = what.kind == Kind::all_reduce;
    Index place = 0;
    for (int r = 0; r < size_; ++r) {
      auto const i = static_cast<std::size_t>(r);
      lengths_[i] = static_cast<int>(reduces ? chunk_ * (r + 1) / size_ - chunk_ * r / size_ : chunk_);
      places_[i] = static_cast<int>(reduces ? place : 0);
      place += lengths_[i];
    }
    auto const own = lengths_[static_cast<std::size_t>(rank_)];
    auto* const received = scratch((reduces ? 1 : 2) * Index{size_} * own * what.element_bytes());
    void const* from = at(const_cast<void*>(what.in), begin_, what);
    if (!reduces) from = pack(what, received + Index{size_} * own * what.element_bytes());
    for (int r = 0; r < size_; ++r) {
      auto const i = static_cast<std::size_t>(r);
      others_lengths_[i] = own;
      others_places_[i] = r * own;
      in_[i] = received + Index{r} * own * what.element_bytes();
      if (!reduces) places_[i] = static_cast<int>(r * chunk_);
    }
    must(MPI_Ialltoallv(from, lengths_.data(), places_.data(), type, received, others_lengths_.data(),
                        others_places_.data(), type, group_, &under_way_),
         "MPI_Ialltoallv");
    phase_ = Phase::scatter;
  }
  /// Concatenates the chunk of each part: parts may be farther apart in memory than MPI can count.
  std::byte const* pack(Request const& what, std::byte* to) const {
    auto const bytes = chunk_ * what.element_bytes();
    for (Index part = 0; part < size_; ++part)
      std::memcpy(to + part * bytes,
                  static_cast<std::byte const*>(what.in) + (part * what.count + begin_) * what.element_bytes(),
                  static_cast<std::size_t>(bytes));
    return to;
  }

  void combine(Request& what) {
    bool const reduces = what.kind == Kind::all_reduce;
    auto const i = static_cast<std::size_t>(rank_);
    void* const out = at(what.out, begin_ + (reduces ? places_[i] : 0), what);
    reduce_range(what.operation, what.type, in_.data(), size_, &out, 1, 0, lengths_[i]);
    if (!reduces) {
      begin_ += chunk_;
      return next_chunk(what);
    }
    must(MPI_Iallgatherv(MPI_IN_PLACE, 0, type_of(what.element_bytes()), at(what.out, begin_, what), lengths_.data(),
                         places_.data(), type_of(what.element_bytes()), group_, &under_way_),
         "MPI_Iallgatherv");
    phase_ = Phase::gather;
  }

  void gather_parts(Request& what, MPI_Datatype type) {
    Index place = 0;
    for (int r = 0; r < size_; ++r) {
      lengths_[static_cast<std::size_t>(r)] = static_cast<int>(what.part(r));
      places_[static_cast<std::size_t>(r)] = static_cast<int>(place);
      place += what.part(r);
    }
    if (place > INT_MAX)
      throw ConfigError("MpiCommunicator: an all_gather of " + std::to_string(place) +
                        " elements; MPI counts only to " + std::to_string(INT_MAX) + ": gather in several operations");
    chunk_ = what.largest_part();
    auto const own = static_cast<std::size_t>(rank_);
    bool const in_place = what.in == at(what.out, places_[own], what);
    must(MPI_Iallgatherv(in_place ? MPI_IN_PLACE : what.in, lengths_[own], type, what.out, lengths_.data(),
                         places_.data(), type, group_, &under_way_),
         "MPI_Iallgatherv");
  }

  void complete() {
    requests_.front().piece->finished_seconds = Clock::seconds();
    requests_.pop_front();
    ++number_;
    phase_ = Phase::idle;
  }

  [[noreturn]] void throw_mismatch() const {
    throw CollectiveMismatch(disagreement(
        "operation " + std::to_string(number_), rank_, size_, requests_.front().descriptor(rank_),
        [](int r) { return "rank " + std::to_string(r); },
        [&](int r) { return &notes_[static_cast<std::size_t>(r)].descriptor; }));
  }

  MPI_Comm group_;
  launch::WaitLimits limits_;
  std::function<void(std::string const&)> warn_;
  int rank_ = 0, size_ = 1;
  std::deque<Request> requests_;  // from the oldest incomplete request to the newest
  std::uint32_t number_ = 0;
  Phase phase_ = Phase::idle;
  MPI_Request under_way_ = MPI_REQUEST_NULL;
  Index begin_ = 0, chunk_ = 0;
  std::vector<Note> notes_;
  std::vector<void const*> in_;
  std::vector<int> lengths_, places_, others_lengths_, others_places_;
  std::vector<std::byte> scratch_;
  bool mismatch_ = false;
  std::exception_ptr failure_;
};

}}}  // namespace lockstep::comm::detail
#endif
