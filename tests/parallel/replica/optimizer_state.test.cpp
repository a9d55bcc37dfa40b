// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/replica/optimizer_state.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/optim/lamb.hpp>
#include <lockstep/optim/muon.hpp>
#include <lockstep/optim/partitioned.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/replica/replica.hpp>

#include "nn/toy.hpp"

using namespace lockstep;

namespace {
/// The first parameter's value after one SGD step of rate 1 from 0, with gradient (3, 4, 0) of a sum of weight 2.
float stepped(double clip_norm, float third = 0, double weight = 2) {
  toy::Model model;
  auto const layout = nn::ParameterLayout::of(model);
  parallel::Replica<toy::Model> replica(model, layout, {.threads = 1});
  auto* gradient = replica.gradient_data() + layout.entries()[0].offset;
  gradient[0] = 3, gradient[1] = 4, gradient[2] = third;
  parallel::OptimizerState<optim::SGD> state(layout);
  state.update(optim::SGD{.learning_rate = 1}, replica, {0, weight},
               {.step = 1, .learning_rate = 1, .clip_norm = clip_norm});
  return replica.values()[static_cast<std::size_t>(layout.entries()[0].offset)];
}
}  // namespace

TEST_CASE("the optimizer gets the gradient of the mean, clipped to the requested norm") {
  CHECK(stepped(0) == -1.5f);      // 3 / 2; the mean's norm is 5 / 2
  CHECK(stepped(2.5) == -1.5f);    // just at the limit
  CHECK(stepped(1.25) == -0.75f);  // halved
}

TEST_CASE("a step without weight, or with a non-finite gradient while clipping, changes nothing") {
  CHECK(stepped(0, 0, 0) == 0);
  CHECK(stepped(1, std::numeric_limits<float>::infinity()) == 0);
  CHECK(stepped(1, std::numeric_limits<float>::quiet_NaN()) == 0);
}

TEST_CASE("the loss scale is divided out with the weight and is updated by every step with a weight") {
  using State = optim::LossScaler::State;
  parallel::detail::MakeStepScalars<HostSpace> make;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  optim::LossScaler const scaler{.growth_interval = 2};
  State expected{1024, 0, 3}, state = expected;
  for (double const squares : {4.0, 4.0, std::numeric_limits<double>::infinity(), std::nan(""), 4.0}) {
    auto const scale = static_cast<double>(expected.scale);
    // The mean's norm is 2 / 8 / scale.
    auto const* const made = make.complete(stream, {.step = 9, .clip_norm = 0x1p-3 / scale, .loss_scaler = scaler},
                                           {0, 8}, {squares}, &state);
    REQUIRE((made != nullptr) == std::isfinite(squares));
    if (made) {
      CHECK(made->step == 9 - static_cast<double>(expected.skipped));
      CHECK(made->clip == 0.5);
      CHECK(made->gradient_scale() == 0.5 / 8 / scale);
    }
    expected = scaler.after(expected, std::isfinite(squares));
    CHECK(state == expected);
  }
  CHECK(expected == State{512, 1, 5});
  CHECK(make.complete(stream, {.step = 9, .loss_scaler = scaler}, {0, 0}, {0}, &state) ==
        nullptr);  // no rank had a sample
  CHECK(state == expected);
}

namespace {
/// Parameters of both groups, alternating.
struct Mixed {
  nn::Parameter table{{3, 5}, {}}, bias{{4}, {}}, weight{{2, 8}, {}}, scale{{16}, {}}, shift{{16}, {}},
      last{{4, 4}, {}};
  void visit(auto&& each) {
    each("embedding.token", table);
    each("bias", bias);
    each("weight", weight);
    each("scale", scale);
    each("shift", shift);
    each("last", last);
  }
};

/// Parameters that a step with gradient zero shrinks: those with decay.
template <class Optimizer>
std::string shrunk(Optimizer const& optimizer) {
  Mixed model;
  auto const layout = nn::ParameterLayout::of(model);
  parallel::Replica<Mixed> replica(model, layout, {.threads = 1});
  for (auto& value : replica.values()) value = 1;
  parallel::OptimizerState<Optimizer> state(layout);
  state.update(optimizer, replica, {0, 1}, {.step = 1, .learning_rate = 0.5});
  std::string names;
  for (auto const& entry : layout.entries()) {
    auto const value = replica.values().subspan(static_cast<std::size_t>(entry.offset));
    for (Index i = 1; i < entry.size; ++i) CHECK(value[static_cast<std::size_t>(i)] == value[0]);
    if (value[0] != 1) names += entry.name + " ";
    CHECK((value[0] == 1 || value[0] == doctest::Approx(0.95)));
  }
  return names;
}
}  // namespace

