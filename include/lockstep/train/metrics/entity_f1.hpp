// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/nn/autograd/layout_of.hpp>
#include <lockstep/nn/loss/expect_same_lengths.hpp>
#include <lockstep/train/metrics/detail/each_label.hpp>
#include <lockstep/train/metrics/detail/entities.hpp>
#include <lockstep/train/metrics/detail/required.hpp>
#include <lockstep/train/metrics/metric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// F1 score, precision and recall of entities, for models that tag each token of a sequence:
/// `EntityF1{&Sentence::tags, {"O", "B-PER", "I-PER"}}`. An entity counts as found if its type, its first and its last
/// token are those of the label. Counts are sums over all types (micro average), as in CoNLL's conlleval and in seqeval
/// by default.
/// Tags are "O", outside of entities, or a letter, a hyphen and the type: B (begin), I (inside), E or L (end), S or U
/// (single). This reads IOB1, IOB2, IOBES and BILOU: an I that follows no tag of its type begins an entity. The
/// predicted tag is the largest logit, the first of equal ones.
/// Tokens whose label is `ignored` are left out, in labels and predictions: for words of several tokens, give the first
/// token the word's tag, and the others this label. The values are 0 without entities.
/// @source conlleval.pl of CoNLL-2000
template <class Sample = detail::NoSample, class Labels = std::vector<int>>
class EntityF1 {
 public:
  /// @param tags member of the samples with a tag for each token
  /// @param names of the tags, in the order of the labels, such as ClassNames::names()
  /// @param ignored label of tokens that do not count
  /// @throws ConfigError for a name of another form
  EntityF1(Labels Sample::*tags, std::vector<std::string> const& names, std::optional<Index> ignored = {})
      : labels_(tags), tags_(detail::entity_tags(names)), ignored_(ignored) {}
  /// Rejects a metric without a member at compile time.
  explicit EntityF1(detail::NoMember auto const&...) requires detail::LacksMember<Sample>
      : EntityF1(detail::required_member<Labels Sample::*>(), {}) {}

  /// Counts one batch.
  /// @shape prediction a Sequence of logits on the host, with one logit for each tag
  /// @throws ShapeError if a sequence has another number of tags than of tokens, or there is another number of logits
  /// @throws DataError if a label is none of the tags, or a logit is NaN
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    constexpr bool has_tokens = requires { prediction.layout; };
    static_assert(
        has_tokens,
        "Lockstep: EntityF1 reads logits of tokens: predict returns a Sequence. If it returns several in a struct, a "
        "train::HeadMetric names one; see docs/reference/model.md");
    auto const column = batch[labels_];
    constexpr bool has_labels = nn::SequenceColumn<decltype(column), HostSpace> && requires {
      static_cast<Index>(column.values.data[0]);
    };
    static_assert(has_labels,
                  "Lockstep: EntityF1 takes sequences of integers or enumerators as labels, one for each token");
    if constexpr (has_tokens && has_labels) count(prediction, column);
  }
  /// Returns the number of entities that were found with their type and extent, of entities in the labels, and in the
  /// predictions.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Calls each(name, value) for "entity_f1", "entity_precision" and "entity_recall", in [0, 1].
  template <class Each>
  void values(Each const& each) const {
    auto const [both, wanted, found] = totals_;
    each("entity_f1", wanted + found == 0 ? 0 : 2 * both / (wanted + found));
    each("entity_precision", found == 0 ? 0 : both / found);
    each("entity_recall", wanted == 0 ? 0 : both / wanted);
  }
  /// Returns the name of the metric in messages.
  [[nodiscard]] static constexpr char const* name() noexcept { return "entity_f1"; }

 private:
  template <class Prediction, class Column>
  void count(Prediction const& prediction, Column const& column) {
    auto const& layout = prediction.layout;
    nn::expect_same_lengths("EntityF1", prediction, column);
    if (column.values.size() != layout.slots)
      detail::refuse_labels("EntityF1", layout.slots, "slots", column.values.size());
    auto const tags = std::ssize(tags_);
    expect<ShapeError>(prediction.width() == tags, [&] {
      return "EntityF1: the model predicts " + std::to_string(prediction.width()) + " numbers for each token, and " +
             std::to_string(tags) + " tags have names";
    });
    for (Index row = 0; row < layout.rows; ++row) {
      detail::Entities wanted, found;
      for (Index slot = layout.start(row), end = slot + layout.tokens(row); slot < end; ++slot) {
        auto const label = static_cast<Index>(column.values.data[slot]);
        if (ignored_ && label == *ignored_) continue;
        expect<DataError>(label >= 0 && label < tags, [&] {
          return "EntityF1: a label is " + std::to_string(label) + "; the tags are 0 to " + std::to_string(tags - 1);
        });
        auto const* const logits = prediction.tokens.value.data + slot * tags;
        detail::expect_numbers("EntityF1", logits, tags);
        wanted.add(tags_[static_cast<std::size_t>(label)]);
        found.add(tags_[static_cast<std::size_t>(std::max_element(logits, logits + tags) - logits)]);
      }
      wanted.end();
      found.end();
      totals_[0] += static_cast<double>(detail::Entities::common(wanted, found));
      totals_[1] += static_cast<double>(wanted.size());
      totals_[2] += static_cast<double>(found.size());
    }
  }

  Labels Sample::*labels_;
  std::vector<detail::EntityTag> tags_;
  std::optional<Index> ignored_;
  std::array<double, 3> totals_{};  // both, in labels, in predictions
};

}}}  // namespace lockstep::train
