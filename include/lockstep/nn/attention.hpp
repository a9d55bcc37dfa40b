// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/attention.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/dropout.hpp>
#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/sequence.hpp>
#include <lockstep/nn/staging.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// Multi-head attention of the tokens of each sequence, to each other or to those of another sequence, the memory:
/// out = output(attention(query(x), key(memory), value(memory))), with dropout on the attention weights. Padding
/// neither attends nor is attended to; a token without anything to attend to receives output(0). Where a Predictor goes
/// on token by token, tokens attend to those of earlier passes, too, or to the memory that nn::encode_once has made:
/// the context has kept the keys and values of both.
/// @determinism bitwise, for any number of threads
class MultiHeadAttention {
 public:
  struct Options {
    Index width;                    ///< channels of every token, those of the memory too
    Index heads;                    ///< share the width equally, unless head_width says otherwise
    double dropout = 0;             ///< probability
    bool causal = false;            ///< token i attends to tokens up to i only; keys beyond are not even computed
    Bias bias = Bias::learned;      ///< of the four linear maps
    Index head_width = 0;           ///< channels of a head; 0: width / heads
    std::optional<double> scale{};  ///< of query . key; without: 1 / sqrt(head width)
  };

  /// @throws ConfigError for a size below 1 or unless 0 <= dropout < 1
  /// @throws ShapeError unless `heads` divides `width` or head_width is given
  explicit MultiHeadAttention(Options const& options)
      : head_width_(width_of_head(options)),
        query_(options.width, options.heads * head_width_, options.bias),
        key_(options.width, options.heads * head_width_, options.bias),
        value_(options.width, options.heads * head_width_, options.bias),
        output_(options.heads * head_width_, options.width, options.bias),
        heads_(options.heads),
        scale_(options.scale.value_or(1 / std::sqrt(static_cast<double>(head_width_)))),
        causal_(options.causal),
        dropout_(options.dropout) {}

  void visit(auto&& each) {
    each("query", query_);
    each("key", key_);
    each("value", value_);
    each("output", output_);
  }

  /// Self-attention. A `bias` is added to the scores by distance: see RelativePositionBias.
  /// @shape x.tokens [slots, width]   @shape bias [heads, 2 * x.layout.length - 1], or a null one   @shape returns as x
  /// @throws ShapeError when x has another width or bias another shape
  template <class Context>
  [[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> forward(
      Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x,
      typename Context::template Variable<2> bias = {}) const {
    return forward(context, x, x, bias);
  }

  /// Attention to the tokens of `memory`, which has as many sequences.
  /// @shape bias [heads, x.layout.length + memory.layout.length - 1], or a null one   @shape returns as x
  template <class Context>
  [[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> forward(
      Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x,
      Sequence<typename Context::Scalar, typename Context::Space> const& memory,
      typename Context::template Variable<2> bias = {}) const {
    using Real = typename Context::Real;
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::Attention<typename Context::Space>;
    auto const query = query_.forward(context, x.tokens);
    auto key = mapped(context, key_, memory.tokens), value = mapped(context, value_, memory.tokens);
    auto const queries = x.layout;
    auto keys = memory.layout;
    bool causal = causal_;
    if constexpr (Context::Space::host_accessible) {
      bool const is_memory = context.is_memory(memory.tokens.value);
      if (causal_ ? x.tokens.value.data != memory.tokens.value.data : !is_memory)
        context.expect_whole_sequences("attention");
      if (context.keeps_tokens() && !is_memory) {
        key.value = context.append(key.value, keys), value.value = context.append(value.value, keys);
        causal = context.earlier_tokens() == 0;  // one that comes behind others meets all of them
        keys = SequenceLayout<HostSpace>::padded(context.earlier_tokens() + keys.length, {}, keys.positions);
      }
    }
    check(queries.rows, keys.rows, bias.value.extent,
          bias.value.data ? std::max<Index>(0, queries.length + keys.length - 1) : 0);
    auto const inputs = [=, this, mask = dropout_.mask(context)](auto& work) {
      return typename Kernel::template Inputs<Operand>{.query = work.read(query.value),
                                                       .key = work.read(key.value),
                                                       .value = work.read(value.value),
                                                       .queries = queries,
                                                       .keys = keys,
                                                       .heads = heads_,
                                                       .scale = scale_,
                                                       .causal = causal,
                                                       .bias = work.read(bias.value),
                                                       .mask = mask};
    };
    auto const mixed = context.template variable<2>(query.value.extent);
    auto const log_sums = context.template temporary<Real>(Extents<2>{queries.rows * heads_, queries.length});
    auto const scratch = [](Context& c, auto& work, auto const& in) {
      return work.temporary(Extents<1>{Kernel::template scratch<Operand>(c.stream(), in)});
    };
    {
      Staging work(context);
      auto const in = inputs(work);
      Kernel::template forward<Operand>(context.stream(), in, work.write(mixed.value), log_sums,
                                        scratch(context, work, in));
    }
    context.on_backward(mixed, std::tuple{}, [=](Context& c) {
      Staging back(c);
      auto const target = [&](auto const& variable) {
        auto const gradient = back.gradient(variable);
        return typename Kernel::template Target<Operand>{gradient.data, gradient.write};
      };
      auto const in = inputs(back);
      Kernel::template backward<Operand>(c.stream(), in, back.read(mixed.value), log_sums, back.read(mixed.gradient()),
                                         {target(query), target(key), target(value), target(bias)},
                                         scratch(c, back, in));
    });
    return output_.forward(context, x.with(mixed));
  }

 private:
  /// map(x); of a memory, where sequences go on token by token, what it was when they began.
  template <class Context, class Variable>
  [[nodiscard]] static Variable mapped(Context& context, Linear const& map, Variable const& x) {
    if constexpr (Context::Space::host_accessible)
      if (context.is_memory(x.value))
        return {context.made_once({x.extent(0), map.outputs()}, [&] { return map.forward(context, x).value; }),
                nullptr};
    return map.forward(context, x);
  }

  /// `distances` that a bias needs, 0 without one.
  void check(Index rows, Index memory_rows, Extents<2> bias, Index distances) const {
    expect<ShapeError>(rows == memory_rows, [&] {
      return name() + ": " + std::to_string(rows) + " sequences attend to " + std::to_string(memory_rows) +
             "; each needs a memory of its own";
    });
    expect<ShapeError>(distances == 0 || bias == Extents<2>{heads_, distances}, [&] {
      return name() + ": bias is " + to_string(bias) + " where " + std::to_string(heads_) + " heads and " +
             std::to_string(distances) + " distances need " + to_string(Extents<2>{heads_, distances}) +
             "; make it for these lengths";
    });
  }
  [[nodiscard]] std::string name() const { return query_.weight().layer("MultiHeadAttention", 2); }

  static Index width_of_head(Options const& options) {
    if (options.head_width != 0) {
      expect<ConfigError>(options.head_width >= 1 && options.heads >= 1, [&] {
        return "MultiHeadAttention: " + std::to_string(options.heads) + " heads of width " +
               std::to_string(options.head_width) + "; both must be at least 1";
      });
      return options.head_width;
    }
    expect<ShapeError>(options.heads >= 1 && options.width % options.heads == 0, [&] {
      return "MultiHeadAttention: " + std::to_string(options.heads) + " heads do not divide a width of " +
             std::to_string(options.width) + "; each head takes an equal share of it, or give .head_width";
    });
    return options.width / options.heads;
  }

  Index head_width_;
  Linear query_, key_, value_, output_;
  Index heads_;
  double scale_;
  bool causal_;
  Dropout dropout_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
