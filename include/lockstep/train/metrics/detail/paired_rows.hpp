// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Rows of two sides, a pair for each sample, for metrics that compare all rows of one side with all of the other. An
/// object may instead have rows of one side, with a class each, for metrics that compare all rows with each other.
class PairedRows {
 public:
  /// Adds a pair.
  /// @param position the sample's position in the evaluation, which determines the order of pairs
  /// @throws ShapeError, naming `metric`, if earlier rows had another width
  template <class Number>
  void add(char const* metric, Index position, Number const* query, Number const* item, Index width) {
    begin_pair(metric, position, width);
    for (Index c = 0; c < width; ++c) queries_.push_back(static_cast<float>(query[c]));
    for (Index c = 0; c < width; ++c) items_.push_back(static_cast<float>(item[c]));
  }
  /// Adds a row with a class.   @throws ShapeError, naming `metric`, if earlier rows had another width
  template <class Number>
  void add_labelled(char const* metric, Index position, Number const* row, Index width, std::int64_t label) {
    begin_pair(metric, position, width);
    for (Index c = 0; c < width; ++c) queries_.push_back(static_cast<float>(row[c]));
    labels_.push_back(label);
  }
  /// Returns the pairs as bytes, for `add_samples` of another device or rank.
  [[nodiscard]] std::string samples() const;
  /// Adds the pairs of another device or rank.
  void add_samples(std::string_view bytes);

  /// Returns the number of pairs.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(positions_.size()); }
  /// Returns the number of queries whose own item is among the k items with the largest dot products. The first of
  /// equal ones counts as the larger.
  /// @throws DataError, naming `metric`, if a dot product is NaN
  [[nodiscard]] Index found(char const* metric, Index k) const;

  /// Rows that have another row of their class, and how many of them find one.
  struct Neighbors {
    Index rows = 0, found = 0;
  };
  /// Counts the labelled rows that have a row of their class among the k other rows with the largest dot products. A
  /// row of another class with an equal product counts as the larger.
  /// @throws DataError, naming `metric`, if a dot product is NaN
  [[nodiscard]] Neighbors neighbors(char const* metric, Index k) const;

 private:
  void begin_pair(char const* metric, Index position, Index width);
  /// Returns the pairs ordered by position.
  [[nodiscard]] std::vector<std::size_t> order() const;
  /// Calls f(row, products) with the products of a query with all items, in this order.
  template <class Function>
  void for_products(char const* metric, std::vector<std::size_t> const& order, std::vector<float> const& of_items,
                    Function const& f) const;

  Index width_ = 0;
  std::vector<Index> positions_;
  std::vector<float> queries_, items_;  // [pairs, width_]
  std::vector<std::int64_t> labels_;    // of labelled rows, which are the items, too
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/metrics/detail/paired_rows.ipp>
#endif
