// SPDX-License-Identifier: Apache-2.0
// CASE texts: Lockstep: cross_entropy got texts as labels
// CASE numbers: Lockstep: cross_entropy takes integers or enumerators as labels
#include <string>

#include <lockstep/data/columns.hpp>
#include <lockstep/nn/cross_entropy.hpp>

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
};

double mean(nn::Context<float, HostSpace>& context, data::Columns<Sample> const& batch) {
  auto const logits = context.variable<2>({batch.rows(), 2});
  return nn::cross_entropy(context, logits, batch[&Sample::label]).mean();
}
