// SPDX-License-Identifier: Apache-2.0
// CASE variable: Lockstep: the targets of a loss are numbers, and this is a Variable: pass target.value
// CASE image: Lockstep: the targets of a loss are numbers, and this is a Variable: pass target.value
// CASE sequence: Lockstep: the targets of a loss are numbers, and this is a Sequence: pass target.tokens.value
// CASE own_rule: Lockstep: the targets of a loss are numbers, and this is a Variable: pass target.value
// CASE heads: Lockstep: a loss takes a prediction, a Variable or a Sequence; if predict returns several
// CASE heads_present: Lockstep: a loss takes a prediction, a Variable or a Sequence; if predict returns several
// CASE heads_weighted: Lockstep: a loss takes a prediction, a Variable or a Sequence; if predict returns several
// CASE all_present: Lockstep: nn::where_present takes a column of std::optional numbers
#include <optional>

#include <lockstep/data/columns.hpp>
#include <lockstep/nn/loss/huber_loss.hpp>
#include <lockstep/nn/loss/mean_absolute_error.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

using namespace lockstep;
using Context = nn::Context<float, HostSpace>;

struct Sample {
  float all;
  std::optional<float> some;
};
struct Heads {
  Context::Variable<2> kind, place;
};

void losses(Context& context, Context::Variable<2> x, [[maybe_unused]] Context::Variable<4> image,
            nn::Sequence<float, HostSpace> const& sequence, data::Columns<Sample> const& batch) {
  [[maybe_unused]] Heads const heads{x, x};
  auto const some = nn::where_present(batch[&Sample::some]);
  static_cast<void>(nn::mean_squared_error(context, x, some));
  static_cast<void>(nn::mean_squared_error(context, x, nn::weighted(some, batch[&Sample::all])));
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
#elif defined(CASE_heads)
  static_cast<void>(nn::mean_squared_error(context, heads, batch[&Sample::all]));
#elif defined(CASE_heads_present)
  static_cast<void>(nn::mean_squared_error(context, heads, some));
#elif defined(CASE_heads_weighted)
  static_cast<void>(nn::mean_squared_error(context, heads, nn::weighted(some, batch[&Sample::all])));
#elif defined(CASE_all_present)
  static_cast<void>(nn::mean_squared_error(context, x, nn::where_present(batch[&Sample::all])));
#endif
}
