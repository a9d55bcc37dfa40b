// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/dataset_list.hpp>
#include <lockstep/data/detail/forwarding.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Mixes several datasets of one type by weight. In any 1,000 consecutive samples, dataset d has its rounded share. A
/// dataset uses all of its samples before it repeats one.
/// @cost constant time per sample
template <Dataset Source>
class Mixture {
  static_assert(detail::RandomAccess<Source>,
                "Lockstep: Mixture chooses among samples, but a stream (Streamed) yields samples in order; mix "
                "the sources of its lanes");
  struct Plan;

 public:
  using Sample = SampleOf<Source>;  ///< type of a sample

  /// @param samples length of the mixture; 0: the sum of the datasets' sizes
  /// @throws ConfigError if datasets and weights differ in number, or a dataset is empty
  /// @throws ConfigError if a weight is not positive and finite, or too small for 1 sample in 1,000
  Mixture(std::vector<Source> datasets, std::vector<double> const& weights, Index samples = 0, std::uint64_t seed = 0)
      : size_(samples) {
    require(!datasets.empty() && datasets.size() == weights.size(),
            std::to_string(datasets.size()) + " datasets and " + std::to_string(weights.size()) +
                " weights; give at least one dataset, and a weight for each");
    require(samples >= 0, "samples is " + std::to_string(samples) + "; it must be at least 0");
    double total = 0;
    for (std::size_t d = 0; d < datasets.size(); ++d) {
      require(weights[d] > 0 && std::isfinite(weights[d]),
              "weight " + std::to_string(d) + " is " + shortest(weights[d]) + "; it must be positive and finite");
      require(datasets[d].size() > 0, "dataset " + std::to_string(d) + " is empty; leave it out");
      total += weights[d];
      if (samples == 0) size_ += datasets[d].size();
    }
    require(std::isfinite(total), "the sum of the weights is infinite; make them smaller");
    auto plan = std::make_shared<Plan>();
    plan->datasets = std::move(datasets);
    // The cumulative weight, rounded, is the end of each dataset's share of a period, so that the shares add up.
    double sum = 0;
    Index begin = 0;
    std::vector<Turn> turns;
    for (std::size_t d = 0; d < weights.size(); ++d) {
      sum += weights[d];
      auto const end = d + 1 == weights.size() ? period : static_cast<Index>(std::llround(sum / total * period));
      require(end > begin,
              "weight " + std::to_string(d) + " is less than a thousandth of all; leave it out or raise it");
      for (Index k = 0; k < end - begin; ++k) turns.push_back({static_cast<Index>(d), 0});
      plan->share.push_back(end - begin);
      begin = end;
    }
    plan->key = mix(mix("lockstep.data.mixture"), seed);
    KeyedPermutation const shuffled(period, plan->key);
    std::vector<Index> given(weights.size());
    for (Index p = 0; p < period; ++p) {
      auto turn = turns[static_cast<std::size_t>(shuffled(p))];
      turn.place = given[static_cast<std::size_t>(turn.dataset)]++;
      plan->turns.push_back(turn);
    }
    plan_ = std::move(plan);
  }

