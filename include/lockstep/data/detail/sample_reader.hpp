// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <optional>
#include <string>
#include <utility>

#include <lockstep/data/dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

template <class Source>
struct ReaderType {
  using type = Source const&;
};
template <HasWorkers Source>
struct ReaderType<Source> {
  using type = decltype(std::declval<Source const&>().worker());
};

/// A dataset whose samples arrive in order and may end (data::Streamed). Each position is taken once, starting at the
/// position that it was rewound to.
template <class Source>
concept SequentialAccess = Dataset<Source> &&
    requires(Source const& dataset, SampleKey const& key, Index epoch, Index position) {
  { dataset.take(key) } -> std::same_as<std::optional<SampleOf<Source>>>;
  dataset.rewind(epoch, position);
  { dataset.lanes() } -> std::convertible_to<Index>;
};

/// Size of a stream of unknown length: more samples than any epoch has.
inline constexpr Index unknown_size = Index{1} << 40;

/// A dataset that returns samples in any order, as required by datasets that choose samples.
template <class Source>
concept RandomAccess = Dataset<Source> && !SequentialAccess<Source>;

/// The object that one worker reads samples with: its own reader if the dataset makes readers, otherwise the dataset.
template <class Source>
class SampleReader {
 public:
  explicit SampleReader(Source const& dataset) : reader_(make(dataset)) {}

  [[nodiscard]] decltype(auto) get(Index i) { return reader_.get(i); }
  /// Draws from the key if the dataset draws.
  [[nodiscard]] decltype(auto) get(Index i, SampleKey const& key) {
    if constexpr (requires { reader_.get(i, key); }) {
      return reader_.get(i, key);
    } else {
      return reader_.get(i);
    }
  }
  [[nodiscard]] auto take(SampleKey const& key) { return reader_.take(key); }
  [[nodiscard]] auto extent(Index i) { return reader_.extent(i); }
  template <class Row>
  void read_into(Index i, Row&& row) {
    reader_.read_into(i, std::forward<Row>(row));
  }

 private:
  static decltype(auto) make(Source const& dataset) {
    if constexpr (HasWorkers<Source>) {
      return dataset.worker();
    } else {
      return (dataset);
    }
  }
  typename ReaderType<Source>::type reader_;
};

/// Returns the name of a sample for messages: "sample 17 (clips/17.npy)".
template <class Source>
std::string name_of(Source const& dataset, Index index) {
  auto number = "sample " + std::to_string(index);
  if constexpr (NamesSamples<Source>) {
    return number + " (" + std::string(dataset.name(index)) + ")";
  } else {
    return number;
  }
}

}}}  // namespace lockstep::data::detail
