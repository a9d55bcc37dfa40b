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
  auto const logit = [&](std::int32_t token) { return static_cast<double>(logits[static_cast<std::size_t>(token)]); };
  auto const count = static_cast<std::int32_t>(logits.size());
  auto const is_suppressed = [&](std::int32_t token) {
    return std::find(options.suppressed.begin(), options.suppressed.end(), token) != options.suppressed.end();
  };
  double largest = -HUGE_VAL;
  std::int32_t most_likely = -1;
  for (std::int32_t token = 0; token < count; ++token) {
    double const value = logit(token);
    if (!(value < HUGE_VAL))
      throw DataError("draw_token: the logit of token " + std::to_string(token) + " is " + shortest(value) +
                      "; look for NaN in the parameters");
    if (!(value > largest) || is_suppressed(token)) continue;
    largest = value;
    most_likely = token;
  }
  expect<DataError>(most_likely >= 0, [] {
    return std::string("draw_token: all tokens are suppressed or have the logit -inf; suppress fewer tokens");
  });
  if (options.temperature == 0 || options.top_k == 1) return most_likely;

  constexpr double impossible = -45;  // all such tokens of a vocabulary together have less than rounding errors
  std::vector<std::int32_t> order;
  for (std::int32_t token = 0; token < count; ++token)
    if ((logit(token) - largest) / options.temperature > impossible && !is_suppressed(token)) order.push_back(token);
  auto const before = [&](std::int32_t a, std::int32_t b) {
    auto const x = logit(a), y = logit(b);
    return x != y ? x > y : a < b;
  };
  if (options.top_k > 0 && options.top_k < std::ssize(order)) {
    std::nth_element(order.begin(), order.begin() + (options.top_k - 1), order.end(), before);
    order.resize(static_cast<std::size_t>(options.top_k));
  }
  auto const weight = [&](std::int32_t token) { return std::exp((logit(token) - largest) / options.temperature); };
  double const all = std::accumulate(order.begin(), order.end(), 0.0,
                                     [&](double sum, std::int32_t token) { return sum + weight(token); });
  // Sorts no more tokens than it needs: few have most of the probability.
  std::size_t sorted = 0;
  auto const sorted_token = [&](std::size_t i) {
    if (i == sorted) {
      sorted = std::min(order.size(), std::max<std::size_t>(64, 4 * sorted));
      std::partial_sort(order.begin() + static_cast<std::ptrdiff_t>(i),
                        order.begin() + static_cast<std::ptrdiff_t>(sorted), order.end(), before);
    }
    return order[i];
  };
  double total = all;
  auto kept = order.size();
  if (options.top_p < 1) {
    total = 0;
    for (std::size_t i = 0; i < kept; ++i)
      if ((total += weight(sorted_token(i))) >= options.top_p * all) kept = i + 1;
  }
  double rest = random * total;
  std::size_t chosen = 0;
  while (chosen + 1 < kept && (rest -= weight(sorted_token(chosen))) >= 0) ++chosen;
  return sorted_token(chosen);
}

}}}  // namespace lockstep::train
