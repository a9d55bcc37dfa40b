// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/detail/samples_by_class.hpp>
#include <lockstep/data/sampler/sampler.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// How often each class occurs in an epoch.
enum class Balance {
  repeat_small,     ///< as often as the largest class has samples; smaller classes repeat samples (the default)
  leave_out_large,  ///< as often as the smallest class has samples; larger classes use other samples in each epoch
};

/// Visits every class equally often: each run of as many positions as there are classes holds one sample of each,
/// shuffled. A class uses all of its samples before it repeats one.
/// @cost constant time per position
/// @throws ConfigError from `over` if classes and samples differ in number, or a class is negative
struct ClassBalancedSampler {
  std::vector<std::int32_t> classes;        ///< of each sample; classes without samples are left out
  Balance balance = Balance::repeat_small;  ///< samples of a class in an epoch
  std::uint64_t seed = 0;                   ///< of the order of classes and samples

  /// A template so that only programs that use it compile it.
  template <class = void>
  class OrderOf {
   public:
    /// @param all the samples of each class; empty classes are left out
    OrderOf(ClassBalancedSampler const& sampler, detail::SamplesByClass all) : seed_(sampler.seed) {
      auto const by_size = [](auto const& a, auto const& b) { return a.size() < b.size(); };
      if (!all.empty()) {
        auto const [smallest, largest] = std::minmax_element(all.begin(), all.end(), by_size);
        rounds_ = static_cast<Index>((sampler.balance == Balance::repeat_small ? *largest : *smallest).size());
      }
      members_ = std::make_shared<detail::SamplesByClass const>(std::move(all));
    }

    /// Returns the positions of an epoch.
    [[nodiscard]] Index size() const noexcept { return rounds_ * static_cast<Index>(members_->size()); }
    /// Returns the map from position to sample for one epoch.
    [[nodiscard]] auto in(Index epoch) const {
      return [*this, epoch](Index position) { return sample(epoch, position); };
    }

   private:
    [[nodiscard]] Index sample(Index epoch, Index position) const {
      auto const count = static_cast<Index>(members_->size());
      auto const round = position / count;
      auto const chosen = KeyedPermutation(count, key("class", epoch, round))(position % count);
      auto const& members = (*members_)[static_cast<std::size_t>(chosen)];
      auto const size = static_cast<Index>(members.size());
      auto const turn = epoch * rounds_ + round;  // earlier turns of this class, over all epochs
      KeyedPermutation const shuffled(size, key("member", turn / size, chosen));
      return members[static_cast<std::size_t>(shuffled(turn % size))];
    }
    [[nodiscard]] std::uint64_t key(char const* what, Index first, Index second) const noexcept {
      return mix(mix("lockstep.data.class_balanced_sampler"), mix(std::string_view(what)), seed_,
                 static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second));
    }

    std::uint64_t seed_;
    Index rounds_ = 0;
    std::shared_ptr<detail::SamplesByClass const> members_;
  };

  using Order = OrderOf<>;  ///< type of the order

  /// Returns the order for a dataset with as many samples as `classes`.
  [[nodiscard]] Order over(Dataset auto const& dataset) const {
    return Order(*this, detail::samples_by_class("ClassBalancedSampler", classes, static_cast<Index>(dataset.size())));
  }
};

}}}  // namespace lockstep::data
