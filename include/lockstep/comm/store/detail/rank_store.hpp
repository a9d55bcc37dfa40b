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
#include <lockstep/comm/detail/describe.hpp>
#include <lockstep/comm/detail/peer_watch.hpp>
#include <lockstep/comm/detail/request.hpp>
#include <lockstep/comm/detail/tree_reduce.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/store/store.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// One rank of a group that a store connects. In each operation every rank contributes its request, its piggybacked
/// doubles and its input. It receives all contributions and computes its own result. Larger operations are split into
/// chunks that fit a part of the store.
class RankStore {
 public:
  explicit RankStore(launch::World const& world) : RankStore(world, "all", first_ranks(world.size)) {}
  RankStore(RankStore const&) = delete;
  RankStore& operator=(RankStore const&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(members_.size()); }

  void start(Piece& piece) {
    check(piece, rank_, size());
    piece.started_seconds = Clock::seconds();
    piece.finished_seconds = 0;
    requests_.push_back(request_of(piece, piece.started_seconds));
    if (failure_) return;
    guarded([&] { contribute(requests_.back(), first_ + static_cast<std::uint32_t>(requests_.size()) - 1, 0); });
    progress();
  }

  void progress() {
    while (!failure_ && !requests_.empty()) {
      bool came = false;
      guarded([&] { came = advance(); });
      if (!came) return;
    }
  }
  void wait(Piece const& piece) {
    wait_until([&] { return piece.complete(); });
  }
  void finish() {
    wait_until([&] { return requests_.empty(); });
  }

