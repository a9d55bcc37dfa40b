// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/replica_group.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>

#include "nn/toy.hpp"

using namespace lockstep;

namespace {

/// The batch's first input says what a replica does: 1 joins the exchange, 2 fails instead, 3 calls another exchange, 0
/// skips it. The loss is a sum over all participants.
class Model {
 public:
  void visit(auto&& each) { each("scale", scale_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, toy::Batch const& batch) const {
    auto const y = toy::multiply(context, scale_, toy::inputs(context, batch));
    auto const what = batch.inputs.empty() ? 1 : batch.inputs[0];
    if (what == 2) throw DataError("sample 7 is damaged");
    if (what == 3) {
      std::vector<char> bytes(9);
      context.group()->all_gather(bytes.data(), bytes.data() + 3, 3);
    }
    if (what == 1) {
      auto* const group = context.group();
      REQUIRE(group);
      auto const size = group->size();
      std::vector<Index> all(static_cast<std::size_t>(size));
      group->all_gather(10 * group->rank(), all.data());
      for (int r = 0; r < size; ++r) CHECK(all[static_cast<std::size_t>(r)] == 10 * r);
      std::vector<double> in(2 * all.size()), sum(2);
      std::iota(in.begin(), in.end(), group->rank());
      group->reduce_scatter(in.data(), sum.data(), 2);
      for (int k = 0; k < 2; ++k)  // sums of r + 2 rank + k over all r
        CHECK(sum[static_cast<std::size_t>(k)] == size * (2 * group->rank() + k) + size * (size - 1) / 2);
    }
    return toy::squared_error(context, y, batch.targets);
  }

 private:
  nn::Parameter scale_{{1}, nn::Initializer::constant(0.5)};
};

struct Fixture {
  explicit Fixture(int devices)
      : policy{.devices = devices, .threads = 1}, values(static_cast<std::size_t>(layout.size()), 0.5f) {}
  void step(std::vector<double> const& what) {
    std::vector<toy::Batch> batches;
    for (double const x : what) batches.push_back({{x}, {0}});
    session.micro_step(std::span<toy::Batch const>(batches), {});
    session.update(optim::SGD{}, {.step = 1, .learning_rate = 0.1});
  }
  parallel::DataParallel policy;
  Model model;
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  std::vector<float> values;
  parallel::DataParallel::Session<Model, optim::SGD> session{policy, model, layout, values};
};

}  // namespace

TEST_CASE("replicas exchange numbers within a pass") {
  for (int devices : {2, 3, 5}) {
    Fixture f(devices);
    for (int i = 0; i < 3; ++i) f.step(std::vector<double>(static_cast<std::size_t>(devices), 1.0));
    CHECK(f.session.take_phases().communication > 0);
  }
}

TEST_CASE("a failing replica ends the others' wait with its error, and the next step works") {
  Fixture f(3);
  for (std::size_t which : {0u, 1u, 2u}) {
    std::vector<double> what(3, 1.0);
    what[which] = 2;
    CHECK_THROWS_WITH_AS(f.step(what), doctest::Contains("sample 7 is damaged"), DataError);
    f.step({1, 1, 1});
  }
}

TEST_CASE("a replica that skips an exchange is an error, not a deadlock") {
  Fixture f(3);
  for (std::size_t which : {0u, 1u, 2u}) {
    std::vector<double> what(3, 1.0);
    what[which] = 0;
    CHECK_THROWS_WITH_AS(f.step(what), doctest::Contains("all devices must run the same layers"), CollectiveMismatch);
    f.step({1, 1, 1});
    f.step({0, 0, 0});
  }
}

TEST_CASE("replicas in different exchanges are reported with both names") {
  Fixture f(2);
  CHECK_THROWS_WITH_AS(f.step({1, 3}),
                       doctest::Contains("device 1 has reached an exchange (all_gather) of 3 bytes and device 0 to an "
                                         "exchange (all_gather) of 8 bytes"),
                       CollectiveMismatch);
  f.step({1, 1});
}

TEST_CASE("a single replica has no group") {
  struct Alone final : nn::ReplicaGroup {
    int size() const noexcept override { return 1; }
    int rank() const noexcept override { return 0; }
    void all_gather(void const*, void*, std::size_t) override {}
    void all_gather(Index, Index*) override {}
    void reduce_scatter(float const*, float*, Index) override {}
    void reduce_scatter(double const*, double*, Index) override {}
  } alone;
  nn::InReplicaGroup of;
  of.bind_group(&alone);
  CHECK_FALSE(of.group());
  CHECK(of.take_exchange_seconds() == 0);
  of.bind_group(nullptr);
  CHECK_FALSE(of.group());
}
