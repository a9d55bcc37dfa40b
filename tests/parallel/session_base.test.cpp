// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/session_base.hpp>

#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>

#include "parallel/session_cases.hpp"

using namespace lockstep;

namespace {
template <class Optimizer>
using Session = parallel::DataParallel::Session<session_cases::Counting, Optimizer>;

struct Fixture {
  parallel::DataParallel policy{.devices = 3, .threads = 1};
  session_cases::Counting model;
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  std::vector<float> start = std::vector<float>(static_cast<std::size_t>(layout.size()), session_cases::start_value);
};
}  // namespace

TEST_CASE("values and buffers are set in all replicas") {
  Fixture f;
  Session<optim::SGD> session(f.policy, f.model, f.layout, f.start);
  std::vector<float> values(f.start.size(), 2), buffers{7};
  session.set_values(values);
  session.set_buffers(buffers);
  std::atomic<int> replicas = 0;
  session.for_each_shard([&](int, auto& replica) {
    CHECK(replica.values()[0] == 2);
    CHECK(replica.buffers()[0] == 7);
    ++replicas;
  });
  CHECK(replicas == 3);
  CHECK(session.values()[0] == 2);
  CHECK(session.buffers()[0] == 7);
}

TEST_CASE("the kind names the optimizer and its states") {
  Fixture f;
  Session<optim::SGD> const plain(f.policy, f.model, f.layout, f.start);
  CHECK(plain.kind().states == static_cast<std::size_t>(optim::SGD::states));
  CHECK_FALSE(plain.kind().averages);
  CHECK_FALSE(plain.kind().scales_loss);
  CHECK(plain.kind().on_host);
  using Averaged = optim::Averaged<optim::AdamW>;
  Session<Averaged> const averaged(f.policy, f.model, f.layout, f.start);
  CHECK(averaged.kind().averages);
  CHECK(averaged.kind().states == static_cast<std::size_t>(optim::AdamW::states) + 1);
}

TEST_CASE("devices whose loss is not finite are marked") {
  Fixture f;
  Session<optim::SGD> session(f.policy, f.model, f.layout, f.start);
  auto batches = session_cases::batches_of_shards(3, 3);
  batches[1].targets[0] = std::numeric_limits<double>::infinity();
  session.micro_step(std::span<toy::Batch const>(batches), {.key = 1});
  std::vector<double> marks(3, 0.0);
  session.mark_not_finite(marks);
  CHECK(marks == std::vector<double>{0, 1, 0});
}

TEST_CASE("each device records into its own timeline until the recording ends") {
  Fixture f;
  Session<optim::SGD> session(f.policy, f.model, f.layout, f.start);
  auto const batches = session_cases::batches_of_shards(3, 3);
  auto const step = [&] { session.micro_step(std::span<toy::Batch const>(batches), {.key = 1}); };
  std::vector<Timeline> timelines(3);
  std::vector<Timeline*> devices;
  for (auto& timeline : timelines) devices.push_back(&timeline), timeline.clear();
  session.trace(devices, nullptr);
  step();
  session.trace({}, nullptr);
  for (auto const& timeline : timelines) CHECK(timeline.size() > 0);
  auto const recorded = timelines[0].size();
  step();
  CHECK(timelines[0].size() == recorded);
}
