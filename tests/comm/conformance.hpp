// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/error.hpp>

/// Properties of every engine, checked by each rank by itself: called by the tests of all engines. Throws at the first
/// difference, so that it works on threads and in processes.
namespace lockstep_test {

namespace comm = lockstep::comm;
namespace launch = lockstep::launch;
using lockstep::Index;

[[noreturn]] inline void fail(std::string const& what) { throw std::runtime_error("conformance: " + what); }

/// A plain string, because it is called for every element.
inline void require(bool holds, char const* what) {
  if (!holds) fail(what);
}

/// Element i of a rank's input: with signs and magnitudes that give other bits for almost every order of summation.
template <class T>
T input(int rank, Index i, std::uint64_t salt = 0) {
  std::uint64_t h =
      (static_cast<std::uint64_t>(i) * 64 + static_cast<std::uint64_t>(rank) + salt * 7919) * 0x9e3779b97f4a7c15;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9;
  h ^= h >> 32;
  static constexpr double scales[] = {1, -1, 2, -4, 8, -16, 64, -128};
  return static_cast<T>((static_cast<double>(h >> 11) * 0x1p-53 + 0.5) * scales[h & 7]);
}

/// The balanced tree, in a second implementation: the left branch has the largest power of two below n.
template <class Term>
auto tree(int first, int n, Term const& term) {
  if (n == 1) return term(first);
  int left = 1;
  while (left * 2 < n) left *= 2;
  auto const a = tree(first, left, term);
  return a + tree(first + left, n - left, term);
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// The source of an operation's memory.
enum class Memory { allocated, own, mixed };

/// One operation with its memory, with a guard element on both sides, and its expected result.
template <class T>
class Case {
 public:
  Case(comm::AnyCommunicator& c, Memory memory, Index count, Index offset, std::size_t scalars, std::uint64_t salt)
      : rank_(c.rank()), size_(c.size()), count_(count), salt_(salt), scalars_(scalars) {
    auto const elements = static_cast<std::size_t>(count + offset + 2);
    block_ = c.allocate(elements * sizeof(T));  // collective, so called by all ranks in every case
    bool const own = memory == Memory::own || (memory == Memory::mixed && rank_ % 2 == 1);
    if (own) own_.resize(elements);
    begin_ = (own ? own_.data() : reinterpret_cast<T*>(block_.data())) + offset + 1;
    fill();
  }
  Case(Case const&) = delete;
  Case& operator=(Case const&) = delete;

  comm::CollectiveOperation& operation() { return operation_; }

  void fill() {
    begin_[-1] = begin_[count_] = guard;
    for (Index i = 0; i < count_; ++i) begin_[i] = input<T>(rank_, i, salt_);
    for (std::size_t i = 0; i < scalars_.size(); ++i) scalars_[i] = scalar(rank_, i);
    operation_ = {lockstep::element_type_of<T>, begin_, count_, comm::Reduction::sum, scalars_};
  }

  void check(std::string const& what) const {
    for (Index i = 0; i < count_; ++i)
      if (!same_bits(begin_[i], tree(0, size_, [&](int r) { return input<T>(r, i, salt_); })))
        fail(what + ": element " + std::to_string(i) + " of " + std::to_string(count_) + " differs from the tree sum");
    for (std::size_t i = 0; i < scalars_.size(); ++i)
      if (!same_bits(scalars_[i], tree(0, size_, [&](int r) { return scalar(r, i); })))
        fail(what + ": piggybacked scalar " + std::to_string(i) + " differs from the tree sum");
    if (!same_bits(begin_[-1], guard) || !same_bits(begin_[count_], guard))
      fail(what + ": wrote outside of the memory");
    if (operation_.started_seconds <= 0 || operation_.finished_seconds < operation_.started_seconds)
      fail(what + ": time stamps");
  }

 private:
  static constexpr T guard = T{1234.5};
  double scalar(int rank, std::size_t i) const { return input<double>(rank, static_cast<Index>(i) + 1000, salt_); }

  int rank_, size_;
  Index count_;
  std::uint64_t salt_;
  std::vector<double> scalars_;
  lockstep::memory::Block block_;
  std::vector<T> own_;
  T* begin_ = nullptr;
  comm::CollectiveOperation operation_;
};

template <class T>
void sums_are_the_tree(comm::AnyCommunicator& c) {
  std::uint64_t salt = 0;
  for (auto const memory : {Memory::allocated, Memory::own, Memory::mixed})
    for (Index const count : {0, 1, 15, 16, 17, 32, 33, 64, 65, 512, 513, 1000, 1024, 1025, 65536, 65537, 200001})
      for (Index const offset : {0, 1, 5})
        for (std::size_t const scalars : {0U, 1U, 16U}) {
          // offsets and piggybacked scalars matter only for small ones
          if (count > 2000 && (offset != 1 || scalars != 1)) continue;
          Case<T> one(c, memory, count, offset, scalars, ++salt);
          c.start(one.operation());
          c.finish();
          one.check(std::string(lockstep::name(lockstep::element_type_of<T>)) + ", memory " +
                    std::to_string(static_cast<int>(memory)) + ", offset " + std::to_string(offset));
        }
}

/// More operations than any ring holds, of all kinds, with progress in between; repeated on equal memory.
inline void many_pieces_are_under_way(comm::AnyCommunicator& c) {
  constexpr std::uint64_t operations = 150;
  std::vector<std::unique_ptr<Case<float>>> cases;
  for (std::uint64_t i = 0; i < operations; ++i)
    cases.push_back(std::make_unique<Case<float>>(c, static_cast<Memory>(i % 3),
                                                  static_cast<Index>(i * i * 7 % 3000) * (i % 40 == 9 ? 50 : 1),
                                                  static_cast<Index>(i % 4), i % 17, i));
  for (int round = 0; round < 2; ++round) {
    for (auto& one : cases) {
      one->fill();
      c.start(one->operation());
      if (c.rank() == 1) c.progress();
    }
    c.finish();
    double before = 0;
    for (auto& one : cases) {
      one->check("many pieces");
      require(one->operation().finished_seconds >= before, "pieces complete in the order in which they were started");
      before = one->operation().finished_seconds;
    }
  }
}

/// After a restart, an operation is not complete from before.
inline void pieces_are_started_again(comm::AnyCommunicator& c) {
  float x = 0;
  auto const sum = static_cast<float>(c.size());
  comm::CollectiveOperation operation{lockstep::ElementType::float32, &x, 1, comm::Reduction::sum, {}};
  for (int round = 0; round < 20; ++round) {
    x = 1;
    c.start(operation);
    require(!operation.complete() || x == sum, "a piece that was started again is complete too early");
    c.wait(operation);
    require(x == sum, "a piece that was started again");
  }
}

inline void max_spreads_nan(comm::AnyCommunicator& c) {
  for (Index const count : {3, 5000}) {
    std::vector<float> x(static_cast<std::size_t>(count), static_cast<float>(c.rank()));
    double scalar = 1;
    x[1] = -x[0];
    if (c.rank() == c.size() - 1) x[2] = std::numeric_limits<float>::quiet_NaN();
    comm::CollectiveOperation operation{
        lockstep::ElementType::float32, x.data(), count, comm::Reduction::max, {&scalar, 1}};
    c.start(operation);
    c.finish();
    require(x[0] == static_cast<float>(c.size() - 1) && x[1] == 0, "max");
    require(std::isnan(x[2]), "max propagates NaN");
    require(scalar == c.size(), "piggybacked scalars are summed, for any operation");
  }
}

inline void bytes_move(comm::AnyCommunicator& c) {
  auto const value = [](int rank, std::size_t i) {
    return static_cast<unsigned char>(rank * 37 + static_cast<int>(i % 251));
  };
  auto const ranks = static_cast<std::size_t>(c.size()), me = static_cast<std::size_t>(c.rank());
  for (std::size_t const bytes : {0U, 1U, 100U, 256U, 257U, 4096U, 4097U, 300000U}) {
    for (bool const own : {false, true}) {
      auto const block = c.allocate((ranks + 1) * bytes);
      std::vector<std::byte> vector(own ? (ranks + 1) * bytes : 0);
      auto* const data = reinterpret_cast<unsigned char*>(own ? vector.data() : block.data());
      for (int root = 0; root < c.size(); ++root) {
        for (std::size_t i = 0; i < bytes; ++i) data[i] = value(c.rank(), i);
        c.broadcast(data, bytes, root);
        for (std::size_t i = 0; i < bytes; ++i) require(data[i] == value(root, i), "broadcast");
      }
      auto* const out = data + bytes;
      for (bool const in_place : {false, true}) {
        auto* const in = in_place ? out + me * bytes : data;
        for (std::size_t i = 0; i < bytes; ++i) in[i] = value(c.rank(), i);
        c.all_gather(in, out, bytes);
        for (int r = 0; r < c.size(); ++r)
          for (std::size_t i = 0; i < bytes; ++i)
            require(out[static_cast<std::size_t>(r) * bytes + i] == value(r, i),
                    in_place ? "all_gather in place" : "all_gather");
      }
    }
    c.barrier();
  }
}

inline void allocations_are_zeroed_and_disjoint(comm::AnyCommunicator& c) {
  require(c.allocate(0).data() == nullptr, "no memory for no bytes");
  for (std::size_t const bytes : {1U, 4096U, 5000U, 3U << 20}) {
    for (int again = 0; again < 2; ++again) {
      auto const a = c.allocate(bytes), b = c.allocate(bytes);
      require(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0 && a.bytes() == bytes, "alignment and size");
      require(a.data() + bytes <= b.data() || b.data() + bytes <= a.data(), "blocks are disjoint");
      for (auto const* block : {&a, &b}) {
        for (std::size_t i = 0; i < bytes; ++i)
          require(block->data()[i] == std::byte{0}, "memory is zeroed, used before or not");
        std::memset(block->data(), 0xff, bytes);
      }
    }
  }
  auto const free_order = [&] {  // freed out of order: places stay equal on all ranks, or the next allocate reports it
    auto a = c.allocate(10000), b = c.allocate(20000);
    a = {};
    auto const d = c.allocate(5000);
  };
  free_order();
}

template <class F>
void refuses(F&& f, std::string const& part) {
  try {
    f();
  } catch (lockstep::ConfigError const& error) {
    if (std::string(error.what()).find(part) == std::string::npos) fail(std::string("message: ") + error.what());
    return;
  }
  fail("refuses: " + part);
}

/// A refused operation never leaves its rank: the communicator remains usable.
inline void impossible_pieces_are_refused(comm::AnyCommunicator& c) {
  std::vector<float> x(4);
  std::vector<double> scalars(17);
  using lockstep::ElementType;
  comm::CollectiveOperation negative{ElementType::float32, x.data(), -1, comm::Reduction::sum, {}};
  comm::CollectiveOperation nothing{ElementType::float32, nullptr, 1, comm::Reduction::sum, {}};
  comm::CollectiveOperation misaligned{
      ElementType::float32, reinterpret_cast<char*>(x.data()) + 1, 1, comm::Reduction::sum, {}};
  comm::CollectiveOperation too_many_scalars{ElementType::float32, x.data(), 1, comm::Reduction::sum, scalars};
  refuses([&] { c.start(negative); }, "-1 elements");
  refuses([&] { c.start(nothing); }, "no memory");
  refuses([&] { c.start(misaligned); }, "not aligned");
  refuses([&] { c.start(too_many_scalars); }, "17 doubles");
  refuses([&] { c.broadcast(x.data(), 4, c.size()); }, "the root of a broadcast is " + std::to_string(c.size()));
  refuses([&] { c.broadcast(x.data(), 4, -1); }, "the root of a broadcast is -1");
  comm::CollectiveOperation const not_started{ElementType::float32, x.data(), 1, comm::Reduction::sum, {}};
  if (c.size() > 1) refuses([&] { c.wait(not_started); }, "the operation was never started");  // one rank never waits
  c.barrier();
}

/// Returns the bits of some sums, to compare engines.
inline std::string digest(comm::AnyCommunicator& c) {
  std::string out;
  for (Index const count : {7, 5000, 100003})
    for (auto const memory : {Memory::allocated, Memory::own}) {
      Case<float> one(c, memory, count, 1, 5, static_cast<std::uint64_t>(count));
      c.start(one.operation());
      c.finish();
      auto const* const bytes = static_cast<char const*>(one.operation().data);
      out.append(bytes, static_cast<std::size_t>(count) * sizeof(float));
      for (double const scalars : one.operation().piggybacked_scalars) out += std::to_string(scalars);
    }
  return out;
}

inline void keeps_its_promises(comm::AnyCommunicator& c) {
  sums_are_the_tree<float>(c);
  sums_are_the_tree<double>(c);
  many_pieces_are_under_way(c);
  pieces_are_started_again(c);
  max_spreads_nan(c);
  bytes_move(c);
  allocations_are_zeroed_and_disjoint(c);
  impossible_pieces_are_refused(c);
}

inline int conformance(launch::World const& world) {
  auto c = comm::connect(world);
  require(c.rank() == world.rank && c.size() == world.size, "rank and size");
  require(std::string(c.name()) == launch::name(world.engine), "name");
  keeps_its_promises(c);
  return 0;
}

/// Needs tests/malloc_count.hpp: checks that `count()` does not grow over many steps after the first.
template <class Count>
int allocates_nothing_when_steady(launch::World const& world, Count const& count) {
  auto c = comm::connect(world);
  auto const block = c.allocate(std::size_t{1} << 20);
  std::vector<float> own(100000);
  std::array<double, 3> scalars{};
  std::array<comm::CollectiveOperation, 40> operations;
  auto const step = [&] {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      void* const data = i % 2 == 0 ? static_cast<void*>(block.data()) : own.data();
      operations[i] = {lockstep::ElementType::float32, static_cast<float*>(data) + i * 1000, static_cast<Index>(i * 25),
                       comm::Reduction::sum, scalars};
      c.start(operations[i]);
      c.progress();
    }
    comm::CollectiveOperation large{
        lockstep::ElementType::float32, own.data(), std::ssize(own), comm::Reduction::sum, {}};
    c.finish();
    c.start(large);
    c.finish();
    c.broadcast(own.data(), 5000, 0);
    c.barrier();
  };
  step();
  c.barrier();
  auto const before = count();
  c.barrier();
  for (int i = 0; i < 50; ++i) step();
  c.barrier();
  auto const after = count();
  c.barrier();
  if (before != after) fail(std::to_string(after - before) + " allocations in 50 steady steps");
  return 0;
}

}  // namespace lockstep_test
