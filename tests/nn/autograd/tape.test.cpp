// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/tape.hpp>

#include <string>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
using Order = std::string;
using Tape = nn::Tape<Order>;

/// Counts what runs.
struct Counter {
  struct Running {};
  int entered = 0, left = 0;
  Running enter(std::size_t) {
    ++entered;
    return {};
  }
  void leave(Running) { ++left; }
};
Tape::Entry entry(Tape& tape, char letter) {
  return {tape.make<char>(letter), [](void* self, Order& order) { order += *static_cast<char*>(self); }};
}
}  // namespace

TEST_CASE("closures run once, last one first, from an index on") {
  Tape tape;
  Counter counter;
  for (char const letter : {'a', 'b', 'c'}) tape.push(entry(tape, letter));
  CHECK(tape.size() == 3);
  Order order;
  tape.run(1, order, &counter);
  CHECK(order == "cb");
  CHECK(counter.entered == 2);
  CHECK(counter.left == 2);
  CHECK(tape.size() == 1);
  tape.run(0, order, static_cast<Counter*>(nullptr));
  CHECK(order == "cba");
  CHECK(tape.size() == 0);
}

TEST_CASE("a rewind forgets the closures and recomputations after its mark") {
  Tape tape;
  Order order;
  tape.push(entry(tape, 'a'));
  CHECK(tape.push_recompute(entry(tape, 'x')) == 0);
  auto const mark = tape.mark();
  tape.push(entry(tape, 'b'));
  CHECK(tape.push_recompute(entry(tape, 'y')) == 1);
  tape.run_recompute(1, order);
  CHECK(order == "y");
  tape.rewind(mark);
  CHECK(tape.size() == 1);
  CHECK(tape.push_recompute(entry(tape, 'z')) == 1);
  tape.run_recompute(1, order);
  tape.run_recompute(0, order);
  CHECK(order == "yzx");
}

TEST_CASE("copies live until the tape is cleared, which ends a recomputation") {
  Tape tape;
  int const numbers[] = {3, 1, 2};
  auto const copy = tape.copy(std::span<int const>(numbers));
  CHECK(copy.data() != numbers);
  CHECK(copy[2] == 2);
  CHECK_FALSE(tape.set_recomputing(true));
  CHECK(tape.recomputing());
  tape.push(entry(tape, 'a'));
  tape.clear();
  CHECK(tape.size() == 0);
  CHECK_FALSE(tape.recomputing());
}
