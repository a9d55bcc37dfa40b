// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/expect_optional_members.hpp>
#include <lockstep/data/detail/forwarding.hpp>
#include <lockstep/data/detail/sample_reader.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Two samples that belong together; in a batch `batch[&Zipped<A, B>::first][&A::member]`.
template <class First, class Second>
struct Zipped {
  First first{};    ///< sample of the first dataset
  Second second{};  ///< sample of the second dataset
};

/// Pairs sample i of two datasets. If both draw random numbers, stages with equal names draw equal numbers: an image
/// and its mask are cropped equally.
/// @throws ConfigError if their lengths differ
/// @throws DataError for two TextLinesDatasets that leave out different blank lines
template <Dataset First, Dataset Second>
class Zip {
  static_assert(detail::RandomAccess<First> && detail::RandomAccess<Second>,
                "Lockstep: Zip pairs samples by number, but a stream (Streamed) yields samples in order; pair the "
                "sources of its lanes");
  static_assert(detail::expect_optional_members<First>() && detail::expect_optional_members<Second>());

 public:
  using Sample = Zipped<SampleOf<First>, SampleOf<Second>>;  ///< type of a pair

  /// Takes two datasets of equal length.
  Zip(First first, Second second) : first_(std::move(first)), second_(std::move(second)) {
    if constexpr (requires { first_.expect_pairs(second_); }) first_.expect_pairs(second_);
    if (static_cast<Index>(first_.size()) != static_cast<Index>(second_.size())) {
      throw ConfigError("Zip: the first dataset has " + std::to_string(first_.size()) + " samples and the second " +
                        std::to_string(second_.size()) + "; each sample needs its partner");
    }
  }

  /// Returns the length of both datasets.
  [[nodiscard]] Index size() const { return first_.size(); }
  /// Returns the samples i of both datasets.
  [[nodiscard]] Sample get(Index i) const { return {first_.get(i), second_.get(i)}; }
  /// Returns both samples with the key's random numbers.
  [[nodiscard]] Sample get(Index i, SampleKey const& key) const requires(DrawsSamples<First> || DrawsSamples<Second>) {
    return {detail::get_with_key(first_, i, key), detail::get_with_key(second_, i, key)};
  }
  /// Reads with a reader of each dataset.
  class Worker {
   public:
    /// As the dataset's `get`.
    [[nodiscard]] Sample get(Index i) { return {first_.get(i), second_.get(i)}; }
    /// As the dataset's `get` with a key.
    [[nodiscard]] Sample get(Index i, SampleKey const& key) requires(DrawsSamples<First> || DrawsSamples<Second>) {
      return {first_.get(i, key), second_.get(i, key)};
    }

   private:
    friend Zip;
    explicit Worker(Zip const& of) : first_(of.first_), second_(of.second_) {}

    detail::SampleReader<First> first_;
    detail::SampleReader<Second> second_;
  };
  /// Returns a reader for one worker.
  [[nodiscard]] Worker worker() const requires(HasWorkers<First> || HasWorkers<Second>) { return Worker(*this); }
  /// Returns both names, as "a with b".
  [[nodiscard]] std::string name(Index i) const {
    return detail::sample_name(first_, i) + " with " + detail::sample_name(second_, i);
  }
  /// Returns a hash of both datasets' sizes and fingerprints.
  [[nodiscard]] std::uint64_t fingerprint() const {
    return mix(detail::size_and_fingerprint(first_), detail::size_and_fingerprint(second_));
  }
  /// Returns the groups of the first dataset if it has groups, or else of the second.
  [[nodiscard]] Index groups() const requires(GroupedDataset<First> || GroupedDataset<Second>) {
    if constexpr (GroupedDataset<First>)
      return first_.groups();
    else
      return second_.groups();
  }
  /// Returns the group of pair i in [0, groups()).
  [[nodiscard]] Index group(Index i) const requires(GroupedDataset<First> || GroupedDataset<Second>) {
    if constexpr (GroupedDataset<First>)
      return first_.group(i);
    else
      return second_.group(i);
  }

 private:
  First first_;
  Second second_;
};

}}}  // namespace lockstep::data