TEST_CASE("an optimizer of whole parameters gets them without the padding after them") {
  Mixed model;
  auto const layout = nn::ParameterLayout::of(model);
  parallel::Replica<Mixed> replica(model, layout, {.threads = 1});
  for (auto const& entry : layout.entries()) {
    std::fill_n(replica.values().data() + entry.offset, entry.size, 3.0f);
    std::fill_n(replica.gradient_data() + entry.offset, entry.size, 1.0f);
  }
  parallel::OptimizerState<optim::LAMB> state(layout);
  state.update(optim::LAMB{.epsilon = 0, .weight_decay = 0}, replica, {0, 1}, {.step = 1, .learning_rate = 0.5});
  for (auto const& entry : layout.entries()) {
    auto const values = replica.values().subspan(static_cast<std::size_t>(entry.offset),
                                                 static_cast<std::size_t>(nn::ParameterLayout::padded(entry.size)));
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(values[i] == (i < static_cast<std::size_t>(entry.size) ? doctest::Approx(1.5) : doctest::Approx(0)));
  }
}

TEST_CASE("weight decay applies to the parameters that the rule selects, by default to all") {
  optim::SGD sgd{.weight_decay = 0.1};
  optim::AdamW adamw{.weight_decay = 0.1};
  CHECK(shrunk(sgd) == "embedding.token bias weight scale shift last ");
  CHECK(shrunk(adamw) == "embedding.token bias weight scale shift last ");
  sgd.decays = adamw.decays = optim::DecayRule::matrices;
  CHECK(shrunk(sgd) == "embedding.token weight last ");
  CHECK(shrunk(adamw) == "embedding.token weight last ");
  sgd.decays = [](std::string_view name, std::span<Index const> shape) {
    return shape.size() >= 2 && !name.starts_with("embedding.");
  };
  CHECK(shrunk(sgd) == "weight last ");
  sgd.decays = [](std::string_view, std::span<Index const>) { return false; };
  CHECK(shrunk(sgd).empty());
  sgd.weight_decay = 0.05, adamw.weight_decay = 0.2;  // the rule makes it 0.1
  sgd.decays = [](std::string_view name, std::span<Index const>) { return name == "scale" ? 2.0 : 0.0; };
  adamw.decays = [](std::string_view name, std::span<Index const>) { return name == "scale" ? 0.5 : 0.0; };
  CHECK(shrunk(sgd) == "scale ");
  CHECK(shrunk(adamw) == "scale ");
}

namespace {
/// Results of a step with gradient 1 for each parameter that was 1, and for its first moment.
template <class Optimizer>
std::string moved(Optimizer const& optimizer, std::vector<parallel::detail::ArenaPart> parts) {
  Mixed model;
  auto const layout = nn::ParameterLayout::of(model);
  parallel::Replica<Mixed> replica(model, layout, {.threads = 1});
  for (auto& value : replica.values()) value = 1;
  std::fill_n(replica.gradient_data(), layout.size(), 1.0f);
  parallel::OptimizerState<Optimizer> state(layout, std::move(parts));
  state.update(optimizer, replica, {0, 1}, {.step = 1, .learning_rate = 0.25});
  std::vector<float> moment(static_cast<std::size_t>(layout.size()));
  state.write_parts(0, replica.device(), moment.data());
  std::string out;
  for (auto const& entry : layout.entries()) {
    auto const at = static_cast<std::size_t>(entry.offset);
    for (Index i = 1; i < entry.size; ++i)
      CHECK(replica.values()[at + static_cast<std::size_t>(i)] == replica.values()[at]);
    out += entry.name + " " + std::to_string(replica.values()[at]).substr(0, 5) + (moment[at] == 0 ? " 0, " : ", ");
  }
  return out;
}
}  // namespace

TEST_CASE("rates multiply the learning rate of the selected parameters; 0 leaves all of them unchanged") {
  Mixed model;
  auto const size = nn::ParameterLayout::of(model).size();
  optim::SGD sgd{.momentum = 0.5, .weight_decay = 1};
  optim::AdamW adamw{.weight_decay = 1};
  auto const rule = [](std::string_view name, std::span<Index const> shape) {
    return name.starts_with("embedding.") || name == "scale" ? 0.0 : shape.size() > 1 ? 0.5 : 2.0;
  };
  for (auto const& parts : {std::vector<parallel::detail::ArenaPart>{{0, size}}, {{0, 8}, {8, 40}, {40, size}}}) {
    sgd.rates = adamw.rates = optim::RateRule::same;
    CHECK(moved(sgd, parts) ==
          "embedding.token 0.500, bias 0.500, weight 0.500, scale 0.500, shift 0.500, last 0.500, ");
    sgd.rates = adamw.rates = rule;
    // SGD: 1 - rate (1 + 1); AdamW: 1 - rate - rate, because its first step is a whole rate.
    for (auto const& out : {moved(sgd, parts), moved(adamw, parts)})
      CHECK(out == "embedding.token 1.000 0, bias 0.000, weight 0.750, scale 1.000 0, shift 0.000, last 0.750, ");
  }
}

