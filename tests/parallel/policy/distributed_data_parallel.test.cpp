// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/tree_sum.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include "parallel/session_cases.hpp"
#include "parallel/table_model.hpp"

using namespace lockstep;

namespace {
using Policy = parallel::DistributedDataParallel<comm::AnyCommunicator>;
using Session = Policy::Session<toy::Model, optim::SGD>;
static_assert(parallel::Session<Session, Policy, toy::Model, optim::SGD>);
static_assert(Session::spans_ranks && !Session::update_copies_parameters);

/// Runs f(rank, policy, model, layout) on `ranks` thread ranks.
template <class Model = toy::Model, class F>
void on_ranks(int ranks, F f) {
  launch::Options options;
  options.threads = ranks;
  int const code = launch::run(options, [&](launch::World& world) {
    Policy policy{comm::connect(world), 64, 1};
    Model model;
    auto const layout = nn::ParameterLayout::of(model);
    f(world.rank, policy, model, layout);
    return 0;
  });
  CHECK(code == 0);
}
std::vector<float> start(nn::ParameterLayout const& layout, float value = session_cases::start_value) {
  return std::vector<float>(static_cast<std::size_t>(layout.size()), value);
}
}  // namespace

TEST_CASE("ranks step together by the gradient of the weighted mean, for any distribution of samples") {
  for (int ranks : {1, 2, 3, 4})
    on_ranks(ranks, [&](int rank, Policy& policy, toy::Model& model, nn::ParameterLayout const& layout) {
      Session session(policy, model, layout, start(layout));
      session_cases::check_steps(session, layout, rank, 1, ranks);
    });
}

TEST_CASE("the bits are DataParallel's over as many devices") {
  for (int shards : {1, 2, 3, 4, 5}) {
    toy::Model model;
    auto const layout = nn::ParameterLayout::of(model);
    parallel::DataParallel replicas{.devices = shards, .threads = 1};
    parallel::DataParallel::Session<toy::Model, optim::SGD> expected(replicas, model, layout, start(layout));
    auto train = [&](auto& session, int first, int count) {
      for (int step = 1; step <= 20; ++step) {
        auto const batches = session_cases::batches_of_shards(3 * shards + 1, shards, step);
        session.micro_step(std::span<toy::Batch const>(batches).subspan(static_cast<std::size_t>(first),
                                                                        static_cast<std::size_t>(count)),
                           {.key = 1});
        session.update(optim::SGD{.momentum = 0.9}, {.step = step, .learning_rate = 0.003});
      }
    };
    train(expected, 0, shards);
    std::vector<float> const bits(expected.values().begin(), expected.values().end());
    on_ranks(shards, [&](int rank, Policy& policy, toy::Model& m, nn::ParameterLayout const& l) {
      Session session(policy, m, l, start(l));
      train(session, rank, 1);
      CHECK(std::equal(bits.begin(), bits.end(), session.values().begin()));
    });
  }
}

TEST_CASE("all ranks start from rank 0's values, and the others need none") {
  on_ranks(3, [&](int rank, Policy& policy, toy::Model& model, nn::ParameterLayout const& layout) {
    auto values = start(layout, static_cast<float>(7 + rank));
    if (rank == 1) values.clear();
    Session session(policy, model, layout, values);
    CHECK(std::ssize(session.values()) == layout.size());
    for (auto v : session.values()) CHECK(v == 7);
  });
}

TEST_CASE("diverged replicas are found, by name") {
  CHECK_THROWS_WITH_AS(
      on_ranks(3,
               [&](int rank, Policy& policy, toy::Model& model, nn::ParameterLayout const& layout) {
                 Session session(policy, model, layout, start(layout));
                 session.check_replicas(1);
                 auto const& scale = layout.entries()[1];
                 if (rank == 2)
                   session.for_each_shard([&](int, auto& replica) { replica.value_data()[scale.offset] = 0.25f; });
                 session.check_replicas(2);
               }),
      doctest::Contains("after step 2 the parameter \"scale\" of rank 2 differs from rank 0's"), CollectiveMismatch);
}

