// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/segment_plan.hpp>
#include <lockstep/kernel/embedding/fused_embedding.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/embedding/detail/embedding_parts.hpp>
#include <lockstep/nn/embedding/segments.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

using kernel::Norm;
using kernel::PositionUnit;
/// Deprecated: use PositionUnit.
using Counted [[deprecated("nn::PositionUnit")]] = PositionUnit;

/// First layer of a model on sequences, in one pass: looks ids up, assembles segments, adds positions and types,
/// normalizes and drops out. Token i of segment s becomes
///   dropout(norm(scale * (sum of the rows of its parts) + position[its position] + type[s])).
///
/// - One text: embedding.forward(context, batch[&Article::tokens], batch.positions())
/// - Two texts: embedding.forward(context, nn::concatenate(batch[&Pair::question], batch[&Pair::answer]), ...)
/// - A trajectory: embedding.forward(context, nn::interleave(returns, states, action.of(batch[&Step::actions])), ...),
///   where `returns` and `states` are Sequences that a Linear projected, and `action` is an nn::Embedding
/// - Categories: embedding.forward(context, nn::sum(town.of(batch[&Home::town]), kind.of(batch[&Home::kind])), ...) for
///   samples with one id of each kind: sequences of one token, whose `.tokens` are [rows, width]
/// - N ids in a std::array: embedding.forward(context, batch[&Click::ids], ...): sequences of N tokens, whose `.tokens`
///   are [rows * N, width]
///
/// Tables start as N(0, 0.02). Padding slots are zero and give no gradient.
/// @determinism bitwise, for any number of threads: the gradients use no atomics
class FusedEmbedding : detail::RejectedSequenceCalls {
 public:
  /// Options of the layer: sizes of its tables, dropout.
  struct Options {
    Index vocabulary = 0;  ///< rows of the layer's own token table, for bare columns of ids; 0: none
    Index length = 0;      ///< rows of the position table; 0: none
    Index width = 0;       ///< channels of every token
    double dropout = 0;    ///< probability
    Index types = 0;       ///< rows of the type table, one per segment; 0: none
    PositionUnit position_unit = PositionUnit::tokens;    ///< rows of the position table: for tokens or for steps
    double scale = 1;                                     ///< factor on the sum of the parts
    Norm norm = Norm::none;                               ///< norm of the sum
    double epsilon = 1e-5;                                ///< of the norm
    GradientForm token_gradient = GradientForm::by_rows;  ///< of the token table
  };

  /// @throws ConfigError if the width is below 1, another size below 0, epsilon not above 0, or the probability outside
  /// [0, 1)
  explicit FusedEmbedding(Options const& options);

  /// Names the tables "token", "position", "type", and "norm.weight", "norm.bias", as far as there are any.
  void visit(auto&& each) {
    if (options_.vocabulary > 0) each("token", token_);
    if (options_.length > 0) each("position", position_);
    if (options_.types > 0) each("type", type_);
    if (options_.norm != Norm::none) each("norm.weight", weight_);
    if (options_.norm == Norm::layer) each("norm.bias", bias_);
  }

  /// Returns the channels of every token.
  [[nodiscard]] Index width() const noexcept { return options_.width; }

  /// Returns the embedded sequences. `what` is Segments, or a Sum or a single part for one segment.
  /// @shape sample_positions [rows], each sample's position in the epoch: dropout's key
  /// @throws DataError (at Contract::normal) for an id outside its table, a sequence longer than the position table, or
  /// interleaved segments of unequal length
  /// @throws ShapeError if parts disagree in rows, slots or width, or there are more segments than types
  template <class Context, class What>
  [[nodiscard]] SequenceOf<Context> forward(
      Context& context, What const& what, TensorView<Index const, 1, typename Context::Space> sample_positions) const {
    return forward(context, concatenate(what), sample_positions);
  }
  /// Returns the sequences of several segments, as above.
  template <class Context, kernel::Arrangement arrangement, class... Segment>
  [[nodiscard]] SequenceOf<Context> forward(
      Context& context, Segments<arrangement, Segment...> const& segments,
      TensorView<Index const, 1, typename Context::Space> sample_positions) const {
    using Parts = detail::EmbeddingParts<Context>;
    static_assert(sizeof(Parts) <= 4096);  // the tape stores a copy
    expect<ShapeError>(options_.types == 0 || options_.types >= Index{sizeof...(Segment)}, [&] {
      return named().layer("FusedEmbedding") + ": " + std::to_string(sizeof...(Segment)) + " segments and " +
             std::to_string(options_.types) + " types; each segment needs its own type";
    });
    Parts parts(context, token_, named(), options_.width, sample_positions);
    parts.take(segments);
    add_own_parameters(context, parts.inputs);
    parts.plan_backward_async();
    auto const& layout = parts.inputs.assembly.layout;
    auto out = context.template variable<2>({layout.slots, options_.width});
    {
      Staging work(context);
      Parts::Kernel::template forward<Operand<Context>>(context.stream(), parts.read(work), work.write(out.value));
    }
    context.on_backward(out,
                        std::tuple_cat(std::tie(token_, position_, type_, weight_, bias_), detail::tables_of(segments)),
                        [this, parts, out](Context& c) { backward(c, parts, out); });
    return {out, layout};
  }
  /// Rejects calls without positions at compile time.
  template <detail::IsContext Context, class What>
  [[nodiscard]] SequenceOf<Context> forward(Context&, What const&) const {
    static_assert(sizeof(What) == 0,
                  "Lockstep: FusedEmbedding takes the positions of the batch's samples, which key dropout: "
                  "layer.forward(context, x, batch.positions())");
    return {};
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedSequenceCalls::forward;

 private:
  static Parameter table(Index rows, Index width, GradientForm gradient);
  /// Returns a table that the model has, for messages.
  [[nodiscard]] Parameter const& named() const noexcept;

  /// Fills in the layer's own parameters and settings.
  template <class Context, class Inputs>
  void add_own_parameters(Context& context, Inputs& inputs) const;

  template <class Context, class Parts>
  void backward(Context& c, Parts const& parts, VariableOf<Context, 2> out) const;

  template <class Element, class Context, class Parts>
  void backward_table(Context& c, Parts const& parts, int p,
                      TensorView<Element const, 2, typename Context::Space> dx) const;

  Parameter token_;     // [vocabulary, width]
  Parameter position_;  // [length, width]
  Parameter type_;      // [types, width]
  Parameter weight_;    // [width]
  Parameter bias_;      // [width]
  Options options_;
  Dropout dropout_;
};

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/embedding/fused_embedding.ipp>
#endif
