// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/engine/any_communicator.hpp>

#include <doctest/doctest.h>

#include <lockstep/comm/engine/self_communicator.hpp>

#include <string>
#include <type_traits>
#include <utility>

using namespace lockstep;

namespace {

/// Records its calls.
struct Spy {
  std::string* printed;
  int rank() const { return 3; }
  int size() const { return 5; }
  char const* name() const { return "spy"; }
  memory::Block allocate(std::size_t bytes) { return say("allocate " + std::to_string(bytes)), memory::Block{}; }
  void start(comm::CollectiveOperation& operation) {
    say("start " + std::to_string(static_cast<int>(operation.collective)) + " " + std::to_string(operation.count) +
        " " + lockstep::name(operation.type) + " " + std::to_string(operation.root));
  }
  void progress() { say("progress"); }
  void wait(comm::CollectiveOperation const& operation) { say("wait " + std::to_string(operation.count)); }
  void finish() { say("finish"); }
  Spy split(int color, int key) { return say("split " + std::to_string(color) + " " + std::to_string(key)), *this; }
  void say(std::string const& what) { *printed += what + ";"; }
};
static_assert(comm::Communicator<Spy>);

}  // namespace

TEST_CASE("every call reaches the engine with its arguments") {
  std::string printed;
  comm::AnyCommunicator any(Spy{&printed});
  CHECK(any.rank() == 3);
  CHECK(any.size() == 5);
  CHECK(std::string(any.name()) == "spy");
  comm::CollectiveOperation operation;
  operation.count = 9;
  auto const block = any.allocate(64);
  any.start(operation);
  any.progress();
  any.wait(operation);
  any.finish();
  auto part = any.split(4, 6);
  part.progress();
  CHECK(printed == "allocate 64;start 0 9 float32 0;progress;wait 9;finish;split 4 6;progress;");
  printed.clear();
  any.broadcast(nullptr, 7, 2);
  any.all_gather(nullptr, nullptr, 8);
  any.barrier();
  CHECK(printed == "start 3 7 uint8 2;finish;start 2 8 uint8 0;finish;start 4 0 uint8 0;finish;");
}

TEST_CASE("it can be moved and not copied") {
  static_assert(std::is_nothrow_move_constructible_v<comm::AnyCommunicator>);
  static_assert(!std::is_copy_constructible_v<comm::AnyCommunicator>);
  comm::AnyCommunicator any(comm::SelfCommunicator{});
  comm::AnyCommunicator moved(std::move(any));
  CHECK(moved.size() == 1);
}