namespace {
bool is_matrix(std::string_view, std::span<Index const> shape) { return shape.size() == 2; }

/// Parameters, and all states of each parameter as the optimizer keeps them, after three steps.
template <class Optimizer>
std::vector<std::vector<float>> after_steps(Optimizer const& optimizer, double clip_norm,
                                            std::vector<parallel::detail::ArenaPart> parts = {}) {
  Mixed model;
  auto const layout = nn::ParameterLayout::of(model);
  parallel::Replica<Mixed> replica(model, layout, {.threads = 1});
  for (Index i = 0; i < layout.size(); ++i)
    replica.values()[static_cast<std::size_t>(i)] = static_cast<float>(i % 7) - 3;
  if (parts.empty()) parts = {{0, layout.size()}};
  parallel::OptimizerState<Optimizer> state(layout, std::move(parts));
  for (Index step = 1; step <= 3; ++step) {
    for (auto const& entry : layout.entries())
      for (Index i = 0; i < entry.size; ++i)
        replica.gradient_data()[entry.offset + i] = static_cast<float>((i + step) % 5) - 1.5f;
    state.update(optimizer, replica, {0, 2}, {.step = step, .learning_rate = 0.25, .clip_norm = clip_norm});
  }
  std::vector<std::vector<float>> out{{replica.values().begin(), replica.values().end()}};
  for (std::size_t s = 0; s < static_cast<std::size_t>(Optimizer::states); ++s) {
    out.emplace_back(static_cast<std::size_t>(layout.size()));
    state.write_parts(s, replica.device(), out.back().data());
  }
  return out;
}
}  // namespace

TEST_CASE("each optimizer of Partitioned updates its parameters with the bits of that optimizer alone") {
  Mixed model;
  auto const layout = nn::ParameterLayout::of(model);
  auto const compare = [&](auto const& first, auto const& second, double clip_norm) {
    optim::Partitioned const both{first, second, is_matrix};
    auto const got = after_steps(both, clip_norm), of_first = after_steps(first, clip_norm),
               of_second = after_steps(second, clip_norm);
    REQUIRE(got.size() == std::max(of_first.size(), of_second.size()));
    for (auto const& entry : layout.entries()) {
      auto const& alone = entry.shape.size() == 2 ? of_first : of_second;
      auto const part = [&](std::vector<float> const& arena) {
        auto const begin = arena.begin() + entry.offset;
        return std::vector<float>(begin, begin + entry.size);
      };
      CHECK(part(got[0]) == part(alone[0]));
      for (std::size_t s = 1; s < alone.size(); ++s) CHECK(part(got[got.size() - s]) == part(alone[alone.size() - s]));
      for (std::size_t s = 1; s + alone.size() <= got.size(); ++s)
        CHECK(part(got[s]) == std::vector<float>(static_cast<std::size_t>(entry.size)));
    }
  };
  optim::SGD const sgd{.momentum = 0.5, .weight_decay = 0.1};
  optim::AdamW const adamw{.weight_decay = 0.1};
  for (double const clip_norm : {0.0, 1.0}) {
    compare(sgd, adamw, clip_norm);
    compare(adamw, sgd, clip_norm);
    compare(sgd, optim::LAMB{}, clip_norm);
    compare(optim::LAMB{}, adamw, clip_norm);
    compare(optim::Averaged{sgd}, optim::Averaged{adamw}, clip_norm);
  }
}

TEST_CASE("Muon in Partitioned orthogonalizes each matrix, and the other optimizer's rate keeps its ratio") {
  optim::Muon const muon{.learning_rate = 0.5, .weight_decay = 0};
  optim::AdamW const slow{.learning_rate = 0.125}, fast{.learning_rate = 0.5};
  auto const got = after_steps(optim::Partitioned{muon, slow, is_matrix}, 0);
  auto const of_adamw = after_steps(
      optim::AdamW{.learning_rate = 0.25, .rates = [](std::string_view, std::span<Index const>) { return 0.25; }}, 0);
  Mixed model;
  auto const layout = nn::ParameterLayout::of(model);
  for (auto const& entry : layout.entries()) {
    auto const at = static_cast<std::size_t>(entry.offset);
    double squares = 0;
    for (std::size_t i = at; i < at + static_cast<std::size_t>(entry.size); ++i) {
      if (entry.shape.size() != 2) CHECK(got[0][i] == of_adamw[0][i]);
      squares += std::pow(static_cast<double>(got[0][i] - (static_cast<float>(i % 7) - 3)), 2);
    }
    // Three steps of rate 0.25, each of at most 1.21 per singular value.
    if (entry.shape.size() == 2)
      CHECK(std::sqrt(squares) <= 0.75 * muon.adjustment_of(entry.shape[0], entry.shape[1]) * 1.21 *
                                      std::sqrt(static_cast<double>(std::min(entry.shape[0], entry.shape[1]))));
    CHECK(squares > 0);
  }
  CHECK(got != after_steps(optim::Partitioned{muon, fast, is_matrix}, 0));
}

TEST_CASE("optimizers of Partitioned that need no whole parameters update parts of the arena with equal bits") {
  Mixed model;
  auto const size = nn::ParameterLayout::of(model).size();
  optim::Partitioned const both{optim::SGD{.momentum = 0.5}, optim::AdamW{}, is_matrix};
  CHECK(after_steps(both, 0, {{0, 8}, {8, 40}, {40, size}}) == after_steps(both, 0));
}
