// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/autograd/layout_of.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

namespace detail {
template <class Layout>
struct SpaceOfLayout;
template <class Space>
struct SpaceOfLayout<SequenceLayout<Space>> {
  using type = Space;
};
/// Returns the numbers of a column, or the view itself.
template <class Numbers>
[[nodiscard]] auto numbers_of(Numbers const& numbers) {
  if constexpr (requires { numbers.values; })
    return numbers.values;
  else
    return numbers;
}
}  // namespace detail

/// Checks that a column of sequences has one element, such as a label, for each token of `sequences`, row by row.
/// Without the check, padding would replace missing elements. Skips rows without a layout, and lengths on a device.
/// @throws ShapeError, naming `who` and the row, if a sequence has more or fewer elements than tokens
template <class Sequences, class Column>
void expect_same_lengths(char const* who, Sequences const& sequences, Column const& column) {
  if constexpr (requires { sequences.layout.lengths; }) {
    using Space = typename detail::SpaceOfLayout<std::remove_cvref_t<decltype(sequences.layout)>>::type;
    if constexpr (Space::host_accessible && (PaddedSequences<Column, Space> || RaggedSequences<Column, Space>)) {
      auto const& layout = sequences.layout;
      for (Index row = 0; row < layout.rows; ++row) {
        Index elements = 0;
        if constexpr (RaggedSequences<Column, Space>) {
          if (column.offsets.extent[0] != layout.rows + 1) return;  // other sequences: the caller compares the total
          elements = column.offsets(row + 1) - column.offsets(row);
        } else {
          if (column.lengths.extent[0] != layout.rows) return;
          elements = static_cast<Index>(column.lengths(row));
        }
        expect<ShapeError>(elements == layout.tokens(row), [&] {
          return std::string(who) + ": sequence " + std::to_string(row) + " has " + std::to_string(layout.tokens(row)) +
                 " tokens and " + std::to_string(elements) + " elements of the column; each token needs one";
        });
      }
    }
  }
}

}}}  // namespace lockstep::nn
