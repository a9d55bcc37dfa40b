// SPDX-License-Identifier: Apache-2.0
// CASE variable: Lockstep: the targets of a loss are numbers, and this is a Variable: pass target.value
// CASE image: Lockstep: the targets of a loss are numbers, and this is a Variable: pass target.value
// CASE sequence: Lockstep: the targets of a loss are numbers, and this is a Sequence: pass target.tokens.value
// CASE own_rule: Lockstep: the targets of a loss are numbers, and this is a Variable: pass target.value
#include <lockstep/nn/loss/huber_loss.hpp>
#include <lockstep/nn/loss/mean_absolute_error.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

using namespace lockstep;
using Context = nn::Context<float, HostSpace>;

void losses(Context& context, Context::Variable<2> x, [[maybe_unused]] Context::Variable<4> image,
            nn::Sequence<float, HostSpace> const& sequence) {
  static_cast<void>(nn::mean_squared_error(context, x, x.value));
  static_cast<void>(nn::huber_loss(context, sequence, sequence.tokens.value));
  static_cast<void>(nn::elementwise_loss(context, kernel::KlDivergenceOfMean{}, x, 2));
  static_cast<void>(nn::elementwise_loss(context, kernel::KlDivergenceOfMean{}, sequence));
#if defined(CASE_variable)
  static_cast<void>(nn::mean_squared_error(context, x, x));
#elif defined(CASE_image)
  static_cast<void>(nn::mean_absolute_error(context, image, image));
#elif defined(CASE_sequence)
  static_cast<void>(nn::huber_loss(context, sequence, sequence, {.delta = 2}));
#elif defined(CASE_own_rule)
  static_cast<void>(nn::elementwise_loss(context, kernel::SquaredError{}, x, x));
#endif
}
