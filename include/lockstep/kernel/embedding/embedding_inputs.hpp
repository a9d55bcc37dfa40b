// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/embedding/assembly.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Unit of a position.
enum class PositionUnit {
  tokens,  ///< tokens of the assembled sequence
  steps,   ///< tokens of the token's own segment: state, action and return of one time step share a position
};

/// Normalization of an embedding's rows.
enum class Norm {
  none,   ///< no normalization
  layer,  ///< weight * (x - mean) / sqrt(variance + epsilon) + bias
  rms,    ///< weight * x / sqrt(mean of x^2 + epsilon)
};

/// Inputs whose sum is the tokens of a batch of sequences. Token i of segment s is
///   dropout(norm(scale * (sum over the parts of s of their row for entry i) + position[its position] + type[s])).
template <class Scalar, class Space>
struct EmbeddingInputs {
  static constexpr int max_parts = 16;  ///< of all segments
  template <class Other, int Rank>
  using View = TensorView<Other, Rank, Space>;  ///< view in the inputs' space

  /// A table for lookups, or rows that are used directly.
  struct Part {
    View<Scalar const, 2> rows;         ///< table [vocabulary, width], or [entries of the segment, width]
    bool is_table = false;              ///< if false, entry e takes row e
    std::int32_t const* ids = nullptr;  ///< of each entry
    char const* name = "";              ///< of the table, for error messages
  };

  Assembly<Space> assembly;                             ///< where tokens go
  Part parts[max_parts]{};                              ///< those of a segment are adjacent
  int first_part[Assembly<Space>::max_segments + 1]{};  ///< of each segment, and the end
  Scalar scale = 1;                                     ///< factor on the sum of the parts
  View<Scalar const, 2> position{};                     ///< [most positions, width], or null
  PositionUnit position_unit = PositionUnit::tokens;    ///< what the rows of `position` count
  Index const* first_position = nullptr;                ///< [rows]: of each sequence's first token; null: 0; CPU only
  View<Scalar const, 2> type{};                         ///< [segments, width], or null
  Norm norm = Norm::none;                               ///< applied to the sum
  View<Scalar const, 1> weight{};                       ///< of the norm, [width]
  View<Scalar const, 1> bias{};                         ///< of the norm, [width]; rms has none
  Scalar epsilon{};                                     ///< of the norm
  DropoutMask mask{};                                   ///< applied last

  /// Returns whether gradients pass unchanged from a token to its parts.
  [[nodiscard]] constexpr bool is_plain_sum() const noexcept {
    return !mask.active() && norm == Norm::none && scale == Scalar(1);
  }
};

}}}  // namespace lockstep::kernel
