// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/gradients/gradient_buckets.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/parallel/gradients/collective_cost.hpp>

#include "parallel/delayed_communicator.hpp"

using namespace lockstep;

namespace {
/// Records the started ranges, and simulates equal numbers on every other rank.
struct Recorder {
  float* arena;
  std::vector<std::pair<Index, Index>> started;  // begin, end
  std::vector<std::size_t> scalar_counts;
  bool finished = false;
  void start(comm::CollectiveOperation& operation) {
    auto const begin = static_cast<float*>(operation.data) - arena;
    started.emplace_back(begin, begin + operation.count);
    scalar_counts.push_back(operation.piggybacked_scalars.size());
    for (auto& x : operation.piggybacked_scalars) x *= 2;
  }
  void progress() {}
  void wait(comm::CollectiveOperation const&) {}
  void finish() { finished = true; }
};
struct Fixture {
  explicit Fixture(Index size, std::size_t bucket_bytes)
      : arena(static_cast<std::size_t>(size)), buckets(arena, bucket_bytes), comm{arena.data(), {}, {}} {
    buckets.begin_step();
  }
  std::vector<float> arena;
  parallel::GradientBuckets buckets;
  Recorder comm;
};
}  // namespace

TEST_CASE("the communication time outside of backward is counted once") {
  struct Slow : Recorder {
    void progress() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }
  };
  Fixture f(1000, 256 * sizeof(float));
  Slow slow{{f.arena.data(), {}, {}}};
  f.buckets.ready(slow, 0, 64);
  CHECK(f.buckets.take_seconds_in_backward() >= 0.002);
  CHECK(f.buckets.take_seconds_in_backward() == 0);
}

TEST_CASE("buckets tile the arena in order, small at both ends, and the first has a piggybacked scalar") {
  Fixture f(1000, 256 * sizeof(float));
  f.buckets.piggybacked_scalars()[0] = 3;
  f.buckets.finish(f.comm);
  CHECK(f.comm.started == std::vector<std::pair<Index, Index>>{
                              {0, 64}, {64, 320}, {320, 576}, {576, 784}, {784, 880}, {880, 944}, {944, 1000}});
  CHECK(f.comm.scalar_counts == std::vector<std::size_t>{3, 0, 0, 0, 0, 0, 0});
  CHECK(f.comm.finished);
  CHECK(f.buckets.piggybacked_scalars()[0] == 6);
  std::size_t bytes = 0;
  for (auto const& t : f.buckets.times()) bytes += t.bytes;
  CHECK(bytes == 4000);
}

TEST_CASE("buckets begin at whole cache lines for any size that is asked for") {
  for (std::size_t const floats : {0U, 1U, 17U, 100U, 250U}) {
    CAPTURE(floats);
    Fixture f(1000, floats * sizeof(float));
    f.buckets.finish(f.comm);
    for (auto const& [begin, end] : f.comm.started) CHECK(begin % nn::ParameterLayout::alignment == 0);
    CHECK(f.comm.started.back().second == 1000);
  }
}

TEST_CASE("a bucket starts when it is full, and never before an earlier one") {
  Fixture f(192, 128 * sizeof(float));  // [0, 32) [32, 112) [112, 144) [144, 176) [176, 192)
  f.buckets.ready(f.comm, 160, 20);     // padded to 32: the last bucket is full, but earlier ones are not
  CHECK(f.comm.started.empty());
  f.buckets.ready(f.comm, 0, 32);
  CHECK(f.comm.started.size() == 1);
  f.buckets.ready(f.comm, 32, 64);
  CHECK(f.comm.started.size() == 1);
  f.buckets.ready(f.comm, 96, 64);
  CHECK(f.comm.started.size() == 5);
  f.buckets.finish(f.comm);
  CHECK(f.comm.started.size() == 5);
}

