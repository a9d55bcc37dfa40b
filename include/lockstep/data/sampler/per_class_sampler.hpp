// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/sampler.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// Batches of so many samples of each of so many classes, class by class: what triplets, and other losses that need
/// several samples of a class on one device, are mined from. A micro-step takes one batch for each rank and device; the
/// loader's batch size is left alone. An epoch has as many batches as there are samples for. Classes take turns, and a
/// class goes through its samples, but for those that do not fill a turn, before they are shuffled anew.
/// @cost constant time per position, memory of one index per sample
/// @throws ConfigError from `over` when classes and samples differ in number, a class is negative, or a batch has more
/// classes than there are
/// @source Hermans, Beyer, Leibe: In defense of the triplet loss for person re-identification (2017), P and K
struct PerClassSampler {
  std::vector<std::int32_t> classes;  ///< of each sample; classes without samples are left out
  Index classes_per_batch = 1;
  Index samples_per_class = 1;  ///< those of a class that has fewer come again in the same batch
  std::uint64_t seed = 0;

  /// A template so that only programs that use it compile it.
  template <class = void>
  class OrderOf {
   public:
    explicit OrderOf(PerClassSampler const& sampler)
        : seed_(sampler.seed),
          each_(sampler.samples_per_class),
          rows_(sampler.classes_per_batch * each_),
          batches_(std::max<Index>(std::ssize(sampler.classes) > 0 ? 1 : 0, std::ssize(sampler.classes) / rows_)),
          members_(std::make_shared<Members const>(members_of(sampler.classes))),
          turns_(std::max<Index>(1, std::ssize(*members_) / sampler.classes_per_batch)) {}

    [[nodiscard]] Index size() const noexcept { return batches_ * rows_; }
    [[nodiscard]] Index samples() const noexcept { return size(); }
    [[nodiscard]] Index batches() const noexcept { return batches_; }
    [[nodiscard]] Index most_rows() const noexcept { return rows_; }
    [[nodiscard]] Index rows(Index, Index) const noexcept { return rows_; }
    [[nodiscard]] auto in(Index epoch) const {
      return [*this, epoch](Index position) { return index(epoch, position); };
    }
    [[nodiscard]] Index index(Index epoch, Index position) const {
      auto const batch = epoch * batches_ + position / rows_;  // of all epochs
      auto const turn = batch / turns_;                        // in which no class comes twice
      auto const place = batch % turns_ * (rows_ / each_) + position % rows_ / each_;
      auto const chosen = KeyedPermutation(std::ssize(*members_), key("class", turn, 0))(place);
      auto const& members = (*members_)[static_cast<std::size_t>(chosen)];
      auto const count = std::ssize(members), groups = std::max<Index>(1, count / each_);
      KeyedPermutation const shuffled(count, key("member", turn / groups, chosen));
      return members[static_cast<std::size_t>(shuffled((turn % groups * each_ + position % each_) % count))];
    }

   private:
    using Members = std::vector<std::vector<Index>>;

    [[nodiscard]] static Members members_of(std::vector<std::int32_t> const& classes) {
      Members all(classes.empty() ? 0
                                  : static_cast<std::size_t>(*std::max_element(classes.begin(), classes.end())) + 1);
      for (std::size_t i = 0; i < classes.size(); ++i)
        all[static_cast<std::size_t>(classes[i])].push_back(static_cast<Index>(i));
      std::erase_if(all, [](auto const& each) { return each.empty(); });
      return all;
    }
    [[nodiscard]] std::uint64_t key(char const* what, Index first, Index second) const noexcept {
      return mix(mix("lockstep.data.per_class_sampler"), mix(std::string_view(what)), seed_,
                 static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second));
    }

    std::uint64_t seed_;
    Index each_, rows_, batches_;
    std::shared_ptr<Members const> members_;
    Index turns_;  // batches in which every class comes at most once
  };

  using Order = OrderOf<>;

  [[nodiscard]] Order over(Dataset auto const& dataset) const {
    auto const require = [](bool holds, std::string const& what) {
      if (!holds) throw ConfigError("PerClassSampler: " + what);
    };
    require(static_cast<Index>(classes.size()) == static_cast<Index>(dataset.size()),
            std::to_string(classes.size()) + " classes for " + std::to_string(dataset.size()) +
                " samples; give the class of each sample");
    auto const negative = std::find_if(classes.begin(), classes.end(), [](auto each) { return each < 0; });
    require(negative == classes.end(), "the class of sample " + std::to_string(negative - classes.begin()) +
                                           " is negative; classes are numbered from 0");
    constexpr Index most = 1 << 20;
    require(classes_per_batch >= 1 && classes_per_batch <= most && samples_per_class >= 1 && samples_per_class <= most,
            "classes_per_batch is " + std::to_string(classes_per_batch) + " and samples_per_class " +
                std::to_string(samples_per_class) + "; both must be within [1, 2^20]");
    auto sorted = classes;
    std::sort(sorted.begin(), sorted.end());
    auto const present = static_cast<Index>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
    require(classes.empty() || classes_per_batch <= present,
            "classes_per_batch is " + std::to_string(classes_per_batch) + ", and the samples are of " +
                std::to_string(present) + " classes; it must be at most that");
    return Order(*this);
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
