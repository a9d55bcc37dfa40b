// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/data/aggregate.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/row.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/text/detail/token_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Reads texts of a TokenCache as samples of your own aggregate with two members: the tokens and the label. Tokens are
/// copied once, from the page cache into the batch. Copies share the open file. Thread-safe.
/// @throws DataError from `get`, `extent` and `read_into` if the file was damaged after it was opened
template <class Sample, class Label>
class TokenDataset {
  static_assert(Aggregate<Sample> && member_count<Sample> == 2,
                "Lockstep: a sample of TokenDataset is an aggregate of two members: std::vector<std::int32_t> for the "
                "tokens and an integer for the label");
  static_assert(std::is_integral_v<Label>, "Lockstep: the label of a TokenDataset's sample is an integer");

 public:
  /// For TokenCache, which constructs these datasets.
  TokenDataset(std::shared_ptr<detail::TokenFile const> file, std::size_t part,
               std::vector<std::int32_t> Sample::*tokens, Label Sample::*label)
      : file_(std::move(file)), part_(part), tokens_(tokens), label_(label) {}

  /// Returns the number of texts.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(file_->header().parts[part_].rows); }
  /// Returns text i of [0, size()) as tokens and label.
  [[nodiscard]] Sample get(Index i) const {
    auto const record = file_->record(part_, i);
    Sample out{};
    (out.*tokens_).resize(record.length);
    file_->read(record, out.*tokens_);
    out.*label_ = static_cast<Label>(record.label);
    return out;
  }
  /// Returns the number of tokens of text i.
  [[nodiscard]] SampleExtent<Sample> extent(Index i) const {
    return {{static_cast<Index>(file_->record(part_, i).length)}};
  }
  /// Reads text i into its row of a batch.
  void read_into(Index i, Row<Sample> row) const {
    auto const record = file_->record(part_, i);
    file_->read(record, row[tokens_]);
    row[label_] = static_cast<Label>(record.label);
  }
  /// Returns a hash of all tokens and labels, equal to the fingerprint of an InMemoryDataset of the same samples.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return file_->header().parts[part_].fingerprint; }

 private:
  std::shared_ptr<detail::TokenFile const> file_;
  std::size_t part_;
  std::vector<std::int32_t> Sample::*tokens_;
  Label Sample::*label_;
};

}}}  // namespace lockstep::data
