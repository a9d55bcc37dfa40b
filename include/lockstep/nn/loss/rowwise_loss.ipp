// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/nn/loss/rowwise_loss.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

LOCKSTEP_COLD_INLINE void refuse_row(Index row, std::span<double const> outputs, std::span<double const> slopes,
                                     Loss<HostSpace> const& loss) {
  std::string what = "loss";
  double number = loss.sum;
  if (std::isfinite(number)) {
    what = "weight";
    number = loss.weight;
  }
  if (std::isfinite(number)) {
    auto const slope = std::find_if_not(slopes.begin(), slopes.end(), [](double x) { return std::isfinite(x); });
    what = "slope " + std::to_string(slope - slopes.begin());
    number = *slope;
  }
  constexpr std::size_t shown = 8;
  std::string numbers;
  for (std::size_t i = 0; i < std::min(outputs.size(), shown); ++i)
    numbers += (i == 0 ? "" : ", ") + shortest(outputs[i]);
  throw RowError("rowwise_loss: the " + what + " of row " + std::to_string(row) + " of the batch is " +
                     shortest(number) + ", and its outputs are finite: [" + numbers +
                     (outputs.size() > shown ? ", …" : "") +
                     "]; look for a logarithm, a root or a quotient of 0, or an exponential that overflows",
                 row);
}

}}}  // namespace lockstep::nn::detail
