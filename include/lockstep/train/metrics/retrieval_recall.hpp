// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/train/metrics/detail/paired_rows.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Recall at k of a model with two towers, over all samples of the evaluation: the share of samples whose item is among
/// the k items with the largest dot products with the sample's query. query(prediction) and item(prediction) return
/// the rows of a batch, such as those of nn::l2_normalize. `RetrievalRecall{"caption", image, caption, 5}` is reported
/// as "caption_recall_5". The first of equal products counts as the larger, so rows that are all equal give k /
/// samples. Each sample has one right item: a second sample with an equal item counts as a wrong one. The value does
/// not depend on the batch size or on the number of devices and ranks, except by rounding of the rows. It is 0 without
/// samples. Each rank keeps the rows of all samples, 8 bytes per sample and column, and multiplies each with each.
template <class Query, class Item>
class RetrievalRecall {
 public:
  /// @param found name of the items that are found, before "_recall_"
  /// @param query function of the prediction that returns the queries   @param item function that returns the items
  /// @throws ConfigError if k is not positive
  RetrievalRecall(std::string_view found, Query query, Item item, Index k = 1)
      : query_(std::move(query)),
        item_(std::move(item)),
        k_(k),
        name_(std::string(found) + "_recall_" + std::to_string(k)) {
    if (k < 1) throw ConfigError("RetrievalRecall: k is " + std::to_string(k) + "; it must be at least 1");
  }

  /// Adds the rows of one batch.
  /// @shape query(prediction), item(prediction) [rows, width], Variables on the host
  /// @throws ShapeError if their shapes differ, they have another number of rows than the batch, or another width than
  /// before
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    auto const queries = std::invoke(query_, prediction).value;
    auto const items = std::invoke(item_, prediction).value;
    auto const positions = batch.positions();
    expect<ShapeError>(queries.extent == items.extent && queries.extent[0] == positions.size(), [&] {
      return "RetrievalRecall: the queries are " + to_string(queries.extent) + ", the items " +
             to_string(items.extent) + " and the batch has " + std::to_string(positions.size()) +
             " samples; each sample needs a query and an item of one width";
    });
    Index const width = queries.extent[1];
    for (Index row = 0; row < queries.extent[0]; ++row)
      pairs_.add("RetrievalRecall", positions(row), queries.data + row * width, items.data + row * width, width);
  }
  /// Returns no totals: the rows are samples.
  [[nodiscard]] std::span<double> totals() noexcept { return {}; }
  /// Returns the rows as bytes, for `add_samples` of a metric of another device or rank.
  [[nodiscard]] std::string samples() const { return pairs_.samples(); }
  /// Adds the rows of another metric.
  void add_samples(std::string_view bytes) { pairs_.add_samples(bytes); }
  /// Returns the share in [0, 1].
  /// @throws DataError if a dot product is NaN
  [[nodiscard]] double value() const {
    auto const count = pairs_.size();
    return count == 0 ? 0 : static_cast<double>(pairs_.found("RetrievalRecall", k_)) / static_cast<double>(count);
  }
  /// Returns "FOUND_recall_K".
  [[nodiscard]] char const* name() const noexcept { return name_.c_str(); }

 private:
  Query query_;
  Item item_;
  Index k_;
  std::string name_;
  detail::PairedRows pairs_;
};

}}}  // namespace lockstep::train