TEST_CASE("a bucket's times begin when its last gradient is written, regardless of its order") {
  Fixture f(192, 128 * sizeof(float));
  auto const start = [](std::size_t, comm::CollectiveOperation& operation) { operation.started_seconds = 9; };
  f.buckets.fill(176, 16, 3, start);
  f.buckets.fill(0, 16, 4, start);
  f.buckets.fill(16, 160, 5, start);
  std::vector<double> ready;
  for (auto const& times : f.buckets.times()) ready.push_back(times.ready);
  CHECK(ready == std::vector<double>{5, 5, 5, 5, 3});
  CHECK(f.buckets.times()[4].start == 9);
}

TEST_CASE("a parameter that spans buckets starts all of them") {
  Fixture f(1024, 256 * sizeof(float));
  f.buckets.ready(f.comm, 0, 1024);
  CHECK(f.comm.started.size() == 7);
}

TEST_CASE("buckets with unused parameters are sent at the end, and the next step starts over") {
  Fixture f(192, 128 * sizeof(float));
  for (int step = 1; step <= 3; ++step) {
    f.buckets.begin_step();
    f.buckets.ready(f.comm, 0, 16);
    CHECK(f.comm.started.size() == static_cast<std::size_t>(5 * (step - 1)));
    f.buckets.finish(f.comm);
    CHECK(f.comm.started.size() == static_cast<std::size_t>(5 * step));
  }
}

TEST_CASE("a model without parameters still has one bucket, for the piggybacked scalar") {
  Fixture f(0, 1 << 20);
  f.buckets.finish(f.comm);
  CHECK(f.comm.started.size() == 1);
  CHECK(f.comm.scalar_counts[0] == 3);
}

