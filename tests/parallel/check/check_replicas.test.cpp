// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/check/check_replicas.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>

using namespace lockstep;

namespace {
struct Model {
  nn::Parameter first{{3}, {}}, second{{2, 2}, {}}, third{{5}, {}};
  void visit(auto&& each) { each("first", first), each("second", second), each("third", third); }
};

/// Returns the error of each of `ranks` thread ranks after `change(values, rank)`; `values` are the model's, followed
/// by the optimizer state.
template <class Change>
std::string messages_of_all(int ranks, Change change) {
  launch::Options options;
  options.threads = ranks;
  std::vector<std::string> messages(static_cast<std::size_t>(ranks));
  launch::run(options, [&](launch::World& world) {
    auto communicator = comm::connect(world);
    Model model;
    auto const layout = nn::ParameterLayout::of(model);
    std::vector<float> values(2 * static_cast<std::size_t>(layout.size()), 0.5f);
    change(values, layout, world.rank);
    try {
      // The values, and one number of state.
      parallel::check_replicas(communicator, layout, {values.data(), values.data() + layout.size()}, 12);
    } catch (CollectiveMismatch const& error) {
      messages[static_cast<std::size_t>(world.rank)] = error.what();
    }
    return 0;
  });
  for (auto const& each : messages) CHECK(each == messages[0]);
  return messages[0];
}
float& last_of(std::vector<float>& values, nn::ParameterLayout const& layout, std::size_t i, Index arena = 0) {
  auto const& entry = layout.entries()[i];
  return values[static_cast<std::size_t>(arena * layout.size() + entry.offset + entry.size - 1)];
}
}  // namespace

TEST_CASE("replicas with equal bits pass, for any numbers and any padding between parameters") {
  for (int ranks : {1, 2, 3})
    CHECK(messages_of_all(ranks, [](auto& values, auto const& layout, int rank) {
            last_of(values, layout, 0) = std::numeric_limits<float>::quiet_NaN();
            (&last_of(values, layout, 0))[1] = static_cast<float>(rank);  // padding
          }) == "");
}

TEST_CASE("all ranks get the first differing parameter, the step and every rank that differs") {
  auto const messages = messages_of_all(4, [](auto& values, auto const& layout, int rank) {
    if (rank == 1 || rank == 3) last_of(values, layout, 1) = std::nextafter(0.5f, 1.0f);
    if (rank == 2) last_of(values, layout, 2) = 7;
  });
  CHECK(messages.starts_with("after step 12 the parameter \"second\" of rank 1, rank 3 differs from rank 0's"));
  CHECK(messages.find("took a step with other options") != messages.npos);
}

TEST_CASE("the optimizer state is compared too, after the parameters") {
  auto const messages = messages_of_all(3, [](auto& values, auto const& layout, int rank) {
    if (rank == 2) last_of(values, layout, 1, 1) = std::nextafter(0.5f, 1.0f);
  });
  CHECK(messages.starts_with("after step 12 the optimizer's moment 1 of \"second\" of rank 2 differs from rank 0's"));
}

TEST_CASE("zeros of different sign are different bits, and rank 0 itself may differ") {
  auto const messages = messages_of_all(
      3, [](auto& values, auto const& layout, int rank) { last_of(values, layout, 2) = rank == 0 ? -0.0f : 0.0f; });
  CHECK(messages.starts_with("after step 12 the parameter \"third\" of rank 1, rank 2 differs from rank 0's"));
}
