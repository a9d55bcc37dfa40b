// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/policy/data_parallel.hpp>

#include "parallel/session_cases.hpp"

using namespace lockstep;

namespace {
using Session = parallel::DataParallel::Session<toy::Model, optim::SGD>;
static_assert(parallel::Session<Session, parallel::DataParallel, toy::Model, optim::SGD>);
static_assert(Session::update_copies_parameters && !Session::spans_ranks);

struct Fixture {
  explicit Fixture(int devices) : policy{.devices = devices, .threads = 1} {}
  parallel::DataParallel policy;
  toy::Model model;
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  std::vector<float> start = std::vector<float>(static_cast<std::size_t>(layout.size()), session_cases::start_value);
};
}  // namespace

TEST_CASE("replicas step together by the gradient of the weighted mean, for any distribution of samples") {
  for (int devices : {1, 2, 3, 4, 5}) {
    Fixture f(devices);
    Session session(f.policy, f.model, f.layout, f.start);
    session_cases::check_steps(session, f.layout, 0, devices, devices);
    std::vector<std::vector<float>> values(static_cast<std::size_t>(devices));
    session.for_each_shard([&](int device, auto& replica) {
      values[static_cast<std::size_t>(device)].assign(replica.values().begin(), replica.values().end());
    });
    for (auto const& v : values) CHECK(v == values[0]);
  }
}

TEST_CASE("waiting time is counted once") {
  Fixture f(2);
  Session session(f.policy, f.model, f.layout, f.start);
  std::vector<toy::Batch> batches{session_cases::batches_of_shards(1, 1, 1)[0],
                                  session_cases::batches_of_shards(300'000, 1, 1)[0]};
  session.micro_step(std::span<toy::Batch const>(batches), {});
  static_cast<void>(session.take_phases());  // including the wait for the second device, which has more work
  CHECK(session.take_phases().communication == 0);
}

TEST_CASE("the first device stores the optimizer's state too") {
  Fixture f(3);
  Session session(f.policy, f.model, f.layout, f.start);
  auto const bytes = session.report().peak_bytes_per_device;
  REQUIRE(bytes.size() == 3);
  CHECK(bytes[0] > bytes[1]);
  CHECK(bytes[1] == bytes[2]);
}

TEST_CASE("a device whose parameters have diverged is named") {
  Fixture f(3);
  Session session(f.policy, f.model, f.layout, f.start);
  session_cases::check_step(session, f.layout, 4, 1, 0, 3, 3);
  session.check_replicas(1);
  auto const at = f.layout.entries()[1].offset;
  session.for_each_shard([&](int device, auto& replica) { replica.value_data()[at] += device == 2 ? 0.5f : 0.0f; });
  CHECK_THROWS_WITH_AS(
      session.check_replicas(2),
      "after step 2 the parameter \"scale\" of device 2 differs from device 0's; a device's parameters were "
      "changed separately, or a processor or memory failed: restart from an earlier checkpoint",
      CollectiveMismatch);
}

TEST_CASE("an exception on one device is thrown, and the next step works") {
  Fixture f(2);
  Session session(f.policy, f.model, f.layout, f.start);
  CHECK_THROWS_AS(session.for_each_shard([](int device, auto&) {
    if (device == 1) throw DataError("sample 7");
  }),
                  DataError);
  session_cases::check_step(session, f.layout, 4, 1, 0, 2, 2);
}

TEST_CASE("zero devices are refused") {
  Fixture f(0);
  CHECK_THROWS_AS(Session(f.policy, f.model, f.layout, f.start), ConfigError);
}

TEST_CASE("buffers are each device's own until the first device's are shared") {
  for (int devices : {1, 2, 3}) {
    session_cases::Counting model;
    auto const layout = nn::ParameterLayout::of(model);
    parallel::DataParallel policy{.devices = devices, .threads = 1};
    std::vector<float> const values(static_cast<std::size_t>(layout.size()), session_cases::start_value);
    parallel::DataParallel::Session<session_cases::Counting, optim::SGD> session(policy, model, layout, values);
    session_cases::check_buffers(session, 0, devices, devices);
  }
}
