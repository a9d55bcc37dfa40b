// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/train/prediction/predicted_class.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// How draw_token chooses among the tokens of a vocabulary. By default each is drawn with its probability.
struct DrawOptions {
  double temperature = 1;  ///< divides the logits: below 1, unlikely tokens are drawn less often; 0: the most likely
  Index top_k = 0;         ///< draws among this many of the most likely tokens; 0: among all
  double top_p = 1;        ///< then among the fewest most likely tokens whose probabilities sum up to this share
  std::vector<std::int32_t> suppressed = {};  ///< tokens that are never drawn, such as data::Vocabulary::padding

  /// Checks the options.   @throws ConfigError for an option out of range
  void check() const {
    expect<ConfigError>(temperature >= 0 && std::isfinite(temperature) && top_k >= 0 && top_p > 0 && top_p <= 1, [&] {
      return "draw_token: temperature " + shortest(temperature) + ", top_k " + std::to_string(top_k) + ", top_p " +
             shortest(top_p) + "; the first two must be at least 0, and top_p in (0, 1]";
    });
  }
};

/// Draws a token id by the logits of a row, as Hugging Face's generate with do_sample: suppressed tokens,
/// temperature, top_k, top_p, in this order. The first of equally likely tokens has precedence.
/// @param row a row of a Variable on the host, or a slot of a Sequence
/// @param random a uniform number in [0, 1), such as lockstep::uniform(philox, k)
/// @determinism depends on its arguments only
/// @throws ShapeError if the prediction has no such row; ConfigError for an option out of range; DataError if a logit
/// is not a number, or no token can be drawn
template <class Prediction>
[[nodiscard]] std::int32_t draw_token(Prediction const& prediction, Index row, double random,
                                      DrawOptions const& options = {}) {
  options.check();
  auto const logits = detail::logits_of("draw_token", prediction, row);
  std::vector<double> share(logits.begin(), logits.end());
  for (std::size_t i = 0; i < share.size(); ++i)
    if (std::isnan(share[i]) || share[i] == HUGE_VAL)
      throw DataError("draw_token: the logit of token " + std::to_string(i) + " is " + shortest(share[i]) +
                      "; look for NaN in the parameters");
  for (auto const token : options.suppressed)
    if (token >= 0 && token < std::ssize(share)) share[static_cast<std::size_t>(token)] = -HUGE_VAL;
  std::vector<std::int32_t> order(share.size());
  std::iota(order.begin(), order.end(), 0);
  auto const before = [&](std::int32_t a, std::int32_t b) {
    auto const x = share[static_cast<std::size_t>(a)], y = share[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  auto kept = options.top_k > 0 ? std::min(static_cast<std::size_t>(options.top_k), order.size()) : order.size();
  if (options.temperature == 0) kept = 1;
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), before);
  double const largest = share[static_cast<std::size_t>(order[0])];
  expect<DataError>(largest > -HUGE_VAL, [] {
    return std::string("draw_token: all tokens are suppressed or have the logit -inf; suppress fewer tokens");
  });
  std::vector<double> weights(kept);
  for (std::size_t i = 0; i < kept; ++i)
    weights[i] = i == 0 ? 1 : std::exp((share[static_cast<std::size_t>(order[i])] - largest) / options.temperature);
  double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (options.top_p < 1) {
    double const wanted = options.top_p * total;
    total = 0;
    for (std::size_t i = 0; i < kept; ++i)
      if ((total += weights[i]) >= wanted) kept = i + 1;
  }
  double rest = random * total;
  std::size_t chosen = 0;
  while (chosen + 1 < kept && (rest -= weights[chosen]) >= 0) ++chosen;
  return order[chosen];
}

}}}  // namespace lockstep::train
