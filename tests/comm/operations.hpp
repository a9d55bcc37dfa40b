// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <lockstep/comm/collectives/all_gather.hpp>
#include <lockstep/comm/collectives/all_reduce.hpp>
#include <lockstep/comm/collectives/broadcast.hpp>
#include <lockstep/comm/collectives/reduce_scatter.hpp>

#include "conformance.hpp"

/// Properties of every engine's operations: all kinds, types and combinations, and split groups.
namespace lockstep_test {

using comm::Collective;
using comm::CollectiveOperation;
using comm::Reduction;
using lockstep::ElementType;

inline constexpr ElementType all_types[] = {ElementType::float32, ElementType::float64, ElementType::bfloat16,
                                            ElementType::float16, ElementType::int32,   ElementType::int64,
                                            ElementType::uint8};
inline constexpr Reduction all_reductions[] = {Reduction::sum, Reduction::average, Reduction::max,
                                               Reduction::logical_or, Reduction::logical_and};

inline bool whole(ElementType type) {
  return type == ElementType::int32 || type == ElementType::int64 || type == ElementType::uint8;
}
inline bool logical(Reduction reduction) {
  return reduction == Reduction::logical_or || reduction == Reduction::logical_and;
}
inline bool allowed(ElementType type, Reduction reduction) {
  return whole(type) ? reduction != Reduction::average : !logical(reduction);
}

/// Memory of elements of a run-time type, read and written as doubles.
class Elements {
 public:
  Elements(ElementType type, void* data) : type_(type), data_(data) {}

  template <class F>
  auto with(F const& f) const {
    switch (type_) {
      case ElementType::float32:
        return f(static_cast<float*>(data_));
      case ElementType::float64:
        return f(static_cast<double*>(data_));
      case ElementType::bfloat16:
        return f(static_cast<lockstep::bfloat16*>(data_));
      case ElementType::float16:
        return f(static_cast<lockstep::float16*>(data_));
      case ElementType::int32:
        return f(static_cast<std::int32_t*>(data_));
      case ElementType::int64:
        return f(static_cast<std::int64_t*>(data_));
      default:
        return f(static_cast<std::uint8_t*>(data_));
    }
  }
  void put(Index i, double x) const {
    with([&]<class T>(T* p) {
      if constexpr (std::is_integral_v<T>)
        p[i] = static_cast<T>(static_cast<std::int64_t>(x));  // wraps
      else
        p[i] = static_cast<T>(static_cast<lockstep::Accumulate<T>>(x));
    });
  }
  [[nodiscard]] double get(Index i) const {
    return with([&](auto const* p) { return static_cast<double>(p[i]); });
  }

