// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

enum class AttentionPass { forward, backward };

/// Arguments that the forward and backward of kernel::Attention share, in either space.
template <class Scalar, class Space>
struct AttentionInputs {
  TensorView<Scalar const, 2, Space> query;       // [queries.slots, heads * head width]
  TensorView<Scalar const, 2, Space> key, value;  // [keys.slots, heads / query_heads_per_key_head * head width]
  SequenceLayout<Space> queries, keys{};          // with equal numbers of rows
  Index heads;
  double scale;                        ///< factor of query . key
  bool causal = false;                 ///< query i attends only to keys up to i
  Index query_heads_per_key_head = 1;  ///< adjacent query heads that share one head of keys and values
  /// [heads, distances()]: score (i, j) takes element j - i + queries.length - 1; or null
  TensorView<Scalar const, 2, Space> bias{};
  DropoutMask mask{};

  [[nodiscard]] Index rows() const noexcept { return queries.rows; }
  [[nodiscard]] Index width() const noexcept { return query.extent[1]; }
  [[nodiscard]] Index head_width() const noexcept { return width() / heads; }
  [[nodiscard]] Index key_heads() const noexcept { return heads / query_heads_per_key_head; }
  [[nodiscard]] Index key_width() const noexcept { return key.extent[1]; }
  /// Returns the number of distances between a key's and a query's position.
  [[nodiscard]] Index distances() const noexcept { return std::max<Index>(0, queries.length + keys.length - 1); }

  /// @throws ShapeError unless all shapes, including `out`, agree
  void check(Extents<2> out) const {
    expect<ShapeError>(heads >= 1 && width() % heads == 0, [&] {
      return "Attention: " + std::to_string(heads) + " heads do not divide a width of " + std::to_string(width());
    });
    expect<ShapeError>(query_heads_per_key_head >= 1 && heads % query_heads_per_key_head == 0, [&] {
      return "Attention: " + std::to_string(heads) + " heads cannot share keys in groups of " +
             std::to_string(query_heads_per_key_head);
    });
    expect<ShapeError>(
        query.extent == out && key.extent == value.extent && key_width() == key_heads() * head_width(), [&] {
          return "Attention: query " + to_string(query.extent) + " and output " + to_string(out) +
                 " must have the same shape, and so must key " + to_string(key.extent) + " and value " +
                 to_string(value.extent) +
                 "; the width of keys must be the query's width, divided by the number of heads that share keys";
        });
    expect<ShapeError>(query.extent[0] == queries.slots && key.extent[0] == keys.slots, [&] {
      return "Attention: query " + to_string(query.extent) + " and key " + to_string(key.extent) +
             " belong to sequences of " + std::to_string(queries.slots) + " and " + std::to_string(keys.slots) +
             " slots; each slot needs one row";
    });
    expect<ShapeError>(queries.rows == keys.rows, [&] {
      return "Attention: " + std::to_string(queries.rows) + " query sequences and " + std::to_string(keys.rows) +
             " key sequences; each query sequence needs one key sequence";
    });
    expect<ShapeError>(!bias.data || bias.extent == Extents<2>{heads, distances()}, [&] {
      return "Attention: bias is " + to_string(bias.extent) + "; " + std::to_string(heads) + " heads and " +
             std::to_string(distances()) + " distances need " + to_string(Extents<2>{heads, distances()});
    });
  }
};

/// Destination of a gradient.
template <class Scalar>
struct AttentionTarget {
  Scalar* data = nullptr;
  Write write = Write::overwrite;
};

template <class Scalar>
struct AttentionGradients {
  AttentionTarget<Scalar> query, key, value;
  AttentionTarget<Scalar> bias{};  ///< null: skipped
};

}}}  // namespace lockstep::kernel::detail
