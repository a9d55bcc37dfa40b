// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/session.hpp>

#include <span>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
struct Policy {};
struct Model {};
struct Optimizer {};

/// The functions that have no default.
class Least : public parallel::AnySession {
 public:
  Least() : AnySession({.states = 2, .optimizer = "least"}) {}
  void all_reduce(std::span<double>) override {}
  std::span<float const> values() const override { return values_; }
  std::span<float const> buffers() const override { return {}; }
  void set_values(std::span<float const> values) override { values_.assign(values.begin(), values.end()); }
  void set_buffers(std::span<float const>) override {}
  void synchronize_buffers() override {}
  std::span<float const> moment(std::size_t) override { return {}; }
  void restore(parallel::SessionState&) override {}
  bool stop_requested() override { return false; }
  bool skipped() override { return false; }
  double gradient_norm() override { return 0; }
  void mark_not_finite(std::span<double>) override {}
  optim::LossScaler::State loss_scale() override { return {}; }
  void set_loss_scale(optim::LossScaler::State const&) override {}
  std::string choose_gemm_algorithms(int) override { return {}; }
  void set_gemm_algorithms(std::string const&) override {}
  void trace(std::span<Timeline* const>, Timeline*) override {}
  parallel::PhaseSeconds take_phases() override { return {}; }
  parallel::DeviceWork take_work() override { return {}; }
  parallel::SessionReport report() override { return {}; }

 private:
  std::vector<float> values_{1, 2};
};

/// A session of an own policy.
struct Whole : Least {
  struct DeviceReplica {
    using Space = HostSpace;
  };
  static constexpr bool spans_ranks = false, update_copies_parameters = false;
  Whole(Policy&, Model const&, nn::ParameterLayout const&, std::span<float const>) {}
  template <class Batch>
  void micro_step(std::span<Batch const>, parallel::MicroStep const&) {}
  template <class Batch>
  Index rehearse(std::span<Batch const>, std::span<parallel::MicroStep const>, parallel::Rehearse) {
    return 0;
  }
  nn::Loss<HostSpace> update(Optimizer const&, parallel::UpdateSettings const&) { return {}; }
  template <class F>
  void for_each_shard(F&&) {}
};
template <class S>
inline constexpr bool is_session = parallel::Session<S, Policy, Model, Optimizer>;
static_assert(is_session<Whole>);

struct NoUpdate : Whole {
  using Whole::Whole;
  void update(Optimizer const&, parallel::UpdateSettings const&) {}  // returns no loss
};
struct NoVisit : Whole {
  using Whole::Whole;
  void for_each_shard() {}
};
struct NoMicroStep : Whole {
  using Whole::Whole;
  void micro_step(std::vector<int> const&) {}
};
struct NoRehearsal : Whole {
  using Whole::Whole;
  void rehearse() {}
};
struct NoConstants : Least {
  using DeviceReplica = Whole::DeviceReplica;
  NoConstants(Policy&, Model const&, nn::ParameterLayout const&, std::span<float const>) {}
  template <class Batch>
  void micro_step(std::span<Batch const>, parallel::MicroStep const&) {}
  template <class Batch>
  Index rehearse(std::span<Batch const>, std::span<parallel::MicroStep const>, parallel::Rehearse) {
    return 0;
  }
  nn::Loss<HostSpace> update(Optimizer const&, parallel::UpdateSettings const&) { return {}; }
  template <class F>
  void for_each_shard(F&&) {}
};
struct NoConstructor : Whole {};
static_assert(!is_session<NoUpdate> && !is_session<NoVisit> && !is_session<NoMicroStep> && !is_session<NoRehearsal>);
static_assert(!is_session<NoConstants> && !is_session<NoConstructor> && !is_session<int>);
static_assert(!parallel::ImplementsAnySession<parallel::AnySession>);
}  // namespace

TEST_CASE("a session of one process and one replica needs no broadcast, agreement or comparison") {
  Least session;
  std::string text = "kept";
  session.broadcast(text, 0);
  CHECK(text == "kept");
  CHECK_NOTHROW(session.check_replicas(3));
  CHECK_FALSE(session.shards_moments());
  CHECK(session.kind().states == 2);
  CHECK(session.kind().optimizer == "least");
  CHECK(session.kind().on_host);
}