TEST_CASE("diverged moments are found while the parameters are still equal") {
  CHECK_THROWS_WITH_AS(
      on_ranks(2,
               [&](int rank, Policy& policy, toy::Model& model, nn::ParameterLayout const& layout) {
                 Session session(policy, model, layout, start(layout));
                 auto const batches = session_cases::batches_of_shards(2, 1);
                 for (int step = 1; step <= 2; ++step) {
                   session.micro_step(std::span<toy::Batch const>(batches), {.key = 1});
                   session.update(optim::SGD{.momentum = rank == 0 ? 0.5 : 0.25}, {.step = step});
                   session.check_replicas(step);
                 }
               }),
      doctest::Contains("after step 2 the optimizer's moment 1 of \"scale\" of rank 1 differs from rank 0's"),
      CollectiveMismatch);
}

TEST_CASE("numbers are summed over ranks, and every rank gets the memory use of each") {
  on_ranks(3, [&](int rank, Policy& policy, toy::Model& model, nn::ParameterLayout const& layout) {
    Session session(policy, model, layout, start(layout));
    std::vector<double> numbers{1, static_cast<double>(rank)};
    session.all_reduce(numbers);
    CHECK(numbers == std::vector<double>{3, 3});
    auto const report = session.report();
    CHECK(report.peak_bytes_per_device.size() == 3);
    CHECK(report.peak_bytes_per_device[0] >= 3 * static_cast<std::size_t>(layout.size()) * sizeof(float));
    CHECK(report.buckets.size() >= 2);
  });
}

namespace {
std::atomic<int> models{0};
/// Every instance has a longer shape than the previous one.
struct Different {
  nn::Parameter p{{1 + models++}, {}};
  void visit(auto&& each) { each("p", p); }
  template <class Context>
  nn::LossOf<Context> forward(Context&, toy::Batch const&) const {
    return {};
  }
};
}  // namespace

TEST_CASE("ranks whose models differ are refused") {
  CHECK_THROWS_WITH_AS(on_ranks<Different>(2,
                                           [&](int, Policy& policy, Different& model, nn::ParameterLayout const&) {
                                             Different const same = model;
                                             auto const layout = nn::ParameterLayout::of(model);
                                             Policy::Session<Different, optim::SGD>(policy, same, layout,
                                                                                    start(layout));
                                           }),
                       doctest::Contains("has parameter p = float32 ["), CollectiveMismatch);
}

namespace {
struct Large {
  nn::Parameter p{{Index{10} << 18}, nn::Initializer::constant(1)};  // 10 MiB
  void visit(auto&& each) { each("p", p); }
  template <class Context>
  nn::LossOf<Context> forward(Context&, toy::Batch const&) const {
    return {};
  }
};
}  // namespace

TEST_CASE("by default buckets have the size that rank 0 has measured, and gradients are zero as before") {
  on_ranks<Large>(2, [&](int, Policy& policy, Large& model, nn::ParameterLayout const& layout) {
    policy.bucket_bytes = 0;
    Policy::Session<Large, optim::SGD> session(policy, model, layout, start(layout));
    auto const buckets = session.report().buckets;
    std::vector<double> bytes{static_cast<double>(buckets[0].bytes)};
    session.all_reduce(bytes);
    CHECK(bytes[0] == 2 * static_cast<double>(buckets[0].bytes));
    CHECK(buckets[0].bytes >= parallel::CollectiveCost::min_bucket_bytes / 4);
    CHECK(buckets[0].bytes <= parallel::CollectiveCost::max_bucket_bytes / 4);
    session.for_each_shard([&](int, auto& replica) {
      CHECK(std::all_of(replica.gradient_data(), replica.gradient_data() + layout.size(),
                        [](float g) { return g == 0; }));
    });
  });
}

