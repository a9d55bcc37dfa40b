// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss/named_loss.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/pass.hpp>

using namespace lockstep;

TEST_CASE("in evaluation a loss is found by its name, and losses of one name add up") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 0);
  auto const returned = nn::named_loss(context, "kl", {6, 2});
  CHECK(returned.sum == 6);
  CHECK(returned.weight == 2);
  nn::named_loss(context, "rebuilt", {1, 1});
  nn::named_loss(context, "kl", {3, 1});
  auto& named = nn::detail::named_losses(context);
  CHECK(named.of("kl").sum == 9);
  CHECK(named.of("kl").weight == 3);
  CHECK(named.of("rebuilt").sum == 1);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(named.of("KL")),
      "train::LossPart: the model's loss of a batch has no part \"KL\"; it names \"kl\", \"rebuilt\". "
      "Name the part when the loss is computed, for every batch: nn::named_loss(context, \"KL\", loss)",
      ConfigError);
  named.clear();
  CHECK_THROWS_WITH_AS(static_cast<void>(named.of("kl")), doctest::Contains("it names none."), ConfigError);
}

TEST_CASE("in training losses of one name add up over a step, except in passes that are repeated") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  auto& losses = nn::detail::step_losses(context);
  losses.begin_step(context.stream());
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 0);
  CHECK(nn::named_loss(context, "kl", {6, 2}).sum == 6);
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 0);
  nn::named_loss(context, "rebuilt", {1, 1});
  nn::named_loss(context, "kl", {3, 1});
  REQUIRE(losses.names() == std::vector<std::string>{"kl", "rebuilt"});
  CHECK(losses[0].sum == 9);
  CHECK(losses[0].weight == 3);
  CHECK(losses[1].sum == 1);
  CHECK_THROWS_AS(static_cast<void>(nn::detail::named_losses(context).of("kl")), ConfigError);  // of evaluations

  losses.begin_step(context.stream());
  CHECK(losses[0].sum == 0);
  CHECK(losses[0].weight == 0);
  context.parts().tape.set_recomputing(true);
  nn::named_loss(context, "kl", {6, 2});
  context.parts().tape.set_recomputing(false);
  CHECK(losses[0].sum == 0);
}

TEST_CASE("a model with many tasks may name a loss of each") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  auto& losses = nn::detail::step_losses(context);
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 0);
  for (int i = 0; i < 256; ++i) nn::named_loss(context, "part " + std::to_string(i), {1.0 * i, 1});
  for (std::size_t i = 0; i < 256; ++i) CHECK(losses[i].sum == static_cast<double>(i));
  CHECK_THROWS_WITH_AS(nn::named_loss(context, "last", {1, 1}),
                       doctest::Contains("nn::named_loss: \"last\" is one name more than the 256 that a model may "
                                         "have; the first is \"part 0\""),
                       ConfigError);
  losses.begin_step(context.stream());
  for (std::size_t i = 0; i < 256; ++i) CHECK((losses[i].sum == 0 && losses[i].weight == 0));
}