TEST_CASE("tables with a row-sparse gradient are not in buckets") {
  std::vector<float> arena(1000);
  std::uint64_t bits[1] = {};
  kernel::TouchedRows const tables[] = {{96, 10, 33, bits}, {480, 4, 8, bits}};  // to 426, padded 432; to 512
  parallel::GradientBuckets buckets(arena, 256 * sizeof(float), tables);
  Recorder comm{arena.data(), {}, {}};
  buckets.begin_step();
  buckets.ready(comm, 96, 330);
  CHECK(comm.started.empty());
  buckets.ready(comm, 0, 96);
  CHECK(comm.started == std::vector<std::pair<Index, Index>>{{0, 64}, {64, 96}});
  buckets.finish(comm);
  CHECK(comm.started == std::vector<std::pair<Index, Index>>{
                            {0, 64}, {64, 96}, {432, 480}, {512, 752}, {752, 864}, {864, 928}, {928, 1000}});
  CHECK(comm.scalar_counts == std::vector<std::size_t>{3, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("a sharded arena is covered once, in blocks of the norm except for the remainder") {
  constexpr Index block = kernel::SumOfSquares<HostSpace>::block;
  std::uint64_t bits[512] = {};
  for (int ranks : {2, 3, 4, 7})
    for (Index size : {Index{0}, Index{160}, Index{3200}, 9 * block + 48, 300 * block})
      for (Index offset : {Index{-1}, Index{0}, Index{64}, 5 * block + 16}) {
        CAPTURE(ranks);
        CAPTURE(size);
        CAPTURE(offset);
        kernel::TouchedRows const table{offset, 999, 33, bits};
        if (offset >= 0 && table.end() > size) continue;
        std::vector<parallel::detail::ArenaRange> ranges;
        parallel::detail::split_arena(size, 16 * block, std::span(&table, offset < 0 ? 0 : 1), ranks,
                                      [&](auto const& range) { ranges.push_back(range); });
        Index at = 0, whole = 0, segments = offset < 0 ? 1 : offset == 0 ? 2 : 3;
        bool has_bucket = false;
        for (auto const& range : ranges) {
          if (range.begin < range.end) CHECK(range.begin == at);
          at = std::max(at, range.end);
          CHECK(range.of_table == (offset >= 0 && range.begin < range.end && range.begin >= offset &&
                                   range.begin < nn::ParameterLayout::padded(table.end())));
          if (range.sharded) {
            CHECK(range.begin % block == 0);
            CHECK((range.end - range.begin) % (ranks * block) == 0);
            CHECK(range.end - range.begin <= std::max<Index>(16, ranks) * block);
            CHECK(range.part(ranks - 1, ranks).end == range.end);
          } else {
            whole += range.end - range.begin;
          }
          if (!range.of_table && !has_bucket) CHECK_FALSE(range.sharded);  // it has the piggybacked scalar
          has_bucket = has_bucket || !range.of_table;
        }
        CHECK(at == size);
        CHECK(has_bucket);
        CHECK(whole < segments * (ranks + 1) * block);
      }
}

TEST_CASE("each rank reduces only its part of a sharded bucket") {
  constexpr Index block = kernel::SumOfSquares<HostSpace>::block;
  std::vector<float> arena(static_cast<std::size_t>(8 * block));
  struct Pieces {
    std::vector<comm::CollectiveOperation> started;
    void start(comm::CollectiveOperation& operation) { started.push_back(operation); }
    void progress() {}
    void wait(comm::CollectiveOperation const&) {}
    void finish() {}
  } comm;
  parallel::GradientBuckets buckets(arena, 4 * block * sizeof(float), {}, 1, 2);
  buckets.begin_step();
  buckets.ready(comm, 0, 1);  // a rank with only the piggybacked scalar need not wait for more
  REQUIRE(comm.started.size() == 1);
  CHECK(comm.started[0].count == 0);
  CHECK(comm.started[0].piggybacked_scalars.size() == 3);
  CHECK(buckets.times()[0].ready > 0);
  buckets.finish(comm);
  REQUIRE(comm.started.size() == 5);
  Index at = 0;
  for (std::size_t i = 1; i < 5; ++i) {
    auto const& operation = comm.started[i];
    CHECK(operation.collective == comm::Collective::reduce_scatter);
    CHECK(operation.in == arena.data() + at);
    CHECK(operation.data == arena.data() + at + operation.count);
    CHECK(operation.piggybacked_scalars.empty());
    at += 2 * operation.count;
  }
  CHECK(at == 8 * block);
}

TEST_CASE("on a 16-bit wire a bucket is rounded when it is sent, and its sum returns to this rank's part") {
  constexpr Index block = kernel::SumOfSquares<HostSpace>::block, size = 8 * block;
  ThreadPool pool(2);
  for (int ranks : {1, 2}) {
    std::vector<float> arena(static_cast<std::size_t>(size), -1.0f);
    memory::Block sent = memory::HostResource{}.allocate(static_cast<std::size_t>(size) * 2);
    auto* const wire_data = reinterpret_cast<bfloat16*>(sent.data());
    parallel::detail::GradientWire<HostSpace> const wire(ElementType::bfloat16, arena.data(), std::move(sent),
                                                         memory::Stream<HostSpace>(pool));
    /// Every other rank has equal numbers; its parts return unchanged.
    struct Doubling {
      std::vector<comm::CollectiveOperation> started;
      std::size_t waited = 0;
      void start(comm::CollectiveOperation& operation) {
        auto* const to = static_cast<bfloat16*>(operation.data);
        for (Index i = 0; i < operation.count; ++i) to[i] = bfloat16(2 * float{to[i]});
        started.push_back(operation);
      }
      void progress() {}
      void wait(comm::CollectiveOperation const&) { ++waited; }
      void finish() {}
    } comm;
    parallel::GradientBuckets buckets(wire, size, 4 * block, {}, 1 % ranks, ranks);
    CHECK(wire.bytes() == static_cast<std::size_t>(size) * 2);
    buckets.begin_step();
    float const third = 1.0f / 3, rounded = float{bfloat16(third)};
    std::fill_n(arena.begin(), 5 * block, third);
    buckets.ready(comm, 0, 5 * block, wire);
    REQUIRE(comm.started.size() > 1);
    CHECK(std::all_of(arena.begin(), arena.begin() + 5 * block, [=](float g) { return g == third; }));
    CHECK(wire_data[size - 1].bits == 0);  // an incomplete bucket has not been sent
    std::fill(arena.begin() + 5 * block, arena.end(), third);
    buckets.finish(comm, wire);
    CHECK(comm.waited == comm.started.size());
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      auto const& operation = comm.started[i];
      auto const all = buckets.range_of(i), own = buckets.own_range_of(i);
      CHECK(operation.type == ElementType::bfloat16);
      CHECK(operation.data == wire_data + own.begin);
      CHECK(operation.count == own.end - own.begin);
      if (ranks > 1 && operation.count > 0) CHECK(operation.in == wire_data + all.begin);
      for (Index k = all.begin; k < all.end; ++k)
        if (arena[static_cast<std::size_t>(k)] != (own.begin <= k && k < own.end ? 2 * rounded : third))
          FAIL("element " << k << " of " << ranks << " ranks");
    }
    std::size_t bytes = 0;
    for (auto const& times : buckets.times()) bytes += times.bytes;
    CHECK(bytes == static_cast<std::size_t>(size) * 2);
  }
}

TEST_CASE("a model of only such a table still has a bucket for the piggybacked scalar") {
  std::vector<float> arena(330);
  std::uint64_t bits[1] = {};
  kernel::TouchedRows const table{0, 10, 33, bits};
  parallel::GradientBuckets buckets(arena, 1024, std::span(&table, 1));
  Recorder comm{arena.data(), {}, {}};
  buckets.begin_step();
  buckets.finish(comm);
  CHECK(comm.started == std::vector<std::pair<Index, Index>>{{0, 0}});
  CHECK(comm.scalar_counts == std::vector<std::size_t>{3});
}

namespace {
/// One step of `layers` equal layers of `elements` whose backward takes `seconds` in all. @returns the fraction of the
/// overlappable communication that was overlapped.
double hidden_part(DelayedCommunicator communicator, int layers, Index elements, double seconds,
                   std::size_t bucket_bytes) {
  auto const size = static_cast<std::size_t>(layers * elements);
  std::unique_ptr<float[]> const arena(new float[size]);  // no rank uses it
  parallel::GradientBuckets buckets({arena.get(), size}, bucket_bytes);
  buckets.begin_step();
  auto const began = communicator.now;
  for (int layer = 0; layer < layers; ++layer) {
    communicator.compute(seconds / layers);
    buckets.ready(communicator, layer * elements, elements);
  }
  buckets.finish(communicator);
  CHECK(communicator.now - began == doctest::Approx(seconds + communicator.waited));
  // The first bucket is sent after the first layer's gradient, and the last layer's only after all computation.
  auto const last = communicator.latency_seconds + static_cast<double>(elements) * 4 * communicator.seconds_per_byte;
  auto const hideable = std::min(communicator.busy - last, seconds * (1 - 1.0 / layers));
  return (communicator.busy - communicator.waited) / hideable;
}
constexpr Index each = 1 << 18;  // 1 MiB per layer
constexpr int layers = 96;
}  // namespace

TEST_CASE("at least 95 % of the overlappable communication is hidden behind backward, with the chosen bucket size") {
  for (auto const& cost : {parallel::CollectiveCost{2e-6, 1e-10}, {50e-6, 1e-9}, {5e-6, 5e-10}}) {
    auto const whole = layers * each * 4 * cost.seconds_per_byte;
    for (double ratio : {0.25, 0.5, 0.9, 1.0, 1.1, 2.0, 4.0}) {  // backward over communication
      CAPTURE(cost.latency_seconds);
      CAPTURE(ratio);
      DelayedCommunicator const communicator{cost.latency_seconds, cost.seconds_per_byte};
      CHECK(hidden_part(communicator, layers, each, whole * ratio, cost.bucket_bytes(layers * each * 4)) >= 0.95);
    }
  }
}

TEST_CASE("buckets that are sent only at the end are not overlapped") {
  DelayedCommunicator const communicator{2e-6, 1e-9};
  CHECK(hidden_part(communicator, layers, each, 0.1, std::size_t{1} << 30) <= 1e-9);
}
