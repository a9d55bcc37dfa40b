// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/optim/detail/adam_with.hpp>
#include <lockstep/optim/optimizer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Adam, with weight decay as an L2 penalty. With h the clipped gradient of the mean and t the step, from 1:
///   g = h + decay x
///   m = m + (1 - beta1) (g - m)        v = beta2 v + (1 - beta2) g^2
///   x = x - rate / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon)
///
/// The penalty passes through the moments, which weakens it where gradients are large. AdamW decays all parameters
/// equally. Moments below 1e-29 (m) and 8e-34 (v) in float32 count as zero.
/// @source Kingma and Ba 2015, with PyTorch's defaults
using Adam = detail::AdamWith<detail::Decay::coupled>;
static_assert(Optimizer<Adam> && Optimizer<Adam, double>);

}}}  // namespace lockstep::optim
