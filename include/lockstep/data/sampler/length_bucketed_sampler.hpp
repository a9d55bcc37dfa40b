// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/detail/table_cache.hpp>
#include <lockstep/data/sampler/sampler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Visits every sample once per epoch, with samples of similar length in each global batch. Cuts the shuffled order
/// into windows, sorts each window by length, cuts it into batches, and shuffles the batches. This reduces padding, and
/// samples are still combined differently in each epoch.
/// @cost a sort per window, kept while it is in use
/// @throws ConfigError from `over` if lengths and samples differ in number, or an option is below 1
struct LengthBucketedSampler {
  std::vector<std::int32_t> lengths;  ///< of each sample
  Index global_batch = 1;  ///< samples of one or more micro-steps over all shards: batch size x ranks x devices
  Index window = 4096;     ///< samples that are sorted together, rounded up to whole batches
  std::uint64_t seed = 0;  ///< of the shuffled order

  /// A template so that only programs that use it compile it.
  template <class = void>
  class OrderOf {
   public:
    /// Copies the lengths.
    explicit OrderOf(LengthBucketedSampler const& sampler)
        : lengths_(std::make_shared<std::vector<std::int32_t> const>(sampler.lengths)),
          global_batch_(sampler.global_batch),
          batch_(std::min(sampler.global_batch, std::max<Index>(size(), 1))),
          window_((std::min(sampler.window, std::max<Index>(size(), 1)) + batch_ - 1) / batch_ * batch_),
          seed_(sampler.seed),
          tables_(std::make_shared<detail::TableCache>(std::size_t{8})) {}

    /// Returns the number of samples.
    [[nodiscard]] Index size() const noexcept { return static_cast<Index>(lengths_->size()); }
    /// Returns `global_batch`. A loader accepts this order only if it is a multiple of the samples of a micro-step over
    /// all shards.
    [[nodiscard]] Index global_batch() const noexcept { return global_batch_; }

    /// Returns the map from position to sample for one epoch. Use it from one thread: it keeps the window of its last
    /// call.
    [[nodiscard]] auto in(Index epoch) const {
      return [*this, epoch, at = Index{-1}, table = detail::TableCache::Table{}](Index position) mutable {
        if (auto const part = position / window_; part != at) {
          table = tables_->get({epoch, part}, [&](auto& out) { sort(epoch, part, out); });
          at = part;
        }
        return (*table)[static_cast<std::size_t>(position % window_)];
      };
    }

   private:
    void sort(Index epoch, Index part, std::vector<Index>& table) const {
      auto const begin = part * window_, end = std::min(size(), begin + window_);
      KeyedPermutation const shuffled(size(), key("sample", epoch, 0));
      std::vector<std::pair<std::int32_t, Index>> sorted;  // length, then place in the shuffled order
      for (Index p = begin; p < end; ++p) sorted.emplace_back((*lengths_)[static_cast<std::size_t>(shuffled(p))], p);
      // A short batch stays last, because positions must form whole batches. It has samples of any length; otherwise a
      // loader that drops it would never use the longest samples.
      auto const whole = (end - begin) / batch_;
      std::sort(sorted.begin(), sorted.begin() + whole * batch_);
      KeyedPermutation const batches(std::max<Index>(whole, 1), key("batch", epoch, part));
      table.reserve(sorted.size());
      for (Index p = 0; p < end - begin; ++p) {
        auto const batch = p / batch_ < whole ? batches(p / batch_) : whole;
        table.push_back(shuffled(sorted[static_cast<std::size_t>(batch * batch_ + p % batch_)].second));
      }
    }
    [[nodiscard]] std::uint64_t key(char const* what, Index first, Index second) const noexcept {
      return mix(mix("lockstep.data.length_bucketed_sampler"), mix(std::string_view(what)), seed_,
                 static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second));
    }

    std::shared_ptr<std::vector<std::int32_t> const> lengths_;
    Index global_batch_, batch_, window_;
    std::uint64_t seed_;
    std::shared_ptr<detail::TableCache> tables_;
  };

  using Order = OrderOf<>;  ///< type of the order

  /// Returns the order for a dataset with as many samples as `lengths`.
  [[nodiscard]] Order over(Dataset auto const& dataset) const {
    auto const require = [](bool holds, std::string const& what) {
      if (!holds) throw ConfigError("LengthBucketedSampler: " + what);
    };
    require(static_cast<Index>(lengths.size()) == static_cast<Index>(dataset.size()),
            std::to_string(lengths.size()) + " lengths for " + std::to_string(dataset.size()) +
                " samples; give the length of each sample");
    require(global_batch >= 1, "global_batch is " + std::to_string(global_batch) + "; it must be at least 1");
    require(window >= 1, "window is " + std::to_string(window) + "; it must be at least 1");
    return Order(*this);
  }
};

}}}  // namespace lockstep::data
