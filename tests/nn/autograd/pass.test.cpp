// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/pass.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "nn/autograd/context_fixture.hpp"
#include "nn/toy.hpp"

using namespace lockstep;
using Fixture = toy::ContextFixture;

TEST_CASE("a restarted micro-batch, over the previous gradients, gives the bits of a single one") {
  Fixture f;
  auto const add_up = [&](bool again) {
    nn::Pass(f.context).begin_step();
    for (int micro = 0; micro < 2; ++micro) {
      std::vector<std::uint8_t> const before(f.context.parameters().gradients().written().begin(),
                                             f.context.parameters().gradients().written().end());
      auto const gradients = f.gradients;
      f.loss();
      if (again) {
        nn::Pass(f.context).backward({});
        nn::Pass(f.context).restart_micro_batch();
        f.context.parameters().gradients().set_written(before);
        std::copy(gradients.begin(), gradients.end(), f.gradients.begin());
        f.model.forward(f.context, f.batch);
      }
      nn::Pass(f.context).backward({});
    }
    return f.scale_gradient();
  };
  CHECK(add_up(true) == add_up(false));

  auto const moves = nn::Pass(f.context).memory_version();
  f.loss();
  CHECK(nn::Pass(f.context).memory_version() == moves);
  f.batch = {std::vector<double>(300'000, 0.5), std::vector<double>(300'000, 0)};
  f.loss();
  CHECK(nn::Pass(f.context).memory_version() > moves);
}

namespace {

/// A clock that advances by one at each read.
struct Ticks {
  double now = 0;
  static double next(void* self) { return static_cast<Ticks*>(self)->now++; }
};

std::vector<Span> of_kind(Timeline const& timeline, Span::Kind kind) {
  std::vector<Span> out;
  for (auto const& span : timeline)
    if (span.kind == kind) out.push_back(span);
  return out;
}

}  // namespace

TEST_CASE("each operation's forward ends at its registration of backward, and both are traced") {
  Fixture f;
  Timeline timeline(1000);
  Ticks ticks;
  nn::Pass(f.context).trace(&timeline, &Ticks::next, &ticks);
  nn::Pass(f.context).begin_step();
  f.loss();  // scale x, its scale, their sum
  nn::Pass(f.context).end_forward();
  std::vector<Index> notified;
  nn::Pass(f.context).backward({[](void* self, Index offset, Index count) {
                                  for (auto number : {offset, count})
                                    static_cast<std::vector<Index>*>(self)->push_back(number);
                                },
                                &notified});
  CHECK(notified == std::vector<Index>{f.scale_at, 1});

  auto const forward = of_kind(timeline, Span::Kind::forward), backward = of_kind(timeline, Span::Kind::backward);
  int const scale = 1;           // the ordinal
  REQUIRE(forward.size() == 4);  // with the loss, which registers nothing
  for (std::size_t i = 0; i < forward.size(); ++i) {
    CHECK(forward[i].number == static_cast<Index>(i));
    CHECK(forward[i].end == forward[i].begin + 1);
    if (i > 0) CHECK(forward[i].begin == forward[i - 1].end);
  }
  CHECK(forward[0].amount == 2 * sizeof(double));
  for (std::size_t const i : {0u, 1u}) {
    CHECK(forward[i].first == scale);
    CHECK(forward[i].last == scale);
  }
  CHECK(forward[2].first == -1);
  CHECK(std::string(forward[0].name) == forward[1].name);
  CHECK(std::string(forward[0].name) != forward[2].name);
  CHECK(std::string(forward[3].name).empty());

  REQUIRE(backward.size() == 3);
  for (std::size_t i = 0; i < backward.size(); ++i) {
    CHECK(backward[i].number == static_cast<Index>(2 - i));
    CHECK(std::string(backward[i].name) == forward[2 - i].name);
  }
  auto const leaves = of_kind(timeline, Span::Kind::phase);  // scale's gradient, from within its first use's backward
  REQUIRE(leaves.size() == 1);
  CHECK(std::string(leaves[0].name) == "gradients ready");
  CHECK(leaves[0].begin > backward[2].begin);
  CHECK(leaves[0].end < backward[2].end);

  f.loss();
  auto const twice = of_kind(timeline, Span::Kind::forward);
  REQUIRE(twice.size() == 7);  // the loss has not ended
  for (std::size_t i = 0; i < 3; ++i) CHECK(twice[4 + i].number == static_cast<Index>(i));

  auto const written = timeline.size();
  nn::Pass(f.context).trace(nullptr, nullptr, nullptr);
  f.loss();
  nn::Pass(f.context).backward({});
  CHECK(timeline.size() == written);
}