TEST_CASE("a sharded optimizer stores only its part of the moments, and a whole moment can be gathered") {
  for (int ranks : {1, 3}) {
    CAPTURE(ranks);
    on_ranks<Large>(ranks, [&](int rank, Policy& policy, Large& model, nn::ParameterLayout const& layout) {
      using Sharing = Policy::Session<Large, optim::AdamW>;
      auto const peak = [](Sharing& session) { return session.report().peak_bytes_per_device; };
      std::vector<std::size_t> plain;
      {
        Sharing session(policy, model, layout, start(layout));
        plain = peak(session);
        CHECK_FALSE(session.shards_moments());
      }
      policy.shard_optimizer = true;
      Sharing session(policy, model, layout, start(layout));
      CHECK(session.shards_moments() == (ranks > 1));
      constexpr Index block = 1024, states = 2;
      auto const blocks = layout.size() / block;
      REQUIRE(blocks * block == layout.size());
      auto const saved = static_cast<std::size_t>((ranks - 1) * (blocks / ranks) * block * states) * sizeof(float);
      auto const sharded = peak(session);
      REQUIRE(sharded.size() == plain.size());
      for (std::size_t r = 0; r < plain.size(); ++r) CHECK(plain[r] - sharded[r] == saved);

      parallel::SessionState state(layout.size(), layout.buffer_size(), states);
      for (std::size_t i = 0; i < states && rank == 0; ++i)
        for (std::size_t at = 0; at < state.moments(i).size(); ++at)
          state.moments(i)[at] = static_cast<float>((at + i) % 65521);
      session.restore(state);
      for (std::size_t i = 0; i < states; ++i) {
        CHECK(std::ranges::equal(session.moment(i), state.moments(i)));
      }
      session.check_replicas(1);  // moments differ, and need not be equal
    });
  }
}

TEST_CASE("ranks of which only some shard the optimizer are refused") {
  CHECK_THROWS_WITH_AS(on_ranks(2,
                                [&](int rank, Policy& policy, toy::Model& model, nn::ParameterLayout const& layout) {
                                  policy.shard_optimizer = rank == 1;
                                  Session const session(policy, model, layout, start(layout));
                                }),
                       doctest::Contains("rank 1 has sharded optimizer = 1, but rank 0 has sharded optimizer = 0"),
                       CollectiveMismatch);
}

namespace {
using parallel::WireFormat;

struct Tables : table_model::Model {
  Tables() : Model(300, nn::GradientForm::dense) {}
};
/// Results of step(session, rank) for each of the ranks alone.
template <class Model, class Step>
std::vector<std::vector<float>> found_alone(int ranks, Model& model, nn::ParameterLayout const& layout,
                                            std::vector<float> const& values, Step const& step) {
  std::vector<std::vector<float>> found;
  for (int rank = 0; rank < ranks; ++rank) {
    parallel::SingleDevice single{.threads = 1};
    parallel::SingleDevice::Session<Model, optim::SGD> alone(single, model, layout, values);
    found.push_back(step(alone, rank));
  }
  return found;
}
/// Two micro-batches of one rank, and its session's gradients.
template <class Session>
std::vector<float> step(Session& session, int rank) {
  for (std::uint64_t m = 0; m < 2; ++m) {
    table_model::Batch batch;
    for (std::uint64_t k = 0; k < 200; ++k)
      batch.ids.push_back(static_cast<std::int32_t>(mix(static_cast<std::uint64_t>(rank), m, k) % 300));
    session.micro_step(std::span<table_model::Batch const>(&batch, 1), {.key = 1, .first = m == 0, .last = m == 1});
  }
  session.update(optim::SGD{}, {.step = 1});
  std::vector<float> gradients;
  session.for_each_shard(
      [&](int, auto& replica) { gradients.assign(replica.gradient_data(), replica.gradient_data() + replica.size()); });
  return gradients;
}
}  // namespace

