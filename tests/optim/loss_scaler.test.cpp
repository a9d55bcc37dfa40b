// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/loss_scaler.hpp>

#include <doctest/doctest.h>

using namespace lockstep;
using optim::LossScaler;

TEST_CASE("the scale grows after a number of consecutive good steps, and shrinks with every skipped step") {
  LossScaler const scaler{.start = 64, .growth = 4, .growth_interval = 3};
  auto state = scaler.begin();
  CHECK(state == LossScaler::State{64, 0, 0});
  state = scaler.after(scaler.after(state, true), true);
  CHECK(state == LossScaler::State{64, 2, 0});
  CHECK(scaler.after(state, true) == LossScaler::State{256, 0, 0});
  state = scaler.after(state, false);
  CHECK(state == LossScaler::State{32, 0, 1});
  for (int i = 0; i < 2; ++i) state = scaler.after(state, true);
  CHECK(state == LossScaler::State{32, 2, 1});  // its count restarted
  CHECK(scaler.after(state, true) == LossScaler::State{128, 0, 1});
}

TEST_CASE("the defaults equal PyTorch's GradScaler") {
  LossScaler const scaler;
  auto state = scaler.begin();
  CHECK(state.scale == 65536);
  for (int i = 0; i < 1999; ++i) state = scaler.after(state, true);
  CHECK(state.scale == 65536);
  CHECK(scaler.after(state, true).scale == 131072);
  CHECK(scaler.after(state, false).scale == 32768);
}

TEST_CASE("the scale stays between 1 and 2^64") {
  LossScaler const scaler{.start = 2, .growth = 0x1p40, .growth_interval = 1};
  auto state = scaler.begin();
  for (int i = 1; i <= 3; ++i) {
    state = scaler.after(state, false);
    CHECK(state == LossScaler::State{1, 0, i});
  }
  for (int i = 0; i < 3; ++i) state = scaler.after(state, true);
  CHECK(state.scale == 0x1p64f);
}

TEST_CASE("numbers that are not powers of two, or out of range, are refused by name") {
  CHECK_NOTHROW(LossScaler{}.check());
  CHECK_NOTHROW((LossScaler{.start = 1, .growth = 1, .backoff = 0.25, .growth_interval = 1}.check()));
  CHECK_NOTHROW(LossScaler{.growth_interval = 1'000'000'000}.check());
  CHECK_THROWS_AS(LossScaler{.growth_interval = 1'000'000'001}.check(), ConfigError);
  auto const refused = [](LossScaler const& scaler, char const* sentence) {
    CHECK_THROWS_WITH_AS(scaler.check(), doctest::Contains(sentence), ConfigError);
  };
  refused({.start = 1000}, "start is 1000; it must be a power of two from 1 to 2^64");
  refused({.start = 0.5}, "start is 0.5");
  refused({.start = 0}, "start is 0;");
  refused({.growth = 0.5}, "growth is 0.5");
  refused({.growth = 3}, "growth is 3;");
  refused({.backoff = 1}, "backoff is 1; it must be a power of two from 2^-64 to 1/2");
  refused({.backoff = 0}, "backoff is 0;");
  refused({.growth_interval = 0}, "growth_interval is 0 steps; it must be from 1 to 1000000000");
}
