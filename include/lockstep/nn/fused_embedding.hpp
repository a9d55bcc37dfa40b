// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/dropout.hpp>
#include <lockstep/kernel/fused_embedding.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/dropout.hpp>
#include <lockstep/nn/parameter.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// Padded sequences of ids: what data::PadCollate makes of a std::vector<std::int32_t>.
template <class C, class Space>
concept TokenColumn = requires(C const& column) {
  { column.values } -> std::convertible_to<TensorView<std::int32_t const, 2, Space>>;   // [rows, length]
  { column.lengths } -> std::convertible_to<TensorView<std::int32_t const, 1, Space>>;  // [rows]
};

/// Token plus learned position embedding with dropout, one pass: out[r, t] = dropout(token[ids[r, t]] + position[t]).
/// Both tables start as N(0, 0.02). Padding slots are zero and give no gradient, so the padding id's row stays as it
/// is.
/// @determinism bitwise, for any number of threads: the gradients use no atomics
class FusedEmbedding {
 public:
  struct Options {
    Index vocabulary;    ///< rows of the token table
    Index length;        ///< rows of the position table: the longest sequence
    Index width;         ///< channels of both
    double dropout = 0;  ///< probability
    GradientForm token_gradient = GradientForm::by_rows;
  };

  /// @throws ConfigError when a size is below 1 or the probability outside [0, 1)
  explicit FusedEmbedding(Options const& options)
      : token_{.shape = {positive(options.vocabulary, "vocabulary"), positive(options.width, "width")},
               .initializer = Initializer::normal(0.02),
               .gradient_form = options.token_gradient},
        position_{{positive(options.length, "length"), options.width}, Initializer::normal(0.02)},
        dropout_(options.dropout) {}

  void visit(auto&& each) {
    each("token", token_);
    each("position", position_);
  }

  /// @shape positions [rows], each sample's place in the epoch: dropout's key
  /// @throws DataError (at Contract::normal) for an id outside the table or a sequence longer than the position table
  /// @throws ShapeError when the column's parts disagree in rows
  template <class Context, TokenColumn<typename Context::Space> Column>
  [[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> forward(
      Context& context, Column const& column, TensorView<Index const, 1, typename Context::Space> positions) const {
    using Scalar = typename Context::Scalar;
    using Space = typename Context::Space;
    using Kernel = kernel::FusedEmbedding<Space>;
    typename Kernel::Tokens const tokens{column.values, column.lengths};
    expect<ShapeError>(tokens.lengths.size() == tokens.rows() && positions.size() == tokens.rows(), [&] {
      return "FusedEmbedding: " + std::to_string(tokens.rows()) + " rows of ids, " +
             std::to_string(tokens.lengths.size()) + " lengths and " + std::to_string(positions.size()) +
             " positions; each row needs one of each";
    });
    auto const mask = dropout_.mask(context);
    auto const layout = kernel::SequenceLayout<Space>::padded(tokens.length(), tokens.lengths, positions);
    auto out = context.template variable<2>({tokens.ids.size(), token_.shape[1]});
    Kernel::template forward<Scalar>(context.stream(), tokens, context.template value<2>(token_),
                                     context.template value<2>(position_), mask, positions, out.value);
    context.on_backward(out, std::tie(token_, position_), [this, tokens, mask, layout, out](Context& c) {
      TensorView<Scalar const, 2, Space> dy = out.gradient();
      if (mask.active()) {
        auto const dropped = c.template temporary<Scalar>(out.value.extent);
        kernel::Dropout<Space>::template apply<Scalar>(c.stream(), mask, layout, dy, dropped, Write::overwrite);
        dy = dropped;
      }
      auto& plan = c.template kept<typename Kernel::Plan>(this);
      Kernel::plan(c.stream(), tokens, c.template temporary<std::int32_t>(Extents<1>{tokens.ids.size()}), plan);
      auto const token = c.gradient_by_rows(token_);
      auto const position = c.gradient(position_);
      auto const partial =
          c.template temporary<Scalar>(Extents<2>{Kernel::partial_rows(tokens, plan), token_.shape[1]});
      Kernel::template backward_token<Scalar>(
          c.stream(), plan, dy, partial, {token.data, {token_.shape[0], token_.shape[1]}}, token.write, token.touched);
      Kernel::template backward_position<Scalar>(
          c.stream(), tokens, dy, {position.data, {position_.shape[0], position_.shape[1]}}, position.write);
    });
    return {out, layout};
  }

 private:
  static Index positive(Index size, char const* name) {
    expect<ConfigError>(size >= 1, [&] {
      return "FusedEmbedding: " + std::string(name) + " is " + std::to_string(size) + "; it must be at least 1";
    });
    return size;
  }

  Parameter token_;     // [vocabulary, width]
  Parameter position_;  // [length, width]
  Dropout dropout_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
