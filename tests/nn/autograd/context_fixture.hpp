// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/pass.hpp>

#include <vector>

#include "nn/toy.hpp"

namespace toy {

/// A context over a model and a batch of two samples.
struct ContextFixture {
  lockstep::ThreadPool pool{1};
  nn::Context<double, lockstep::HostSpace> context{lockstep::memory::Stream<lockstep::HostSpace>(pool)};
  Model model;
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  std::vector<double> values = std::vector<double>(static_cast<std::size_t>(layout.size()), 0.5);
  std::vector<double> gradients = std::vector<double>(static_cast<std::size_t>(layout.size()), -1);
  Batch batch{{1, 2}, {0, 0}};
  Index scale_at = layout.entries()[1].offset;

  ContextFixture() { context.parameters().bind(values.data(), gradients.data(), layout.entries().size()); }
  double loss(nn::Mode mode = nn::Mode::training) {
    nn::Pass(context).begin_micro_batch(mode, 1);
    return model.forward(context, batch).sum;
  }
  double& scale_gradient() { return gradients[static_cast<std::size_t>(scale_at)]; }
};

}  // namespace toy
