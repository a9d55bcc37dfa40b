// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/optim/detail/adam_with.hpp>
#include <lockstep/optim/optimizer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Adam with decoupled weight decay. With g the clipped gradient of the mean and t the step, from 1:
///   m = m + (1 - beta1) (g - m)        v = beta2 v + (1 - beta2) g^2
///   x = (1 - rate decay) x - rate / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon)
///
/// Moments below 1e-29 (m) and 8e-34 (v) in float32 count as zero.
/// @source Loshchilov and Hutter 2019, with PyTorch's defaults
using AdamW = detail::AdamWith<detail::Decay::decoupled>;
static_assert(Optimizer<AdamW> && Optimizer<AdamW, double>);

}}}  // namespace lockstep::optim
