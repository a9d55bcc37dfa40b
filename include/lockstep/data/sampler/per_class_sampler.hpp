// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/detail/samples_by_class.hpp>
#include <lockstep/data/sampler/sampler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Makes batches of `samples_per_class` samples for each of `classes_per_batch` classes, class by class. For triplet
/// losses and other losses that need several samples of a class on one device. A micro-step takes one batch for each
/// rank and device; leave the loader's batch size at 1. An epoch has as many batches as the samples fill. Classes take
/// turns. A class uses all its samples, except the rest that does not fill a turn, before it is shuffled again.
/// @cost constant time per position, memory of one index per sample
/// @throws ConfigError from `over` if classes and samples differ in number, or a class is negative
/// @throws ConfigError from `over` if a batch has more classes than there are
/// @source Hermans, Beyer, Leibe: In defense of the triplet loss for person re-identification (2017), P and K
struct PerClassSampler {
  std::vector<std::int32_t> classes;  ///< of each sample; classes without samples are left out
  Index classes_per_batch = 1;        ///< different classes in a batch
  Index samples_per_class = 1;        ///< a class with fewer samples repeats them in the same batch
  std::uint64_t seed = 0;             ///< of the order of classes and samples

  /// A template so that only programs that use it compile it.
  template <class = void>
  class OrderOf {
   public:
    /// @param all the samples of each class; empty classes are left out
    OrderOf(PerClassSampler const& sampler, detail::SamplesByClass all)
        : seed_(sampler.seed),
          each_(sampler.samples_per_class),
          rows_(sampler.classes_per_batch * each_),
          batches_(std::max<Index>(all.empty() ? 0 : 1, std::ssize(sampler.classes) / rows_)),
          turns_(std::max<Index>(1, std::ssize(all) / sampler.classes_per_batch)),
          members_(std::make_shared<detail::SamplesByClass const>(std::move(all))) {}

    /// Returns the positions of an epoch.
    [[nodiscard]] Index size() const noexcept { return batches_ * rows_; }
    /// Returns the samples of an epoch, repeated ones counted.
    [[nodiscard]] Index samples() const noexcept { return size(); }
    /// Returns the batches of an epoch.
    [[nodiscard]] Index batches() const noexcept { return batches_; }
    /// Returns the rows of each batch.
    [[nodiscard]] Index max_rows() const noexcept { return rows_; }
    /// Returns the rows of a batch; all are full.
    [[nodiscard]] Index rows(Index, Index) const noexcept { return rows_; }
    /// Returns the map from position to sample for one epoch.
    [[nodiscard]] auto in(Index epoch) const {
      return [*this, epoch](Index position) { return sample(epoch, position); };
    }

   private:
    [[nodiscard]] Index sample(Index epoch, Index position) const {
      auto const batch = epoch * batches_ + position / rows_;  // over all epochs
      auto const turn = batch / turns_;                        // a turn uses no class twice
      auto const place = batch % turns_ * (rows_ / each_) + position % rows_ / each_;
      auto const chosen = KeyedPermutation(std::ssize(*members_), key("class", turn, 0))(place);
      auto const& members = (*members_)[static_cast<std::size_t>(chosen)];
      auto const count = std::ssize(members), groups = std::max<Index>(1, count / each_);
      KeyedPermutation const shuffled(count, key("member", turn / groups, chosen));
      return members[static_cast<std::size_t>(shuffled((turn % groups * each_ + position % each_) % count))];
    }
    [[nodiscard]] std::uint64_t key(char const* what, Index first, Index second) const noexcept {
      return mix(mix("lockstep.data.per_class_sampler"), mix(std::string_view(what)), seed_,
                 static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second));
    }

    std::uint64_t seed_;
    Index each_, rows_, batches_;
    Index turns_;  // batches in which every class occurs at most once
    std::shared_ptr<detail::SamplesByClass const> members_;
  };

  using Order = OrderOf<>;  ///< type of the order

  /// Returns the order for a dataset with as many samples as `classes`.
  [[nodiscard]] Order over(Dataset auto const& dataset) const {
    auto members = detail::samples_by_class("PerClassSampler", classes, static_cast<Index>(dataset.size()));
    auto const require = [](bool holds, std::string const& what) {
      if (!holds) throw ConfigError("PerClassSampler: " + what);
    };
    constexpr Index limit = 1 << 20;
    require(
        classes_per_batch >= 1 && classes_per_batch <= limit && samples_per_class >= 1 && samples_per_class <= limit,
        "classes_per_batch is " + std::to_string(classes_per_batch) + " and samples_per_class " +
            std::to_string(samples_per_class) + "; both must be within [1, 2^20]");
    require(members.empty() || classes_per_batch <= std::ssize(members),
            "classes_per_batch is " + std::to_string(classes_per_batch) + ", and the samples are of " +
                std::to_string(members.size()) + " classes; it must be at most that");
    return Order(*this, std::move(members));
  }
};

}}}  // namespace lockstep::data
