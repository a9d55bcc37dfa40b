// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <optional>
#include <string>
#include <utility>

#include <lockstep/data/dataset.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data::detail {

template <class D>
struct ReaderType {
  using type = D const&;
};
template <HasWorkers D>
struct ReaderType<D> {
  using type = decltype(std::declval<D const&>().worker());
};

/// A dataset whose samples come one after the other and may have ended (data::Streamed): each place that is dealt is
/// taken once, from where it was rewound to.
template <class D>
concept ReadsForward = Dataset<D> && requires(D const& dataset, SampleKey const& key, Index epoch, Index position) {
  { dataset.take(key) } -> std::same_as<std::optional<SampleOf<D>>>;
  dataset.rewind(epoch, position);
  { dataset.lanes() } -> std::convertible_to<Index>;
};

/// A dataset whose samples are asked for in any order, as those that choose among them need.
template <class D>
concept ReadsAnywhere = Dataset<D> && !ReadsForward<D>;

/// What one worker reads samples with: a reader of its own where the dataset makes them, else the dataset.
template <class D>
class SampleReader {
 public:
  explicit SampleReader(D const& dataset) : reader_(make(dataset)) {}

  [[nodiscard]] decltype(auto) get(Index i) { return reader_.get(i); }
  /// Drawn where the dataset draws.
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
  static decltype(auto) make(D const& dataset) {
    if constexpr (HasWorkers<D>) {
      return dataset.worker();
    } else {
      return (dataset);
    }
  }
  typename ReaderType<D>::type reader_;
};

/// "sample 17 (clips/17.npy)", for messages.
template <class D>
std::string name_of(D const& dataset, Index index) {
  auto number = "sample " + std::to_string(index);
  if constexpr (NamesSamples<D>) {
    return number + " (" + std::string(dataset.name(index)) + ")";
  } else {
    return number;
  }
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data::detail
