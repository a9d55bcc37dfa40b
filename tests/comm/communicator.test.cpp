// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/communicator.hpp>

#include <doctest/doctest.h>

#include <lockstep/comm/engine/connect.hpp>

using namespace lockstep;

namespace {

template <bool can_finish, class Rank>
struct Engine {
  Rank rank() const { return {}; }
  int size() const { return 1; }
  char const* name() const { return "engine"; }
  memory::Block allocate(std::size_t) { return {}; }
  void start(comm::CollectiveOperation&) {}
  void progress() {}
  void finish() requires can_finish {}
  void wait(comm::CollectiveOperation const&) {}
  Engine split(int, int) { return {}; }
};

}  // namespace

TEST_CASE("a user's engine is a communicator if it has every operation") {
  CHECK(comm::Communicator<Engine<true, int>>);
  CHECK_FALSE(comm::Communicator<Engine<false, int>>);
  CHECK_FALSE(comm::Communicator<Engine<true, double>>);
  CHECK_FALSE(comm::Communicator<int>);
}

TEST_CASE("a communicator is a memory resource for gradients") {
  CHECK(memory::MemoryResource<comm::AnyCommunicator>);
  CHECK(memory::MemoryResource<comm::ThreadCommunicator>);
  CHECK(memory::MemoryResource<comm::ProcessCommunicator>);
}