 private:
  ElementType type_;
  void* data_;
};

/// Element i of a rank's input: rounded to the type, and sometimes 0, which logical operations distinguish.
inline double given(ElementType type, int rank, Index i) {
  auto const x = input<double>(rank, i, static_cast<std::uint64_t>(type));
  if (whole(type)) return std::trunc(x) * ((i + rank) % 3 == 0 ? 0 : 1);
  alignas(8) std::byte memory[8];
  Elements const one(type, memory);
  one.put(0, x);
  return one.get(0);
}

/// Result of the ranks' elements i, in the accumulation type. float32 sums are rounded float64 sums, which is exact
/// because 53 bits are more than twice 24.
inline double combined(ElementType type, Reduction reduction, int ranks, Index i) {
  bool const in_float = !whole(type) && type != ElementType::float64;
  struct Term {
    double x;
    Reduction reduction;
    bool in_float;
    Term operator+(Term other) const {
      double const both = reduction == Reduction::max           ? std::max(x, other.x)
                          : reduction == Reduction::logical_or  ? std::max(x, other.x)
                          : reduction == Reduction::logical_and ? std::min(x, other.x)
                                                                : x + other.x;
      return {in_float ? static_cast<double>(static_cast<float>(both)) : both, reduction, in_float};
    }
  };
  auto const total = tree(0, ranks, [&](int r) {
                       auto x = given(type, r, i);
                       if (type == ElementType::uint8) x = static_cast<std::uint8_t>(static_cast<std::int64_t>(x));
                       return Term{logical(reduction) ? (x != 0 ? 1.0 : 0.0) : x, reduction, in_float};
                     }).x;
  if (reduction != Reduction::average) return total;
  return in_float ? static_cast<double>(static_cast<float>(total) / static_cast<float>(ranks)) : total / ranks;
}

/// Memory of a case: the ranks' symmetric memory, or their own; one element off a cache line's boundary.
class Place {
 public:
  Place(comm::AnyCommunicator& c, Memory memory, ElementType type, Index count)
      : block_(c.allocate((static_cast<std::size_t>(count) + 2) * size_of(type))) {
    bool const own = memory == Memory::own || (memory == Memory::mixed && c.rank() % 2 == 1);
    if (own) own_.resize(block_.bytes() / sizeof(double) + 1);
    data_ = (own ? reinterpret_cast<std::byte*>(own_.data()) : block_.data()) + size_of(type);
  }
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  lockstep::memory::Block block_;
  std::vector<double> own_;
  std::byte* data_;
};

inline void expect_elements(CollectiveOperation const& operation, Index first, int ranks, std::string const& what) {
  Elements const result(operation.type, operation.data);
  for (Index i = 0; i < operation.count; ++i) {
    alignas(8) std::byte memory[8];
    Elements const expected(operation.type, memory);
    expected.put(0, combined(operation.type, operation.reduction, ranks, first + i));
    auto const size = size_of(operation.type);
    if (std::memcmp(memory, static_cast<std::byte*>(operation.data) + static_cast<std::size_t>(i) * size, size) != 0)
      fail(what + " of " + lockstep::name(operation.type) + ", operation " +
           std::to_string(static_cast<int>(operation.reduction)) + ", element " + std::to_string(i) + " of " +
           std::to_string(operation.count) + ": " + std::to_string(result.get(i)) + " for " +
           std::to_string(expected.get(0)));
  }
}

inline void one_reduction(comm::AnyCommunicator& c, ElementType type, Reduction reduction, Index count, Memory memory) {
  auto const ranks = c.size();
  Place const place(c, memory, type, count * ranks + count);
  Elements const in(type, place.data());
  auto const own = static_cast<std::size_t>(c.rank() * count) * size_of(type);
  CollectiveOperation reduce{type, place.data(), count, reduction, {}};
  for (Index i = 0; i < count; ++i) in.put(i, given(type, c.rank(), i));
  c.start(reduce);
  c.wait(reduce);
  expect_elements(reduce, 0, ranks, "all_reduce");
  for (bool const in_place : {false, true}) {
    for (Index i = 0; i < count * ranks; ++i) in.put(i, given(type, c.rank(), i));
    auto* const separate = place.data() + static_cast<std::size_t>(count * ranks) * size_of(type);
    CollectiveOperation scatter{.type = type,
                                .data = in_place ? place.data() + own : separate,
                                .count = count,
                                .reduction = reduction,
                                .collective = Collective::reduce_scatter,
                                .in = place.data()};
    c.start(scatter);
    c.wait(scatter);
    expect_elements(scatter, c.rank() * count, ranks, in_place ? "reduce_scatter in place" : "reduce_scatter");
    c.barrier();  // the others' results may still be at this rank's next output
  }
}

inline void every_operation_of_every_type(comm::AnyCommunicator& c) {
  for (auto const type : all_types)
    for (auto const reduction : all_reductions) {
      if (!allowed(type, reduction)) continue;
      for (Index const count : {0, 1, 33, 1500})
        one_reduction(c, type, reduction, count, static_cast<Memory>(count % 3));
      one_reduction(c, type, reduction, 31, Memory::own);
    }
  for (auto const memory : {Memory::allocated, Memory::own, Memory::mixed}) {
    one_reduction(c, ElementType::float32, Reduction::sum, 70001, memory);
    one_reduction(c, ElementType::bfloat16, Reduction::sum, 513, memory);
  }
}

/// Rank r gives `unit` times r elements, except rank 1, which gives one: in and out of place, and with both kinds of
/// memory.
inline void parts_may_be_unequal(comm::AnyCommunicator& c) {
  for (Index const unit : {0, 1, 32, 700, 50000})
    for (auto const memory : {Memory::allocated, Memory::own, Memory::mixed}) {
      std::vector<Index> counts;
      Index all = 0, before = 0;
      for (int r = 0; r < c.size(); ++r) {
        if (r == c.rank()) before = all;
        counts.push_back(r == 1 ? 1 : unit * r);
        all += counts.back();
      }
      auto const own = counts[static_cast<std::size_t>(c.rank())];
      Place const place(c, memory, ElementType::int32, all + std::max(Index{1}, unit * c.size()));
      auto* const out = reinterpret_cast<std::int32_t*>(place.data());
      for (auto* const in : {out + all, out + before}) {
        for (Index i = 0; i < own; ++i) in[i] = static_cast<std::int32_t>(c.rank() * 100000 + i);
        comm::all_gather(c, std::span<std::int32_t const>(in, static_cast<std::size_t>(own)),
                         std::span(out, static_cast<std::size_t>(all)), counts)
            .wait();
        Index at = 0;
        for (int r = 0; r < c.size(); ++r)
          for (Index i = 0; i < counts[static_cast<std::size_t>(r)]; ++i)
            require(out[at++] == r * 100000 + i, "all_gather of unequal parts");
        c.barrier();
      }
    }
}

inline void work_is_waited_for(comm::AnyCommunicator& c) {
  std::vector<float> a(100, 1), b(5000, 2), gathered(static_cast<std::size_t>(c.size()));
  std::vector<double> share(3), parts(3 * static_cast<std::size_t>(c.size()), 4);
  float const ranks = static_cast<float>(c.size()), me = static_cast<float>(c.rank());
  {
    auto first = comm::all_reduce(c, a);
    auto const second = comm::all_reduce(c, b, Reduction::average);
    auto const third = comm::reduce_scatter(c, parts, share);
    third.wait();
    require(first.done(), "what was started before is complete too");
    require(first.operation().finished_seconds <= second.operation().finished_seconds, "in order");
    require(a[99] == ranks && b[4999] == 2 && share[2] == 4.0 * c.size(), "their results");
    std::fill(a.begin(), a.end(), me);
    auto const last = comm::broadcast(c, a, c.size() - 1);
    auto const gather = comm::all_gather(c, std::span<float const>(&me, 1), gathered);
  }  // waits
  for (int r = 0; r < c.size(); ++r) require(gathered[static_cast<std::size_t>(r)] == static_cast<float>(r), "gather");
  require(a[0] == ranks - 1, "broadcast");
  auto polled = comm::all_reduce(c, b);
  while (!polled.done()) std::this_thread::yield();
  require(b[0] == 2 * ranks, "progress is made by asking");
}

/// Even and odd ranks separately, the last first; each group split again into single ranks; all three in turn.
inline void groups_may_be_split(comm::AnyCommunicator& c) {
  for (int round = 0; round < 2; ++round) {
    auto half = c.split(c.rank() % 2, -c.rank());
    auto const size = (c.size() + 1 - c.rank() % 2) / 2;
    require(half.size() == size && half.rank() == size - 1 - c.rank() / 2, "order by key");
    require(std::string(half.name()) == c.name(), "the same engine");
    auto alone = half.split(half.rank(), 0);
    require(alone.size() == 1 && alone.rank() == 0, "split again");
    auto const mine = half.allocate(40000);  // by one half more than by the other
    auto const more = c.rank() % 2 == 0 ? half.allocate(10000) : lockstep::memory::Block{};
    auto const both = c.allocate(40000);
    for (Index const count : {5, 3000}) {
      auto const n = static_cast<std::size_t>(count);
      std::span const x(reinterpret_cast<float*>(mine.data()), n), y(reinterpret_cast<float*>(both.data()), n);
      std::fill(x.begin(), x.end(), static_cast<float>(c.rank() + 1));
      std::fill(y.begin(), y.end(), 1.0F);
      comm::all_reduce(half, x).wait();
      comm::all_reduce(c, y).wait();
      comm::all_reduce(alone, y).wait();
      float sum = 0;
      for (int r = c.rank() % 2; r < c.size(); r += 2) sum += static_cast<float>(r + 1);
      require(x[0] == sum && x[n - 1] == sum, "the sum of a half");
      require(y[0] == static_cast<float>(c.size()), "the sum of all");
    }
  }
  auto same = c.split(7, 0);
  require(same.rank() == c.rank() && same.size() == c.size(), "by rank where keys are equal");
}

inline void impossible_operations_are_refused(comm::AnyCommunicator& c) {
  std::vector<float> x(8);
  std::vector<std::int32_t> n(8);
  std::vector<Index> counts(static_cast<std::size_t>(c.size()) + 1, 1);
  refuses([&] { comm::all_reduce(c, x, Reduction::logical_or).wait(); }, "needs integers");
  refuses([&] { comm::all_reduce(c, n, Reduction::average).wait(); }, "the average of int32");
  CollectiveOperation unequal{
      .data = x.data(), .count = 1, .collective = Collective::all_gather, .in = x.data(), .counts = counts};
  refuses([&] { c.start(unequal); }, "counts has " + std::to_string(c.size() + 1) + " entries");
  unequal.collective = Collective::broadcast;
  refuses([&] { c.start(unequal); }, "may be unequal");
  counts.pop_back();
  counts.back() = -3;
  unequal.counts = counts;
  unequal.collective = Collective::all_gather;
  refuses([&] { c.start(unequal); }, "-3 elements");
  CollectiveOperation with_scalars{.data = x.data(), .count = 1, .collective = Collective::broadcast};
  double scalar = 0;
  with_scalars.piggybacked_scalars = {&scalar, 1};
  refuses([&] { c.start(with_scalars); }, "only an all_reduce carries the doubles");
  CollectiveOperation nowhere{.data = x.data(), .count = 1, .collective = Collective::reduce_scatter};
  refuses([&] { c.start(nowhere); }, "in is null");
  try {
    comm::reduce_scatter(c, x, std::span(x.data(), 7)).wait();
    fail("sizes that do not fit");
  } catch (lockstep::ShapeError const&) {
  }
  c.barrier();
}

inline void has_every_operation(comm::AnyCommunicator& c) {
  every_operation_of_every_type(c);
  parts_may_be_unequal(c);
  work_is_waited_for(c);
  groups_may_be_split(c);
  impossible_operations_are_refused(c);
}

inline int operations(launch::World const& world) {
  auto c = comm::connect(world);
  has_every_operation(c);
  return 0;
}

}  // namespace lockstep_test