TEST_CASE("on a 16-bit wire each rank rounds its accumulated micro-batches, and the sum is rounded once") {
  for (int ranks : {1, 2, 3, 4, 5}) {
    CAPTURE(ranks);
    on_ranks<Tables>(ranks, [&](int rank, Policy& policy, Tables& model, nn::ParameterLayout const& layout) {
      auto values = start(layout);
      nn::initialize(layout, 1, values.data());
      auto const found =
          found_alone(ranks, model, layout, values, [](auto& session, int of) { return step(session, of); });
      policy.gradient_wire = WireFormat::bfloat16;
      Policy::Session<Tables, optim::SGD> session(policy, model, layout, values);
      auto const summed = step(session, rank);
      auto const rounded = [](float x) { return float{bfloat16(x)}; };
      int wrong = 0, changed = 0;
      for (std::size_t i = 0; i < summed.size(); ++i) {
        auto const of = [&](int r) { return found[static_cast<std::size_t>(r)][i]; };
        wrong += summed[i] != rounded(tree_sum(ranks, [&](int r) { return rounded(of(r)); }));
        changed += summed[i] != rounded(tree_sum(ranks, of));
      }
      CHECK(wrong == 0);
      CHECK((changed > 0) == (ranks > 1));  // so the rounding of the parts is visible
      session.check_replicas(1);
      auto const report = session.report();
      std::size_t bytes = 0;
      for (auto const& bucket : report.buckets) bytes += bucket.bytes;
      auto const by_rows = static_cast<std::size_t>(nn::ParameterLayout::padded(9 * table_model::width));  // unused
      CHECK(bytes == (static_cast<std::size_t>(layout.size()) - by_rows) * 2);
      policy.gradient_wire = WireFormat::float32;
      Policy::Session<Tables, optim::SGD> plain(policy, model, layout, values);
      step(plain, rank);
      CHECK(report.peak_bytes_per_device[0] ==
            plain.report().peak_bytes_per_device[0] + static_cast<std::size_t>(layout.size()) * 2);
    });
  }
}

TEST_CASE("invalid wire formats, and different ones on ranks, are refused") {
  auto const with = [](WireFormat (*format)(int rank)) {
    return [format] {
      on_ranks(2, [&](int rank, Policy& policy, toy::Model& model, nn::ParameterLayout const& layout) {
        policy.gradient_wire = format(rank);
        Session const session(policy, model, layout, start(layout));
      });
    };
  };
  CHECK_THROWS_WITH_AS(with([](int rank) { return rank == 1 ? WireFormat::bfloat16 : WireFormat::float32; })(),
                       doctest::Contains("rank 1 has gradient wire = bf16, but rank 0 has gradient wire = fp32"),
                       CollectiveMismatch);
  CHECK_THROWS_WITH_AS(with([](int) { return WireFormat::float16; })(),
                       doctest::Contains("gradient_wire fp16 with activations that are not fp16: without a loss scale"),
                       ConfigError);
}