  /// Creates the communicator of the ranks with this color.   @collective
  [[nodiscard]] std::unique_ptr<RankStore> split(int color, int key) {
    struct Entry {
      int color, key;
    };
    Entry const mine{color, key};
    std::vector<Entry> all(members_.size());
    Piece gather{.type = ElementType::uint8,
                 .data = all.data(),
                 .count = sizeof mine,
                 .collective = Collective::all_gather,
                 .in = &mine};
    start(gather);
    finish();
    std::vector<int> order;
    for (int r = 0; r < size(); ++r)
      if (all[static_cast<std::size_t>(r)].color == color) order.push_back(r);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return all[static_cast<std::size_t>(a)].key < all[static_cast<std::size_t>(b)].key;
    });
    for (auto& r : order) r = members_[static_cast<std::size_t>(r)];
    auto const name = name_ + "." + std::to_string(first_) + ":" + std::to_string(color);  // equal only on its ranks
    return std::unique_ptr<RankStore>(new RankStore(watch_.world(), name, std::move(order)));
  }

 private:
  RankStore(launch::World const& world, std::string name, std::vector<int> members)
      : name_(std::move(name)),
        members_(std::move(members)),
        watch_(world, members_),
        store_(*watch_.world().store),
        places_(static_cast<std::size_t>(world.size), -1),
        parts_(members_.size()),
        in_(members_.size()) {
    for (std::size_t i = 0; i < members_.size(); ++i)
      places_[static_cast<std::size_t>(members_[i])] = static_cast<int>(i);
    rank_ = places_[static_cast<std::size_t>(world.rank)];
  }
  static std::vector<int> first_ranks(int count) {
    std::vector<int> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  [[nodiscard]] std::string name_of(std::uint32_t number, Index chunk) const {
    return name_ + "/" + std::to_string(number) + "/" + std::to_string(chunk);
  }
  [[nodiscard]] Index chunk_elements(Request const& what) const noexcept {
    constexpr auto head = sizeof(Descriptor) + sizeof(double) * static_cast<std::size_t>(Piece::most_riders);
    auto const bytes = static_cast<Index>(launch::Store::part_bytes(size()) - head);
    return std::max<Index>(1, bytes / what.element_bytes() / what.parts(size()));
  }
  /// A chunk's elements of a rank's input: none if its part is shorter, or if only the root has input.
  struct Range {
    Index begin, count;
  };
  [[nodiscard]] Range range(Request const& what, int of, Index chunk) const noexcept {
    auto const begin = chunk * chunk_elements(what);
    bool const gives = what.kind != Kind::broadcast || of == what.root;
    return {begin, gives ? std::clamp<Index>(what.part(of) - begin, 0, chunk_elements(what)) : 0};
  }

  void contribute(Request const& what, std::uint32_t number, Index chunk) {
    out_.clear();
    auto const add = [&](void const* data, std::size_t bytes) {
      if (bytes > 0) out_.append(static_cast<char const*>(data), bytes);
    };
    if (chunk == 0) {
      auto const mine = what.descriptor(rank_);
      add(&mine, sizeof mine);
      add(what.rider.data(), what.rider.size_bytes());
    }
    auto const [begin, count] = range(what, rank_, chunk);
    for (Index part = 0; part < what.parts(size()); ++part)
      add(static_cast<std::byte const*>(what.in) + (part * what.count + begin) * what.element_bytes(),
          static_cast<std::size_t>(count * what.element_bytes()));
    store_.contribute(name_of(number, chunk), out_, size(), [this](auto const& sent) {
      watch_.until(
          sent, [this] { return tell(); }, [] { return std::vector{0}; });  // rank 0 owns the store
    });
  }

  /// Advances the oldest operation by one chunk if all contributions have arrived.
  bool advance() {
    bool const here = store_.gathered(name_of(first_, chunk_), [&](launch::Store::Part part) {
      parts_[static_cast<std::size_t>(places_[static_cast<std::size_t>(part.rank)])].assign(part.bytes);
    });
    if (!here) return false;
    auto& what = requests_.front();
    std::size_t head = 0;
    if (chunk_ == 0) {
      throw_if_mismatched(what);
      head = sizeof(Descriptor) + what.rider.size_bytes();
      if (!what.rider.empty()) {
        set_inputs(sizeof(Descriptor));
        void* const out = what.rider.data();
        reduce_range(Operation::sum, ElementType::float64, in_.data(), size(), &out, 1, 0, std::ssize(what.rider));
      }
    }
    work_out(what, head);
    if ((chunk_ + 1) * chunk_elements(what) < what.largest_part()) {
      contribute(what, first_, ++chunk_);
      return true;
    }
    what.piece->finished_seconds = Clock::seconds();
    requests_.pop_front();
    ++first_;
    chunk_ = 0;
    return true;
  }
  void set_inputs(std::size_t offset) {
    for (std::size_t r = 0; r < in_.size(); ++r) in_[r] = parts_[r].data() + offset;
  }
  void work_out(Request const& what, std::size_t head) {
    auto const size_of_one = what.element_bytes();
    auto* const out = static_cast<std::byte*>(what.out);
    if (what.kind == Kind::all_reduce || what.kind == Kind::reduce_scatter) {
      auto const [begin, count] = range(what, rank_, chunk_);
      auto const slice = what.kind == Kind::reduce_scatter ? rank_ * count * size_of_one : Index{0};
      set_inputs(head + static_cast<std::size_t>(slice));
      void* const to = out + begin * size_of_one;
      reduce_range(what.operation, what.type, in_.data(), size(), &to, 1, 0, count);
      return;
    }
    Index place = 0;  // offset of a part in the result
    for (int r = 0; r < size(); ++r) {
      auto const [begin, count] = range(what, r, chunk_);
      if (count > 0)
        std::memcpy(out + (place + begin) * size_of_one, parts_[static_cast<std::size_t>(r)].data() + head,
                    static_cast<std::size_t>(count * size_of_one));
      if (what.kind == Kind::all_gather) place += what.part(r);
    }
  }
  void throw_if_mismatched(Request const& what) const {
    Descriptor other;
    auto const told = disagreement(
        "operation " + std::to_string(first_), rank_, size(), what.descriptor(rank_),
        [&](int r) { return watch_.who(r); },
        [&](int r) {
          std::memcpy(&other, parts_[static_cast<std::size_t>(r)].data(), sizeof other);
          return &other;
        });
    if (!told.empty()) throw CollectiveMismatch(told);
  }

  /// Keeps an error for the next wait. Replaces a store that cannot be reached by the lost rank that explains it.
  template <class F>
  void guarded(F const& f) {
    try {
      try {
        f();
      } catch (CommunicationError const& error) {
        if (typeid(error) != typeid(CommunicationError)) throw;  // it already names the cause
        watch_.explain(error.what(), tell());
      }
    } catch (CommunicationError const&) {
      failure_ = std::current_exception();
    }
  }
  template <class Holds>
  void wait_until(Holds const& holds) {
    for (;;) {
      progress();
      if (failure_) std::rethrow_exception(failure_);
      if (holds()) return;
      if (requests_.empty()) throw ConfigError("Communicator::wait: the operation was never started");
      auto const number = first_;
      try {
        watch_.until(
            [&] {
              progress();
              return failure_ || first_ != number;
            },
            [&] { return tell(); }, [&] { return missing(); });
      } catch (CommunicationError const&) {
        failure_ = std::current_exception();
      }
    }
  }
  [[nodiscard]] std::string tell() const {
    return "operation " + std::to_string(first_) +
           (requests_.empty() ? "" : " (" + describe(requests_.front().descriptor(rank_)) + ")");
  }
  /// Returns the group's ranks that have not reached the oldest operation; rank 0 if the store does not answer.
  [[nodiscard]] std::vector<int> missing() {
    try {
      auto const lost = [this] { return watch_.lost() >= 0; };
      if (auto late = store_.missing(name_of(first_, chunk_), members_, lost)) return std::move(*late);
    } catch (CommunicationError const& error) {
      watch_.explain(error.what(), tell());
    }
    return {0};
  }

  std::string name_;
  std::vector<int> members_;  // as ranks of the run
  PeerWatch watch_;
  launch::Store& store_;
  std::vector<int> places_;  // rank in the group for each rank of the run, or -1
  int rank_ = 0;
  std::deque<Request> requests_;  // from the oldest incomplete request to the newest
  std::uint32_t first_ = 0;       // number of the oldest request
  Index chunk_ = 0;               // its current chunk
  std::string out_;
  std::vector<std::string> parts_;  // by rank of the group
  std::vector<void const*> in_;
  std::exception_ptr failure_;
};

}}}  // namespace lockstep::comm::detail
