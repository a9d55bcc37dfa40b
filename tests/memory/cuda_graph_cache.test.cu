// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/cuda_graph_cache.cuh>

#include <doctest/doctest.h>

#include <stdexcept>

#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

namespace {

/// Work with a number: fills a byte with it. Counts how often the host has queued it.
class Numbered {
 public:
  explicit Numbered(memory::Stream<CudaSpace> stream) : stream_(stream) {}

  /// Whether it was executed without separate queueing by the host.
  bool run(int number, std::uint64_t memory = 0) {
    auto const before = queued;
    if (auto const* outcome = cache.run(stream_, number, memory, [&] { return queue(number); })) {
      CHECK(*outcome == 2 * number);
      return queued == before;
    }
    queue(number);
    return false;
  }
  /// Whether it can run without separate queueing by the host.
  bool prepare(int number) {
    auto const* outcome = cache.prepare(stream_, number, 0, [&] { return queue(number); });
    if (outcome) CHECK(*outcome == 2 * number);
    return outcome != nullptr;
  }
  [[nodiscard]] int value() const { return to_.values()[0]; }

  memory::CudaGraphCache<int, int> cache;
  int queued = 0;
  int waits = 0;  // how often the work will wait for the stream

 private:
  int queue(int number) {
    ++queued;
    if (waits > 0) --waits, stream_.synchronize();
    memory::check_cuda(cudaMemsetAsync(to_.view(1).data, number, 1, stream_.get()), "cudaMemsetAsync");
    return 2 * number;
  }
  memory::Stream<CudaSpace> stream_;
  OnDevice<signed char> to_{std::vector<signed char>{0}};
};

}  // namespace

TEST_CASE("work is recorded at its second call, and replayed from then on") {
  if (!lockstep_test::has_gpu("memory::CudaGraphCache")) return;
  memory::CudaStream const stream;
  Numbered work(stream.view());
  for (int round = 0; round < 4; ++round)
    for (int number : {3, 5}) {
      CHECK(work.run(number) == (round > 1));
      CHECK(work.value() == number);
    }
  CHECK(work.queued == 4);
  CHECK(work.cache.graphs() == 2);
}

TEST_CASE("prepared work is replayed from its first call on, and preparing it does not run it") {
  if (!lockstep_test::has_gpu("memory::CudaGraphCache")) return;
  memory::CudaStream const stream;
  Numbered work(stream.view());
  CHECK(work.prepare(3));
  CHECK(work.prepare(3));
  CHECK(work.queued == 1);
  CHECK(work.value() == 0);
  CHECK(work.run(3));
  CHECK(work.value() == 3);
  CHECK_FALSE(work.run(5));
  CHECK(work.prepare(5));  // also after a first call
  CHECK(work.run(5));
  work.waits = 1;
  CHECK_FALSE(work.prepare(7));
  CHECK(work.prepare(7));
}

TEST_CASE("if memory has moved, all work is recorded again") {
  if (!lockstep_test::has_gpu("memory::CudaGraphCache")) return;
  memory::CudaStream const stream;
  Numbered work(stream.view());
  for (int i = 0; i < 3; ++i) work.run(3), work.run(5);
  CHECK_FALSE(work.run(3, 1));
  CHECK(work.cache.graphs() == 1);
  CHECK(work.run(3, 1));
  CHECK(work.value() == 3);
}

TEST_CASE("the most recently used keys are kept") {
  if (!lockstep_test::has_gpu("memory::CudaGraphCache")) return;
  memory::CudaStream const stream;
  Numbered work(stream.view());
  auto const most = static_cast<int>(decltype(work.cache)::max_keys);
  for (int number = 0; number < most; ++number) work.run(number), work.run(number);
  CHECK(work.run(0));
  CHECK_FALSE(work.run(100));  // replaces key 1
  CHECK(work.run(0));
  CHECK(work.run(2));
  CHECK_FALSE(work.run(1));
  CHECK(work.value() == 1);
}

TEST_CASE("work that cannot be recorded is tried twice, and then executed directly") {
  if (!lockstep_test::has_gpu("memory::CudaGraphCache")) return;
  memory::CudaStream const stream;
  Numbered once(stream.view()), always(stream.view());
  always.waits = 1000;
  for (int i = 0; i < 5; ++i) {
    if (i == 1) once.waits = 1;
    CHECK(once.run(7) == (i > 2));
    CHECK(once.value() == 7);
    CHECK_FALSE(always.run(8));
    CHECK(always.value() == 8);
  }
  CHECK(always.queued == 5 + 2);
}

TEST_CASE("other errors of the work propagate") {
  if (!lockstep_test::has_gpu("memory::CudaGraphCache")) return;
  memory::CudaStream const stream;
  Numbered work(stream.view());
  work.run(1);
  auto const fail = [&] {
    return work.cache.run(stream.view(), 1, 0, []() -> int { throw std::runtime_error("no"); });
  };
  CHECK_THROWS_WITH_AS(static_cast<void>(fail()), "no", std::runtime_error);
  work.run(1);
  CHECK(work.run(1));
  CHECK(work.value() == 1);
}
