// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/data/sampler/sampler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Visits every sample once per epoch, in batches of similar cost. A batch padded to its longest sample has at most
/// `tokens` tokens; a ragged batch has fewer. Sorts samples by length and cuts them into buckets of similar lengths.
/// All batches of a bucket have the same number of rows. Each epoch shuffles the samples of each bucket, and the
/// batches. Therefore the number of batches is equal in every epoch, all batches except one are full, and resume is
/// arithmetic. A micro-step takes one batch for each rank and device; leave the loader's batch size at 1.
/// @cost memory of one index per sample, a sort at construction
/// @throws ConfigError from `over` if lengths and samples differ in number, or an option is out of range
/// @throws ConfigError from `over` if a length is negative or above `tokens`
struct TokenBudgetSampler {
  std::vector<std::int32_t> lengths;  ///< of each sample
  Index tokens = 1;                   ///< of a batch at most, including padding: rows times the longest length
  double spread = 0.05;               ///< relative difference of the longest and the shortest length in a bucket, at
                                      ///< most
  Index min_batches = 4;              ///< of a bucket, so that samples of rare lengths are combined with others; costs
                                      ///< padding
  Index max_rows = 1024;              ///< samples in a batch at most
  std::uint64_t seed = 0;             ///< of the order of samples and batches

  /// A template so that only programs that use it compile it.
  template <class = void>
  class OrderOf {
   public:
    /// Sorts the samples by length and cuts them into buckets.
    explicit OrderOf(TokenBudgetSampler const& sampler) : seed_(sampler.seed) {
      auto plan = std::make_shared<Plan>();
      auto const length = [&](Index i) { return std::max(sampler.lengths[static_cast<std::size_t>(i)], 1); };
      auto& sorted = plan->sorted;
      sorted.resize(sampler.lengths.size());
      std::iota(sorted.begin(), sorted.end(), Index{0});
      std::stable_sort(sorted.begin(), sorted.end(), [&](Index a, Index b) { return length(a) > length(b); });
      auto const count = static_cast<Index>(sorted.size());
      for (Index begin = 0; begin < count;) {
        auto const longest = length(sorted[static_cast<std::size_t>(begin)]);
        auto const rows = std::min(sampler.tokens / longest, sampler.max_rows);
        auto const shortest = static_cast<double>(longest) * (1 - sampler.spread);
        auto const from = std::min(count, begin + std::min(rows * sampler.min_batches, count));
        auto const past = std::find_if(sorted.begin() + from, sorted.end(),
                                       [&](Index i) { return static_cast<double>(length(i)) < shortest; });
        auto const whole = (past - sorted.begin() - begin + rows - 1) / rows * rows;  // only the last batch is short
        plan->buckets.push_back({begin, std::min(count - begin, whole), rows, plan->batches});
        plan->batches += (plan->buckets.back().count + rows - 1) / rows;
        plan->max_rows = std::max(plan->max_rows, std::min(rows, count));
        begin += plan->buckets.back().count;
      }
      plan_ = std::move(plan);
    }

    /// Returns batches() * max_rows().
    [[nodiscard]] Index size() const noexcept { return batches() * max_rows(); }
    /// Returns the number of samples.
    [[nodiscard]] Index samples() const noexcept { return static_cast<Index>(plan_->sorted.size()); }
    /// Returns the batches of an epoch.
    [[nodiscard]] Index batches() const noexcept { return plan_->batches; }
    /// Returns the rows of the largest batch.
    [[nodiscard]] Index max_rows() const noexcept { return plan_->max_rows; }
    /// Returns the rows of a batch, from 1 to max_rows().
    [[nodiscard]] Index rows(Index epoch, Index batch) const noexcept {
      auto const planned = batch_order(epoch)(batch);
      return rows_of(bucket_of(planned), planned);
    }
    /// Returns the map from position to sample for one epoch. Use it from one thread: it keeps the batch of its last
    /// call.
    [[nodiscard]] auto in(Index epoch) const {
      return [*this, epoch, batches = batch_order(epoch), samples = KeyedPermutation(1, 0), at = Index{-1},
              planned = Index{0}, bucket = static_cast<Bucket const*>(nullptr)](Index position) mutable {
        if (auto const batch = position / max_rows(); batch != at) {
          planned = batches(batch);
          auto const& found = bucket_of(planned);
          if (&found != bucket) samples = KeyedPermutation(found.count, key("sample", epoch, found.begin));
          bucket = &found;
          at = batch;
        }
        auto const row = position % max_rows() % rows_of(*bucket, planned);
        auto const place = samples((planned - bucket->first_batch) * bucket->rows + row);
        return plan_->sorted[static_cast<std::size_t>(bucket->begin + place)];
      };
    }

   private:
    struct Bucket {
      Index begin = 0, count = 0;  // in `sorted`
      Index rows = 0;              // of a batch
      Index first_batch = 0;
    };
    struct Plan {
      std::vector<Index> sorted;  // samples by decreasing length
      std::vector<Bucket> buckets;
      Index batches = 0, max_rows = 1;
    };
    [[nodiscard]] Bucket const& bucket_of(Index planned) const noexcept {
      auto const after = std::upper_bound(plan_->buckets.begin(), plan_->buckets.end(), planned,
                                          [](Index value, Bucket const& each) { return value < each.first_batch; });
      return *(after - 1);
    }
    [[nodiscard]] static Index rows_of(Bucket const& bucket, Index planned) noexcept {
      return std::min(bucket.rows, bucket.count - (planned - bucket.first_batch) * bucket.rows);
    }
    [[nodiscard]] KeyedPermutation batch_order(Index epoch) const noexcept {
      return {batches(), key("batch", epoch, 0)};
    }
    [[nodiscard]] std::uint64_t key(char const* what, Index first, Index second) const noexcept {
      return mix(mix("lockstep.data.token_budget_sampler"), mix(std::string_view(what)), seed_,
                 static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second));
    }

    std::uint64_t seed_;
    std::shared_ptr<Plan const> plan_;
  };

  using Order = OrderOf<>;  ///< type of the order

  /// Returns the order for a dataset with as many samples as `lengths`.
  [[nodiscard]] Order over(Dataset auto const& dataset) const {
    auto const require = [](bool holds, std::string const& what) {
      if (!holds) throw ConfigError("TokenBudgetSampler: " + what);
    };
    require(static_cast<Index>(lengths.size()) == static_cast<Index>(dataset.size()),
            std::to_string(lengths.size()) + " lengths for " + std::to_string(dataset.size()) +
                " samples; give the length of each sample");
    require(tokens >= 1, "tokens is " + std::to_string(tokens) + "; it must be at least 1");
    require(spread >= 0 && spread <= 1, "spread is " + shortest(spread) + "; it must be within [0, 1]");
    constexpr Index limit = std::numeric_limits<std::int32_t>::max();
    require(min_batches >= 1 && min_batches <= limit,
            "min_batches is " + std::to_string(min_batches) + "; it must be within [1, 2^31)");
    require(max_rows >= 1 && max_rows <= limit,
            "max_rows is " + std::to_string(max_rows) + "; it must be within [1, 2^31)");
    for (std::size_t i = 0; i < lengths.size(); ++i)
      if (lengths[i] < 0 || lengths[i] > tokens)
        throw ConfigError("TokenBudgetSampler: sample " + std::to_string(i) + " has length " +
                          std::to_string(lengths[i]) + ", and a batch has " + std::to_string(tokens) +
                          " tokens; lengths must be in [0, tokens]: shorten the sample or raise `tokens`");
    return Order(*this);
  }
};

}}}  // namespace lockstep::data