  /// Returns the length of the mixture.
  [[nodiscard]] Index size() const noexcept { return size_; }
  /// Returns sample i of [0, size()), from the dataset whose turn it is.
  [[nodiscard]] decltype(auto) get(Index i) const { return plan_->get(plan_->datasets, i); }
  /// Returns sample i with the key's random numbers.
  [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) const requires DrawsSamples<Source> {
    return plan_->get(plan_->datasets, i, key);
  }
  /// Returns the lengths of sample i without reading it.
  [[nodiscard]] SampleExtent<Sample> extent(Index i) const requires detail::ReadsInPlace<Source> {
    return plan_->extent(plan_->datasets, i);
  }
  /// Reads sample i into its row of a batch.
  void read_into(Index i, Row<Sample> row) const requires detail::ReadsInPlace<Source> {
    plan_->read_into(plan_->datasets, i, row);
  }
  /// Reads with a reader of each dataset.
  class Worker {
   public:
    /// As the dataset's `get`.
    [[nodiscard]] decltype(auto) get(Index i) { return plan_->get(readers_, i); }
    /// As the dataset's `get` with a key.
    [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) requires DrawsSamples<Source> {
      return plan_->get(readers_, i, key);
    }
    /// As the dataset's `extent`.
    [[nodiscard]] SampleExtent<Sample> extent(Index i) requires detail::ReadsInPlace<Source> {
      return plan_->extent(readers_, i);
    }
    /// As the dataset's `read_into`.
    void read_into(Index i, Row<Sample> row) requires detail::ReadsInPlace<Source> {
      plan_->read_into(readers_, i, row);
    }

   private:
    friend Mixture;
    explicit Worker(Mixture const& of) : plan_(of.plan_), readers_(detail::readers_of(plan_->datasets)) {}

    std::shared_ptr<Plan const> plan_;
    std::vector<detail::SampleReader<Source>> readers_;
  };
  /// Returns a reader for one worker.
  [[nodiscard]] Worker worker() const requires HasWorkers<Source> { return Worker(*this); }
  /// Returns the dataset that sample i comes from, and the sample's number in it.
  [[nodiscard]] std::pair<Index, Index> source(Index i) const { return plan_->source(i); }
  /// Returns the sample's name in its dataset, or its number there.
  [[nodiscard]] std::string name(Index i) const {
    auto const [dataset, sample] = source(i);
    auto const d = static_cast<std::size_t>(dataset);
    return detail::sample_name_in(plan_->datasets[d], sample, d);
  }
  /// Returns a hash of the datasets' fingerprints, their shares and the seed.
  [[nodiscard]] std::uint64_t fingerprint() const {
    auto hash = plan_->key;
    for (std::size_t d = 0; d < plan_->datasets.size(); ++d)
      hash = mix(hash, detail::size_and_fingerprint(plan_->datasets[d]), static_cast<std::uint64_t>(plan_->share[d]));
    return hash;
  }

 private:
  static constexpr Index period = 1000;
  struct Turn {
    Index dataset, place;  // place: among the dataset's turns of a period
  };
  struct Plan {
    std::vector<Source> datasets;
    std::vector<Index> share;  // of each dataset in a period
    std::vector<Turn> turns;   // [period]
    std::uint64_t key = 0;     // of their order

    [[nodiscard]] std::pair<Index, Index> source(Index i) const {
      auto const [dataset, place] = turns[static_cast<std::size_t>(i % period)];
      auto const d = static_cast<std::size_t>(dataset);
      auto const turn = i / period * share[d] + place;
      return {dataset, turn % static_cast<Index>(datasets[d].size())};
    }
    // @param readers the datasets, or readers of them
    template <class Readers, class... Key>
    [[nodiscard]] decltype(auto) get(Readers& readers, Index i, Key const&... drawn) const {
      auto const [dataset, sample] = source(i);
      return readers[static_cast<std::size_t>(dataset)].get(sample, drawn...);
    }
    template <class Readers>
    [[nodiscard]] SampleExtent<Sample> extent(Readers& readers, Index i) const {
      auto const [dataset, sample] = source(i);
      return readers[static_cast<std::size_t>(dataset)].extent(sample);
    }
    template <class Readers>
    void read_into(Readers& readers, Index i, Row<Sample> row) const {
      auto const [dataset, sample] = source(i);
      readers[static_cast<std::size_t>(dataset)].read_into(sample, row);
    }
  };
  static void require(bool holds, std::string const& what) {
    if (!holds) throw ConfigError("Mixture: " + what);
  }

  Index size_;
  std::shared_ptr<Plan const> plan_;
};

}}}  // namespace lockstep::data
