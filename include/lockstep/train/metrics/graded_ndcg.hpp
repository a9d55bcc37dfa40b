// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/nn/loss/expect_same_lengths.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Gain of a document of a given relevance in GradedNdcg.
enum class NdcgGain {
  exponential,  ///< 2^relevance - 1, as LightGBM and XGBoost by default
  linear,       ///< the relevance, as scikit-learn's ndcg_score
};

/// Normalized discounted cumulative gain of models that rank the documents of a query: `GradedNdcg{&Query::relevance,
/// 10}` reports it as "graded_ndcg_10". The mean over the queries of DCG / ideal DCG. DCG is the sum over the k
/// documents with the largest scores of gain / log2(1 + rank). Documents of equal scores share the mean of their gains,
/// so the order in the file has no effect. Queries without a document of positive relevance do not count. The value is
/// 0 without queries.
/// @source Järvelin and Kekäläinen, 2002; ties as McSherry and Najork, 2008
template <class Sample = detail::NoSample, class Relevance = std::vector<float>>
class GradedNdcg {
 public:
  /// @param relevance member of the samples with a number, at least 0, for each document
  /// @throws ConfigError if k is not positive
  GradedNdcg(Relevance Sample::*relevance, Index k, NdcgGain gain = NdcgGain::exponential)
      : relevance_(relevance), k_(k), gain_(gain), name_("graded_ndcg_" + std::to_string(k)) {
    if (k < 1) throw ConfigError("GradedNdcg: k is " + std::to_string(k) + "; it must be at least 1");
  }
  /// Rejects a metric without a member at compile time.
  explicit GradedNdcg(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : GradedNdcg(detail::required_member<Relevance Sample::*>(), 2) {}
  /// Rejects a metric without k at compile time.
  explicit GradedNdcg(Relevance Sample::*relevance) : GradedNdcg(relevance, detail::required_number<Relevance>()) {}

  /// Counts one batch.
  /// @shape prediction a Sequence on the host with one score for each document, or a Variable [rows, documents]
  /// @throws ShapeError if a query has another number of scores than of relevances
  /// @throws DataError for a score that is NaN, or a relevance that is negative, or whose gain is above 1e300
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    auto const column = batch[relevance_];
    constexpr bool has_scores = detail::HasLogits<Prediction>, has_lists = requires {
      static_cast<double>(column.values.data[0]);
    };
    static_assert(has_scores,
                  "Lockstep: GradedNdcg reads scores: predict returns a Sequence with one score for each document. If "
                  "it returns several in a struct, a train::HeadMetric names one; see docs/reference/model.md");
    static_assert(has_lists,
                  "Lockstep: GradedNdcg takes a member with a number for each document, such as a std::vector<float>");
    if constexpr (has_scores && has_lists) {
      if constexpr (requires { prediction.layout; }) {
        nn::expect_same_lengths("GradedNdcg", prediction, column);
        expect<ShapeError>(prediction.width() == 1 && column.values.size() == prediction.layout.slots, [&] {
          return "GradedNdcg: the prediction has " + std::to_string(prediction.layout.slots) + " slots with " +
                 std::to_string(prediction.width()) + " numbers each, and there are " +
                 std::to_string(column.values.size()) + " relevances; each document needs one score and one relevance";
        });
        for (Index row = 0; row < prediction.layout.rows; ++row)
          add_query(prediction.tokens.value.data, column.values.data, prediction.layout.start(row),
                    prediction.layout.tokens(row), batch, row);
      } else {
        auto const rows = prediction.extent(0), documents = prediction.extent(1);
        expect<ShapeError>(column.values.size() == rows * documents, [&] {
          return "GradedNdcg: the prediction has " + std::to_string(rows) + " rows of " + std::to_string(documents) +
                 " scores, and there are " + std::to_string(column.values.size()) +
                 " relevances; each score needs one. For queries of unequal numbers of documents predict a Sequence";
        });
        for (Index row = 0; row < rows; ++row)
          add_query(prediction.value.data, column.values.data, row * documents, documents, batch, row);
      }
    }
  }
  /// Returns the sum of the queries' values and the number of counted queries.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns the mean in [0, 1]; 0 without queries.
  [[nodiscard]] double value() const noexcept { return totals_[1] == 0 ? 0 : totals_[0] / totals_[1]; }
  /// Returns "graded_ndcg_" and k.
  [[nodiscard]] char const* name() const noexcept { return name_.c_str(); }

 private:
  static constexpr double largest_gain = 1e300;  // sums of gains are finite

  struct Document {
    double score, gain;
  };

  template <class Score, class Number>
  void add_query(Score const* scores, Number const* relevances, Index first, Index count, auto const& batch,
                 Index row) {
    std::vector<Document> documents;
    for (Index i = first; i < first + count; ++i) {
      auto const relevance = static_cast<double>(relevances[i]);
      auto const gain = gain_ == NdcgGain::linear ? relevance : std::exp2(relevance) - 1;
      expect<DataError>(relevance >= 0 && gain <= largest_gain, [&] {
        return "GradedNdcg: document " + std::to_string(i - first) + " of sample " + sample_name(batch, row) +
               " has the relevance " + shortest(relevance) +
               (relevance >= 0
                    ? ", whose gain is above 1e300; NdcgGain::linear takes relevances instead of 2^relevance - 1"
                    : "; relevances are at least 0");
      });
      documents.push_back({static_cast<double>(scores[i]), gain});
    }
    detail::expect_numbers("GradedNdcg", scores + first, count);
    std::sort(documents.begin(), documents.end(), [](auto const& a, auto const& b) { return a.gain > b.gain; });
    double ideal = 0;
    for (Index i = 0; i < std::min(k_, count); ++i) ideal += documents[static_cast<std::size_t>(i)].gain * discount(i);
    if (ideal == 0) return;
    // Equal scores stay in the order of their gains, so that the sum does not depend on the order of the documents.
    std::stable_sort(documents.begin(), documents.end(),
                     [](auto const& a, auto const& b) { return a.score > b.score; });
    double found = 0;
    for (Index begin = 0, end = 0; begin < std::min(k_, count); begin = end) {
      double gains = 0, discounts = 0;
      auto const score = documents[static_cast<std::size_t>(begin)].score;
      for (; end < count && !(documents[static_cast<std::size_t>(end)].score < score); ++end) {
        gains += documents[static_cast<std::size_t>(end)].gain;
        if (end < k_) discounts += discount(end);
      }
      found += gains / static_cast<double>(end - begin) * discounts;
    }
    totals_[0] += found / ideal;
    totals_[1] += 1;
  }
  [[nodiscard]] static double discount(Index place) { return 1 / std::log2(static_cast<double>(place + 2)); }
  /// Returns the position of a row in the order of the evaluation, if the batch has positions, or else its row.
  [[nodiscard]] static std::string sample_name(auto const& batch, Index row) {
    if constexpr (requires { batch.positions()(row); })
      return std::to_string(batch.positions()(row));
    else
      return std::to_string(row);
  }

  Relevance Sample::*relevance_;
  Index k_;
  NdcgGain gain_;
  std::string name_;
  std::array<double, 2> totals_{};  // sum of the queries' values, counted
};

}}}  // namespace lockstep::train
