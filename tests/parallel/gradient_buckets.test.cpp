// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/gradient_buckets.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace lockstep;

namespace {
/// Writes down which ranges were started, and pretends that every other rank has the same numbers.
struct Recorder {
  float* arena;
  std::vector<std::pair<Index, Index>> started;  // begin, end
  std::vector<std::size_t> riders;
  bool finished = false;
  void start(comm::Piece& piece) {
    auto const begin = static_cast<float*>(piece.data) - arena;
    started.emplace_back(begin, begin + piece.count);
    riders.push_back(piece.rider.size());
    for (auto& x : piece.rider) x *= 2;
  }
  void progress() {}
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

TEST_CASE("buckets tile the arena in order, the first a quarter of the others, and one rider goes with the first") {
  Fixture f(1000, 256 * sizeof(float));
  f.buckets.rider()[0] = 3;
  f.buckets.finish(f.comm);
  CHECK(f.comm.started ==
        std::vector<std::pair<Index, Index>>{{0, 64}, {64, 320}, {320, 576}, {576, 832}, {832, 1000}});
  CHECK(f.comm.riders == std::vector<std::size_t>{2, 0, 0, 0, 0});
  CHECK(f.comm.finished);
  CHECK(f.buckets.rider()[0] == 6);
  std::size_t bytes = 0;
  for (auto const& t : f.buckets.times()) bytes += t.bytes;
  CHECK(bytes == 4000);
}

TEST_CASE("a bucket starts when it is full, and never before an earlier one") {
  Fixture f(192, 128 * sizeof(float));  // [0, 32) [32, 160) [160, 192)
  f.buckets.ready(f.comm, 160, 20);     // padded to 32: the last bucket is full, but its turn has not come
  CHECK(f.comm.started.empty());
  f.buckets.ready(f.comm, 0, 32);
  CHECK(f.comm.started.size() == 1);
  f.buckets.ready(f.comm, 32, 64);
  CHECK(f.comm.started.size() == 1);
  f.buckets.ready(f.comm, 96, 64);
  CHECK(f.comm.started.size() == 3);
  f.buckets.finish(f.comm);
  CHECK(f.comm.started.size() == 3);
}

TEST_CASE("a parameter that spans buckets starts all of them") {
  Fixture f(1024, 256 * sizeof(float));
  f.buckets.ready(f.comm, 0, 1024);
  CHECK(f.comm.started.size() == 5);
}

TEST_CASE("buckets with parameters that nobody used leave at the end, and the next step begins anew") {
  Fixture f(192, 128 * sizeof(float));
  for (int step = 1; step <= 3; ++step) {
    f.buckets.begin_step();
    f.buckets.ready(f.comm, 0, 16);
    CHECK(f.comm.started.size() == static_cast<std::size_t>(3 * (step - 1)));
    f.buckets.finish(f.comm);
    CHECK(f.comm.started.size() == static_cast<std::size_t>(3 * step));
  }
}

TEST_CASE("a model without parameters still has one bucket, for the rider") {
  Fixture f(0, 1 << 20);
  f.buckets.finish(f.comm);
  CHECK(f.comm.started.size() == 1);
  CHECK(f.comm.riders[0] == 2);
}

TEST_CASE("tables whose gradient goes by rows stay out") {
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
  CHECK(comm.started == std::vector<std::pair<Index, Index>>{{0, 64}, {64, 96}, {432, 480}, {512, 768}, {768, 1000}});
  CHECK(comm.riders == std::vector<std::size_t>{2, 0, 0, 0, 0});
}

TEST_CASE("a model that is one such table still has a bucket for the rider") {
  std::vector<float> arena(330);
  std::uint64_t bits[1] = {};
  kernel::TouchedRows const table{0, 10, 33, bits};
  parallel::GradientBuckets buckets(arena, 1024, std::span(&table, 1));
  Recorder comm{arena.data(), {}, {}};
  buckets.begin_step();
  buckets.finish(comm);
  CHECK(comm.started == std::vector<std::pair<Index, Index>>{{0, 0}});
  CHECK(comm.riders == std::vector<std::size_t>{2});
}
