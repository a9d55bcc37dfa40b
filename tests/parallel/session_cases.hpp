// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/replica/replica.hpp>

#include "nn/toy.hpp"

/// Cases for every policy's session, on toy::Model with plain SGD: one function, called by each policy's test.
namespace session_cases {
using namespace lockstep;

inline constexpr float start_value = 0.5f;
inline constexpr double rate = 0.01;

/// `shards` batches of samples 1, 2, 3, … with targets 2 x, distributed round robin.
inline std::vector<toy::Batch> batches_of_shards(int samples, int shards, int first = 1) {
  std::vector<toy::Batch> batches(static_cast<std::size_t>(shards));
  for (int i = 0; i < samples; ++i) {
    auto& batch = batches[static_cast<std::size_t>(i % shards)];
    batch.inputs.push_back(0.1 * (first + i));
    batch.targets.push_back(0.2 * (first + i));
  }
  return batches;
}

/// Loss sum and its derivative by the scale s: prediction (s^2 + s) x.
struct Exact {
  double loss = 0, slope = 0, weight = 0;
  void add(std::vector<toy::Batch> const& batches, double s) {
    for (auto const& batch : batches)
      for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
        auto const x = batch.inputs[i], off = (s * s + s) * x - batch.targets[i];
        loss += off * off, slope += 2 * off * (2 * s + 1) * x, weight += 1;
      }
  }
};

/// One step over `micro` micro-batches on the session's shards [first, first + count) of `all`; checks loss and update.
/// float32 rounds each of about ten operations of a term, and each of the n additions: (n + 10) 2^-24 relative to the
/// sum of the terms' magnitudes, which for these samples is below 10.
template <class Session>
void check_step(Session& session, nn::ParameterLayout const& layout, int samples, int micro, int first, int count,
                int all) {
  auto const at = static_cast<std::size_t>(layout.entries()[1].offset),
             unused = static_cast<std::size_t>(layout.entries()[0].offset);
  double const before = session.values()[at], unused_before = session.values()[unused];
  bool const runs_micro_steps = micro > 1;  // the last shard's process
  Exact exact;
  for (int m = 0; m < micro; ++m) {
    auto const batches = batches_of_shards(samples, all, 1 + m * samples);
    exact.add(batches, before);
    session.micro_step(
        std::span<toy::Batch const>(batches).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
        {.key = 1, .first = m == 0, .last = m == micro - 1, .stop = runs_micro_steps && first + count == all});
  }
  auto const loss = session.update(optim::SGD{.learning_rate = rate}, {.step = 1, .learning_rate = rate});
  CHECK(loss.weight == exact.weight);
  CHECK(session.stop_requested() == runs_micro_steps);
  if (exact.weight == 0) {
    CHECK(session.values()[at] == before);
    return;
  }
  double const bound = (samples * micro + 10) * std::ldexp(1.0, -24) * 10 * samples * micro;
  CHECK(std::abs(loss.sum - exact.loss) <= bound);
  CHECK(std::abs(session.values()[at] - (before - rate * exact.slope / exact.weight)) <= bound);
  CHECK(session.values()[unused] == unused_before);
}

/// Steps of full, uneven, single and no samples, with and without accumulation.
template <class Session>
void check_steps(Session& session, nn::ParameterLayout const& layout, int first, int count, int all) {
  CHECK(session.report().unused_parameters == std::vector<std::string>{"unused", "scale"});
  for (int samples : {2 * all, 2 * all + 1, 1, 0})
    for (int micro : {1, 3}) check_step(session, layout, samples, micro, first, count, all);
  CHECK(session.report().unused_parameters == std::vector<std::string>{"unused"});
}

/// A model that stores how many samples it was trained on.
struct Counting {
  toy::Model model;
  nn::Buffer seen{{1}, nn::Initializer::constant(100)};
  void visit(auto&& each) { each("model", model), each("seen", seen); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, toy::Batch const& batch) const {
    if (context.recording()) context.template value<1>(seen)(0) += static_cast<float>(batch.rows());
    return model.forward(context, batch);
  }
};

/// Each replica stores its own samples' result, until all take the first one's; updates do not change it.
template <class Session>
void check_buffers(Session& session, int first, int count, int all) {
  auto const batches = batches_of_shards(all + 1, all);  // the first shard has two samples, the others one
  for (int step = 1; step <= 2; ++step) {
    session.micro_step(
        std::span<toy::Batch const>(batches).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
        {.key = 1});
    session.update(optim::SGD{.learning_rate = rate}, {.step = step, .learning_rate = rate});
  }
  session.for_each_shard(
      [&](int device, auto& replica) { CHECK(replica.buffers()[0] == (first + device == 0 ? 104 : 102)); });
  session.synchronize_buffers();
  session.for_each_shard([&](int, auto& replica) { CHECK(replica.buffers()[0] == 104); });
  CHECK(session.buffers()[0] == 104);
}

}  // namespace session_cases