TEST_CASE("registrations of backward without work in between are one operation") {
  Fixture f;
  Timeline timeline(1000), no_room(0);
  Ticks ticks;
  nn::Parameter first{{1}, {}}, second{{1}, {}}, third{{1}, {}};
  first.ordinal = 0, second.ordinal = 1, third.ordinal = 2;
  f.context.parameters().bind(f.values.data(), f.gradients.data(), 3);
  nn::Pass(f.context).begin_step();
  for (auto* to : {&no_room, &timeline, &timeline}) {  // the second time after other spans
    nn::Pass(f.context).trace(to, &Ticks::next, &ticks);
    nn::Pass(f.context).begin_micro_batch(nn::Mode::training, 1);
    auto const x = f.context.variable<1>({3}), y = f.context.variable<1>({3});
    f.context.on_backward(x, std::tie(std::as_const(second)), [](auto&) {});
    f.context.on_backward(y, std::tie(std::as_const(first)), [](auto&) {});
    f.context.on_backward(y, std::tie(std::as_const(third)), [](auto&) {});
    nn::Pass(f.context).backward({});
  }
  CHECK(no_room.size() == 0);
  auto const forward = of_kind(timeline, Span::Kind::forward), backward = of_kind(timeline, Span::Kind::backward);
  REQUIRE(forward.size() == 2);
  REQUIRE(backward.size() == 6);
  for (auto const& span : forward) CHECK(span.amount == 6 * sizeof(double));
  for (auto const* spans : {&forward, &backward})
    for (auto const& span : *spans) {
      CHECK(span.number == 0);
      CHECK(span.first == 0);
      CHECK(span.last == 2);
    }
}

TEST_CASE("recomputation is traced within the backward that needs it") {
  Fixture f;
  Timeline timeline(1000);
  Ticks ticks;
  nn::Pass(f.context).trace(&timeline, &Ticks::next, &ticks);
  nn::Pass(f.context).begin_step();
  nn::Pass(f.context).begin_micro_batch(nn::Mode::training, 1);
  nn::Parameter scale{{1}, {}};
  scale.offset = f.scale_at, scale.ordinal = 1;
  auto const x = toy::multiply(f.context, scale, toy::inputs(f.context, f.batch));
  auto const y =
      f.context.recompute([&scale, x](auto& c) { return toy::multiply(c, scale, toy::multiply(c, scale, x)); }, x);
  static_cast<void>(toy::squared_error(f.context, y, {0, 0}));
  nn::Pass(f.context).backward({});
  auto const again = of_kind(timeline, Span::Kind::recompute), backward = of_kind(timeline, Span::Kind::backward);
  CHECK(again.size() == 2);
  REQUIRE(backward.size() >= 4);
  auto const& recomputed = backward[backward.size() - 2];  // then only x's own is left
  for (auto const& span : again) {
    CHECK(span.begin >= recomputed.begin);
    CHECK(span.end < recomputed.end);
  }
  auto const inner = std::count_if(backward.begin(), backward.end(), [&](Span const& span) {
    return span.begin > recomputed.begin && span.end < recomputed.end;
  });
  CHECK(inner == 2);
}
