// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/data/detail/table_cache.hpp>
#include <lockstep/data/sampler/sampler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Whether a sample can be drawn again in the same epoch.
enum class Replacement {
  with,     ///< each position draws sample i with probability weights[i] / sum (the default)
  without,  ///< no sample repeats: each position draws from the remaining samples, by their weights
};

namespace detail {

/// Returns 53 random bits as a number in [0, 1).
[[nodiscard]] inline double uniform(std::uint32_t high, std::uint32_t low) noexcept {
  return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

}  // namespace detail

/// Draws samples by weight, with different draws in each epoch.
/// @cost with replacement O(1) per position; without, a sort per epoch, kept
/// @throws ConfigError from `over` if weights and samples differ in number, or if no weight is positive
/// @throws ConfigError from `over` if a weight is negative or not finite
/// @throws ConfigError from `over` if `samples` exceeds the number of positive weights without replacement
/// @source with: the alias method (Walker 1977; Vose 1991); without: Efraimidis and Spirakis 2006
struct WeightedSampler {
  std::vector<double> weights;  ///< one per sample, of any sum
  Index samples = 0;  ///< positions in an epoch; 0: the number of samples (without replacement, of samples of positive
                      ///< weight)
  Replacement replacement = Replacement::with;  ///< whether a sample may occur several times in an epoch
  std::uint64_t seed = 0;                       ///< of the draws

  /// A template so that only programs that use it compile it.
  template <class = void>
  class OrderOf {
    struct AliasEntry {
      double threshold = 1;
      Index other = 0;
    };

   public:
    /// @param samples positions in an epoch
    OrderOf(WeightedSampler const& sampler, Index samples)
        : size_(samples), seed_(sampler.seed), replacement_(sampler.replacement) {
      if (replacement_ == Replacement::with) {
        alias_ = std::make_shared<std::vector<AliasEntry> const>(alias_table(sampler.weights));
      } else {
        weights_ = std::make_shared<std::vector<double> const>(sampler.weights);
        tables_ = std::make_shared<detail::TableCache>(std::size_t{2});
      }
    }

    /// Returns the positions of an epoch.
    [[nodiscard]] Index size() const noexcept { return size_; }
    /// Maps positions to samples for one epoch.
    class Epoch {
     public:
      /// Returns the sample at a position in [0, size()).
      [[nodiscard]] Index operator()(Index position) const {
        if (table_) return (*table_)[static_cast<std::size_t>(position)];
        auto const bits = random_(static_cast<std::uint64_t>(position));
        auto const count = static_cast<double>(alias_->size());
        auto const entry =
            std::min(static_cast<std::size_t>(detail::uniform(bits[0], bits[1]) * count), alias_->size() - 1);
        auto const& [threshold, other] = (*alias_)[entry];
        return detail::uniform(bits[2], bits[3]) < threshold ? static_cast<Index>(entry) : other;
      }

     private:
      friend OrderOf;
      explicit Epoch(std::uint64_t key) : random_(key) {}
      Philox random_;
      std::shared_ptr<std::vector<AliasEntry> const> alias_{};
      detail::TableCache::Table table_{};
    };
    /// Returns the map from position to sample for one epoch.
    [[nodiscard]] Epoch in(Index epoch) const {
      auto const key = mix(mix("lockstep.data.weighted_sampler"), seed_, static_cast<std::uint64_t>(epoch));
      Epoch out(key);
      out.alias_ = alias_;
      if (tables_) out.table_ = tables_->get({epoch, 0}, [&](auto& table) { draw(Philox(key), table); });
      return out;
    }

   private:
    /// Returns the alias table. An entry has an equal share of probability: its sample below the threshold, another
    /// above.
    static std::vector<AliasEntry> alias_table(std::vector<double> const& weights) {
      auto const total = std::accumulate(weights.begin(), weights.end(), 0.0);
      std::vector<AliasEntry> out(weights.size());
      std::vector<double> share(weights.size());
      std::vector<std::size_t> small, large;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        share[i] = weights[i] / total * static_cast<double>(weights.size());
        out[i].other = static_cast<Index>(i);
        (share[i] < 1 ? small : large).push_back(i);
      }
      while (!small.empty() && !large.empty()) {
        auto const i = small.back(), j = large.back();
        small.pop_back();
        out[i] = {share[i], static_cast<Index>(j)};
        share[j] -= 1 - share[i];
        if (share[j] < 1) {
          large.pop_back();
          small.push_back(j);
        }
      }
      // Rounding leaves some entries: each gets a whole share, but an entry of weight zero goes to a sample that can be
      // drawn.
      auto const any = std::max_element(weights.begin(), weights.end()) - weights.begin();
      for (auto const i : small)
        if (weights[i] == 0) out[i] = {0, static_cast<Index>(any)};
      return out;
    }
    /// Draws an exponential time with rate weight for each sample; the order of the samples is the order of the times.
    void draw(Philox const& random, std::vector<Index>& table) const {
      std::vector<std::pair<double, Index>> times;
      for (std::size_t i = 0; i < weights_->size(); ++i) {
        auto const weight = (*weights_)[i];
        auto const bits = random(i);
        if (weight > 0)
          times.emplace_back(-std::log(1 - detail::uniform(bits[0], bits[1])) / weight, static_cast<Index>(i));
      }
      // Not std::partial_sort, which is a heap sort and slow for a large number of times.
      auto const drawn = times.begin() + size_;
      std::nth_element(times.begin(), drawn, times.end());
      std::sort(times.begin(), drawn);
      table.reserve(static_cast<std::size_t>(size_));
      for (Index p = 0; p < size_; ++p) table.push_back(times[static_cast<std::size_t>(p)].second);
    }

    Index size_;
    std::uint64_t seed_;
    Replacement replacement_;
    std::shared_ptr<std::vector<AliasEntry> const> alias_;
    std::shared_ptr<std::vector<double> const> weights_;
    std::shared_ptr<detail::TableCache> tables_;
  };

  using Order = OrderOf<>;  ///< type of the order

  /// Returns the order for a dataset with as many samples as `weights`.
  [[nodiscard]] Order over(Dataset auto const& dataset) const {
    auto const size = static_cast<Index>(dataset.size());
    if (static_cast<Index>(weights.size()) != size) {
      throw ConfigError("WeightedSampler: " + std::to_string(weights.size()) + " weights for " + std::to_string(size) +
                        " samples; give one weight per sample");
    }
    Index positive = 0;
    double total = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (!(weights[i] >= 0 && std::isfinite(weights[i]))) {
        throw ConfigError("WeightedSampler: the weight of sample " + std::to_string(i) + " is " + shortest(weights[i]) +
                          "; weights are finite and at least 0");
      }
      positive += weights[i] > 0;
      total += weights[i];
    }
    if (!std::isfinite(total))
      throw ConfigError("WeightedSampler: the sum of the weights is infinite; make them smaller");
    if (positive == 0 && size > 0) throw ConfigError("WeightedSampler: no weight is positive; nothing could be drawn");
    auto const limit = replacement == Replacement::with ? size : positive;
    auto const drawn = samples == 0 ? limit : samples;
    if (drawn < 0 || (size == 0 && drawn > 0) || (replacement == Replacement::without && drawn > positive)) {
      throw ConfigError("WeightedSampler: samples is " + std::to_string(drawn) +
                        "; it must be at least 0 and, without " + "replacement, at most the " +
                        std::to_string(positive) + " samples of positive weight");
    }
    return Order(*this, drawn);
  }
};

}}}  // namespace lockstep::data
