// SPDX-License-Identifier: Apache-2.0
// CASE texts: Lockstep: cross_entropy got strings as labels
// CASE numbers: Lockstep: cross_entropy takes integers or enumerators as labels
// CASE factors: Lockstep: cross_entropy takes a float for each row as its factors
// CASE heads: Lockstep: cross_entropy takes logits, a Variable or a Sequence; if predict returns several in a struct
// CASE sum: Lockstep: losses on the same batch are joined by a.with_auxiliary(b)
// CASE factor: Lockstep: pass the factor of a loss to the function that computes it
// CASE factor_behind: Lockstep: pass the factor of a loss to the function that computes it
// CASE double_weights: Lockstep: class_weights takes floats, one for each class, that the model keeps
// CASE present: Lockstep: nn::where_present is for losses of numbers
#include <optional>
#include <string>
#include <vector>

#include <lockstep/data/columns.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/loss/elementwise_loss.hpp>

using namespace lockstep;

struct Sample {
#if defined(CASE_texts)
  std::string
#elif defined(CASE_numbers)
  float
#else
  int
#endif
      label;
  std::optional<int> known;
};

template <class Logits>
struct Heads {
  Logits kind, place;
};

double mean(nn::Context<float, HostSpace>& context, data::Columns<Sample> const& batch) {
  auto const logits = context.variable<2>({batch.rows(), 2});
  auto const loss = nn::cross_entropy(context, logits, batch[&Sample::label]);
#if defined(CASE_factors)
  static_cast<void>(nn::cross_entropy(context, logits, batch[&Sample::label], batch[&Sample::label]));
#elif defined(CASE_heads)
  static_cast<void>(nn::cross_entropy(context, Heads<decltype(logits)>{logits, logits}, batch[&Sample::label]));
#elif defined(CASE_double_weights)
  std::vector<double> const weights{1, 2};
  static_cast<void>(nn::cross_entropy(context, logits, batch[&Sample::label], {.class_weights = weights}));
#elif defined(CASE_present)
  static_cast<void>(nn::cross_entropy(context, logits, nn::where_present(batch[&Sample::known])));
#elif defined(CASE_sum)
  static_cast<void>(loss + loss);
#elif defined(CASE_factor)
  static_cast<void>(0.5 * loss);
#elif defined(CASE_factor_behind)
  static_cast<void>(loss * 2);
#endif
  return loss.mean();
}