namespace {
struct Points {
  std::vector<float> numbers;  // [rows, 5]
  std::vector<std::uint8_t> labels;
  [[nodiscard]] Index rows() const { return std::ssize(labels); }
};
class Linear {
 public:
  void visit(auto&& each) { each("head", head_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, Points const& points) const {
    auto const x = context.input(TensorView<float const, 2, HostSpace>(points.numbers.data(), {points.rows(), 5}));
    return nn::cross_entropy(context, head_.forward(context, x),
                             TensorView<std::uint8_t const, 1, HostSpace>(points.labels.data(), {points.rows()}));
  }

 private:
  nn::Linear head_{5, 3};
};
struct Half : nn::InFloat16<Linear> {
  Half() : InFloat16(Linear()) {}
};
/// 64 points of numbers up to `large`, different on each rank.
Points points(int rank, float large) {
  auto const own = static_cast<std::uint64_t>(rank);
  Points all;
  for (std::uint64_t i = 0; i < 64 * 5; ++i) all.numbers.push_back(static_cast<float>(mix(i, own) % 100) / 100 * large);
  for (std::uint64_t i = 0; i < 64; ++i) all.labels.push_back(static_cast<std::uint8_t>(mix(i, own, 1) % 3));
  return all;
}
/// The scale after each of this many steps on points, with large ones on rank 1.
std::vector<float> scales(WireFormat format, float large, int steps) {
  std::vector<std::vector<float>> all(2);
  on_ranks<Half>(2, [&](int rank, Policy& policy, Half& model, nn::ParameterLayout const& layout) {
    policy.gradient_wire = format;
    std::vector<float> values(static_cast<std::size_t>(layout.size()));
    nn::initialize(layout, 1, values.data());
    Policy::Session<Half, optim::SGD> session(policy, model, layout, values);
    optim::LossScaler::State const scale{4096};
    session.for_each_shard([&](int, auto& replica) { replica.loss_scale().set(replica.device(), scale); });
    auto const own = points(rank, rank == 1 ? large : 0.01f);
    optim::LossScaler::State after = scale;
    for (int step = 1; step <= steps; ++step) {
      std::vector<float> const before(session.values().begin(), session.values().end());
      auto const skipped = after.skipped;
      session.micro_step(std::span<Points const>(&own, 1), {.key = 1});
      session.update(optim::SGD{}, {.step = step, .learning_rate = 1e-7});
      session.for_each_shard([&](int, auto& replica) { after = replica.loss_scale().get(replica.device()); });
      CHECK(std::equal(before.begin(), before.end(), session.values().begin()) == (after.skipped > skipped));
      session.check_replicas(step);
      all[static_cast<std::size_t>(rank)].push_back(after.scale);
    }
  });
  CHECK(all[0] == all[1]);
  return all[0];
}
}  // namespace

TEST_CASE("on a float16 wire gradients are rounded with their loss scale") {
  for (int ranks : {1, 2, 3})
    on_ranks<Half>(ranks, [&](int rank, Policy& policy, Half& model, nn::ParameterLayout const& layout) {
      std::vector<float> values(static_cast<std::size_t>(layout.size()));
      nn::initialize(layout, 1, values.data());
      auto const gradients = [&](auto& session, int of) {
        auto const own = points(of, 1);
        std::vector<float> out;
        session.for_each_shard([&](int, auto& replica) { replica.loss_scale().set(replica.device(), {1024}); });
        session.micro_step(std::span<Points const>(&own, 1), {.key = 1});
        session.update(optim::SGD{}, {.step = 1});
        session.for_each_shard(
            [&](int, auto& replica) { out.assign(replica.gradient_data(), replica.gradient_data() + replica.size()); });
        return out;
      };
      auto const found = found_alone(ranks, model, layout, values, gradients);
      policy.gradient_wire = WireFormat::float16;
      Policy::Session<Half, optim::SGD> session(policy, model, layout, values);
      auto const summed = gradients(session, rank);
      auto const rounded = [](float x) { return float{float16(x)}; };
      for (std::size_t i = 0; i < summed.size(); ++i)
        CHECK(summed[i] ==
              rounded(tree_sum(ranks, [&](int r) { return rounded(found[static_cast<std::size_t>(r)][i]); })));
      CHECK(*std::max_element(summed.begin(), summed.end()) > 1024);
    });
}

TEST_CASE("in float16 a sum that overflows the wire is skipped on all ranks, and the loss scale decreases") {
  auto const plain = scales(WireFormat::float32, 8, 12), wired = scales(WireFormat::float16, 8, 12);
  CHECK(plain.back() == 4096);
  CHECK(wired.front() == 2048);
  CHECK(wired[10] == wired[11]);
  CHECK(wired.back() >= 64);
  CHECK(scales(WireFormat::bfloat16, 8, 12) == plain);
}

TEST_CASE("buffers are each rank's own until rank 0's are shared") {
  for (int ranks : {1, 2, 3})
    on_ranks<session_cases::Counting>(
        ranks, [&](int rank, Policy& policy, session_cases::Counting& model, nn::ParameterLayout const& layout) {
          Policy::Session<session_cases::Counting, optim::SGD> session(policy, model, layout, start(layout));
          session_cases::check_buffers(session, rank, 1, ranks);
        });
}
