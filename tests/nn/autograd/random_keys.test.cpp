// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/random_keys.hpp>

#include <doctest/doctest.h>

#include <lockstep/core/mix.hpp>
#include <lockstep/core/thread_pool.hpp>

using namespace lockstep;

TEST_CASE("each operation has its own key, and a rewind repeats the keys") {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  nn::RandomKeys<HostSpace> keys;
  keys.set(stream, 7);
  auto const first = keys.next(10), second = keys.next(10);
  CHECK(first.key == mix(std::uint64_t{7}, std::uint64_t{1}));
  CHECK(second.key == mix(std::uint64_t{7}, std::uint64_t{2}));
  CHECK(first.dropped == 10);
  CHECK(keys.operations() == 2);
  keys.rewind(1);
  CHECK(keys.next(10).key == second.key);
  keys.rewind();
  CHECK(keys.next(10).key == first.key);
  keys.rewind();
  keys.set(stream, 8);
  CHECK(keys.next(10).key != first.key);
}

TEST_CASE("keys of whole micro-batches differ by the operation and by the first sample's position") {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  nn::RandomKeys<HostSpace> keys;
  keys.set(stream, 7, 12);
  auto const first = keys.next_of_batch();
  CHECK(first == mix(mix(std::uint64_t{7}, std::uint64_t{1}), std::uint64_t{12}));
  CHECK(keys.next_of_batch() != first);
  keys.rewind();
  keys.set(stream, 7, 13);
  CHECK(keys.next_of_batch() != first);
  keys.rewind();
  keys.set(stream, 7, 12);
  CHECK(keys.next_of_batch() == first);
}
