// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Decodes one sequence of a model that was trained with nn::ctc_loss. Takes the class of the largest logit of each
/// token, or the first on ties; merges repetitions; removes blanks.
/// @shape logits.tokens [slots, classes], on the host
/// @throws DataError if a logit is NaN, which would read as a class
template <class Sequence>
[[nodiscard]] std::vector<std::int32_t> ctc_best_path(Sequence const& logits, Index row, Index blank = 0) {
  std::vector<std::int32_t> out;
  auto const classes = logits.width(), first = logits.layout.start(row);
  Index before = blank;
  for (auto slot = first; slot < first + logits.layout.tokens(row); ++slot) {
    auto const* const here = logits.tokens.value.data + slot * classes;
    for (Index c = 0; c < classes; ++c)
      if (std::isnan(static_cast<float>(here[c])))
        throw DataError(
            "ctc_best_path: the model predicts a logit that is nan; look for NaN in its parameters and its "
            "input (data::FiniteCheck checks samples)");
    auto const best = static_cast<Index>(std::max_element(here, here + classes) - here);
    if (best != blank && best != before) out.push_back(static_cast<std::int32_t>(best));
    before = best;
  }
  return out;
}

}}}  // namespace lockstep::nn
