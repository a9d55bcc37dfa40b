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

/// A policy of a user: one device, with the functions that have no default.
struct Own {
  static parallel::Place place(int) { return {}; }

  template <class Model, class Optimizer>
  class Session : public parallel::SessionBase<Session<Model, Optimizer>, parallel::Replica<Model>, Optimizer> {
   public:
    using DeviceReplica = parallel::Replica<Model>;

    Session(Own& policy, Model const& model, nn::ParameterLayout const& layout, std::span<float const> values)
        : replica_(model, layout, policy.place(0)), state_(layout) {
      replica_.set_values(values);
    }
    template <class Batch>
    void micro_step(std::span<Batch const> batches, parallel::MicroStep const& step) {
      stop_ = step.stop;
      replica_.run_shards(batches, step);
    }
    nn::Loss<HostSpace> update(Optimizer const& optimizer, parallel::UpdateSettings const& settings) {
      replica_.zero_unused();
      auto const loss = replica_.read_loss();
      state_.update(optimizer, replica_, loss, settings);
      return loss;
    }
    template <class F>
    void for_each_shard(F&& f) {
      replica_.for_shards(0, f);
    }
    void all_reduce(std::span<double>) override {}
    void synchronize_buffers() override {}
    void restore(parallel::SessionState& state) override { replica_.set_values(state.values()); }
    bool stop_requested() override { return stop_; }
    parallel::PhaseSeconds take_phases() override { return replica_.device().take_phases(); }
    parallel::SessionReport report() override { return {{}, {}, replica_.unused(replica_.used())}; }

   private:
    friend class parallel::SessionBase<Session, DeviceReplica, Optimizer>;
    [[nodiscard]] DeviceReplica& first() noexcept { return replica_; }
    [[nodiscard]] DeviceReplica const& first() const noexcept { return replica_; }

    DeviceReplica replica_;
    parallel::OptimizerState<Optimizer, HostSpace> state_;
    bool stop_ = false;
  };
};
}  // namespace

TEST_CASE("a policy of a user has a session with the defaults of the base") {
  using OwnSession = Own::Session<toy::Model, optim::SGD>;
  static_assert(parallel::is_session<OwnSession, Own, toy::Model, optim::SGD>());
  static_assert(!OwnSession::spans_ranks && !OwnSession::update_copies_parameters);
  Own policy;
  toy::Model model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> const start(static_cast<std::size_t>(layout.size()), session_cases::start_value);
  OwnSession session(policy, model, layout, start);
  session_cases::check_steps(session, layout, 0, 1, 1);
  CHECK_FALSE(session.skipped());
  CHECK_FALSE(session.shards_moments());
}

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
