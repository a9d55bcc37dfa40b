// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/kernel/attention/attention.hpp>
#include <lockstep/kernel/attention/cached_attention.hpp>
#include <lockstep/kernel/attention/rotary.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Multi-head attention of each sequence's tokens to each other, or to the tokens of another sequence, the memory:
/// out = output(attention(query(x), key(memory), value(memory))). Dropout applies to the attention weights. Padding
/// neither attends nor is attended to; a token without anything to attend to gets output(0). When a Predictor predicts
/// token by token, tokens also attend to the tokens of earlier passes, or to the memory of nn::encode_once. The context
/// keeps the keys and values of both.
/// @determinism bitwise, for any number of threads
class MultiHeadAttention : detail::RejectedSequenceCalls {
 public:
  /// Options of the layer: channels, heads, mask, dropout.
  struct Options {
    Index width;                    ///< channels of every token and of the memory
    Index heads;                    ///< number of heads; each takes width / heads channels by default
    double dropout = 0;             ///< probability
    bool causal = false;            ///< token i attends only to tokens up to i; scores of later keys are not computed
    Bias bias = Bias::learned;      ///< of the four linear layers
    Index head_width = 0;           ///< channels of a head; 0: width / heads
    std::optional<double> scale{};  ///< factor on query . key; by default 1 / sqrt(head width)
    double rotary_base = 0;         ///< base of rotary positions (RoPE), for example 10000; 0: none
    Index key_heads = 0;            ///< heads of keys and values, shared by adjacent query heads; 0: `heads`
  };

  /// @throws ConfigError for a size below 1, unless 0 <= dropout < 1, or for a rotary base that is not above 1
  /// @throws ShapeError unless `heads` divides `width` or head_width is given, or if rotary positions have heads of an
  /// odd width
  explicit MultiHeadAttention(Options const& options);

  /// Names the maps "query", "key", "value" and "output".
  void visit(auto&& each) {
    each("query", query_);
    each("key", key_);
    each("value", value_);
    each("output", output_);
  }

  /// Self-attention. `bias` is added to the scores by distance: see RelativePositionBias.
  /// @shape x.tokens [slots, width]   @shape bias [heads, 2 * x.layout.length - 1], or null   @shape returns as x
  /// @throws ShapeError if x has another width or bias another shape
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x,
                                            VariableOf<Context, 2> bias = {}) const {
    return forward(context, x, x, bias);
  }

  /// Attention to the tokens of `memory`, which has one sequence for each sequence of x.
  /// @shape bias [heads, x.layout.length + memory.layout.length - 1], or null   @shape returns as x
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x,
                                            SequenceOf<Context> const& memory, VariableOf<Context, 2> bias = {}) const {
    using Real = typename Context::Real;
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::Attention<typename Context::Space>;
    VariableOf<Context, 2> query, key, value, fused;
    if constexpr (Context::Space::host_accessible) {
      bool const is_memory = context.cache().is_cached_memory(memory.tokens.value);
      if (causal_ ? x.tokens.value.data != memory.tokens.value.data : !is_memory)
        context.cache().expect_whole_sequences("attention");
      if (context.cache().continues()) return forward_next_tokens(context, x, is_memory, bias);
    }
    if (has_fused_projection<Context>() && x.tokens.is(memory.tokens)) {
      fused = project_fused(context, x.tokens);
      auto const part = [&](Index i) {
        auto const rows = x.tokens.extent(0), width = fused.extent(1);
        return VariableOf<Context, 2>{{fused.value.data + i * rows * width, {rows, width}}, nullptr};
      };
      value = part(0);
      key = part(1);
      query = part(2);
    } else {
      query = query_.forward(context, x.tokens);
      key = key_.forward(context, memory.tokens);
      value = value_.forward(context, memory.tokens);
    }
    auto const queries = x.layout;
    auto const keys = memory.layout;
    auto const angles = apply_rotary(context, x, memory, query, key);
    if constexpr (Context::Space::host_accessible)
      if (auto& cache = context.cache(); cache.is_decoding()) {
        Staging work(context);
        auto const kept_keys = work.read(key.value), kept_values = work.read(value.value);
        if (causal_)
          static_cast<void>(cache.append(kept_keys, kept_values, keys, heads_ / queries_per_key_));
        else
          cache.keep_memory(kept_keys, kept_values, keys, heads_ / queries_per_key_);
      }
    check(queries.rows, keys.rows, bias.value.extent,
          bias.value.data ? std::max<Index>(0, queries.length + keys.length - 1) : 0);
    auto const inputs = [=, this, mask = dropout_.mask(context, queries).mask](auto& work) {
      return typename Kernel::template Inputs<Operand>{.query = work.read(query.value),
                                                       .key = work.read(key.value),
                                                       .value = work.read(value.value),
                                                       .queries = queries,
                                                       .keys = keys,
                                                       .heads = heads_,
                                                       .scale = scale_,
                                                       .causal = causal_,
                                                       .query_heads_per_key_head = queries_per_key_,
                                                       .bias = work.read(bias.value),
                                                       .mask = mask};
    };
    auto const attended = context.template variable<2>(query.value.extent);
    auto const log_sums = context.template temporary<Real>(Extents<2>{queries.rows * heads_, queries.length});
    {
      Staging work(context);
      auto const in = inputs(work);
      Kernel::template forward<Operand>(
          context.stream(), in, work.write(attended.value), log_sums,
          work.temporary(Extents<1>{Kernel::template forward_scratch<Operand>(context.stream(), in)}));
    }
    context.on_backward(attended, std::tuple{}, [=](Context& c) {
      Staging back(c);
      auto const target = [&](auto const& variable) {
        auto const gradient = back.gradient(variable);
        return typename Kernel::template Target<Operand>{gradient.data, gradient.write};
      };
      auto const in = inputs(back);
      auto to_query = target(query), to_key = target(key), to_value = target(value);
      if (fused.value.data) {
        to_value = to_key = to_query = target(fused);
        to_key.data += value.value.size();
        to_query.data += 2 * value.value.size();
      }
      Kernel::template backward<Operand>(c.stream(), in, back.read(attended.value), log_sums,
                                         back.read(attended.gradient()), {to_query, to_key, to_value, target(bias)},
                                         back.temporary(Extents<1>{Kernel::template scratch<Operand>(c.stream(), in)}));
      if (!angles.data) return;
      auto const rotate_back = [&](auto const& to, auto const& variable, auto const& layout) {  // sole writer
        if (to.data)
          kernel::Rotary<typename Context::Space>::template run<Operand>(
              c.stream(), layout, angles, kernel::Rotation::inverse, {to.data, variable.value.extent});
      };
      rotate_back(to_query, query, queries);
      rotate_back(to_key, key, keys);
    });
    return output_.forward(context, x.with(attended));
  }
  /// Rejects an argument that is no Sequence at compile time.
  template <class Context, detail::NotSequence<Context> Input>
  SequenceOf<Context> forward(Context&, Input const& x) const {
    return detail::reject_non_sequence<Context>(x);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedSequenceCalls::forward;

 private:
  /// Attention of the next token of each sequence to the kept keys and values: of its earlier tokens and itself, or of
  /// its memory.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward_next_tokens(Context& context, SequenceOf<Context> const& x, bool is_memory,
                                                        VariableOf<Context, 2> const& bias) const {
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::CachedAttention<HostSpace>;
    auto& cache = context.cache();
    auto const rows = x.layout.rows;
    auto const query = query_.forward(context, x.tokens);
    typename std::remove_cvref_t<decltype(cache)>::Attended attended;
    if (is_memory) {
      attended = cache.kept_memory(rows);
    } else {
      auto const key = key_.forward(context, x.tokens), value = value_.forward(context, x.tokens);
      static_cast<void>(apply_rotary(context, x, x, query, key));
      Staging work(context);
      attended = cache.append(work.read(key.value), work.read(value.value), x.layout, heads_ / queries_per_key_);
    }
    auto const first_bias = context.template temporary<Index>(Extents<1>{rows});
    for (Index row = 0; row < rows; ++row) first_bias(row) = cache.max_cached_tokens() - cache.cached_tokens(row);
    auto const out = context.template variable<2>(query.value.extent);
    {
      Staging work(context);
      typename Kernel::template Inputs<Operand> const in{.query = work.read(query.value),
                                                         .attended = attended,
                                                         .heads = heads_,
                                                         .scale = scale_,
                                                         .query_heads_per_key_head = queries_per_key_,
                                                         .bias = work.read(bias.value),
                                                         .first_bias = first_bias.data};
      Kernel::template forward<Operand>(
          context.stream(), in, work.write(out.value),
          work.temporary(Extents<1>{Kernel::template scratch<Operand>(context.stream(), in)}));
    }
    return output_.forward(context, x.with(out));
  }

  /// Rotates queries and keys in place if positions are rotary, and returns the angles.
  template <class Context, class Sequence, class Variable>
  [[nodiscard]] TensorView<typename Context::Real, 2, typename Context::Space> apply_rotary(
      Context& context, Sequence const& x, Sequence const& memory, Variable const& query, Variable const& key) const {
    using Kernel = kernel::Rotary<typename Context::Space>;
    if (rotary_base_ == 0) return {};
    expect<ConfigError>(x.tokens.value.data == memory.tokens.value.data, [&] {
      return name() + ": rotary_base is " + shortest(rotary_base_) +
             ", and the layer attends to a memory; rotary positions belong to one sequence; leave rotary_base out here";
    });
    using Real = typename Context::Real;
    auto layout = x.layout;
    bool continues = false;
    if constexpr (Context::Space::host_accessible) continues = context.cache().continues();
    if (continues) layout = {.rows = 1, .slots = layout.slots, .length = layout.slots};  // a table row for each token
    auto const angles = context.template temporary<Real>(Extents<2>{layout.length, head_width_});
    if (continues) {
      for (Index row = 0; row < layout.length; ++row)
        Kernel::template fill<Real>(context.stream(), rotary_base_, context.cache().cached_tokens(row),
                                    {angles.data + row * head_width_, {1, head_width_}});
    } else {
      Kernel::template fill<Real>(context.stream(), rotary_base_, 0, angles);
    }
    auto const rotate = [&](Variable const& part) {
      Staging work(context);
      Kernel::template run<Operand<Context>>(context.stream(), layout, angles, kernel::Rotation::forward,
                                             work.update(part.value));
    };
    rotate(query);
    rotate(key);
    return angles;
  }

  /// Returns whether queries, keys and values of one input come from one matrix product: on devices, for equal widths.
  template <class Context>
  [[nodiscard]] bool has_fused_projection() const noexcept {
    return !Context::Space::host_accessible && queries_per_key_ == 1;
  }
  /// Returns values, keys and queries of x, one after the other: [3 * slots, width]. This is the order of the
  /// parameters in their arena, and that in which their gradients are added.
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> project_fused(Context& context, VariableOf<Context, 2> const& x) const {
    if constexpr (Context::Space::host_accessible) {
      return {};
    } else {
      using Real = typename Context::Real;
      using Operand = nn::Operand<Context>;
      using Kernel = kernel::Linear<typename Context::Space>;
      query_.check(x.value.extent);
      auto const each = [this](auto const& f) { return std::array{f(value_), f(key_), f(query_)}; };
      auto const y = context.template variable<2>({3 * x.extent(0), query_.outputs()});
      Staging work(context);
      Kernel::template forward_each<Operand>(
          context.stream(), work.read(x.value), each([&](Linear const& map) { return map.weight(work); }),
          each([&](Linear const& map) { return map.bias(work); }), work.write(y.value));
      context.on_backward(
          y, std::tie(value_.weight(), value_.bias(), key_.weight(), key_.bias(), query_.weight(), query_.bias()),
          [=, this](Context& c) {
            Staging back(c);
            auto const dx = back.gradient(x);
            auto const dweights = each([&](Linear const& map) { return c.gradient(map.weight()); });
            auto const dbiases = each([&](Linear const& map) {
              return map.has_bias() ? c.gradient(map.bias()) : GradientTarget<Real>{nullptr, Write::overwrite};
            });
            auto const writes = [](auto const& targets) {
              return std::array{targets[0].write, targets[1].write, targets[2].write};
            };
            auto const views = [](auto const& targets, auto extent) {
              using View =
                  TensorView<Real, static_cast<int>(std::tuple_size_v<decltype(extent)>), typename Context::Space>;
              return std::array{View{targets[0].data, extent}, View{targets[1].data, extent},
                                View{targets[2].data, extent}};
            };
            auto const inputs = query_.inputs(), outputs = query_.outputs();
            auto const partial =
                back.temporary(Extents<1>{3 * Kernel::partial_elements(c.stream(), x.extent(0), inputs, outputs)});
            Kernel::template backward_each<Operand>(c.stream(), back.read(y.gradient()), back.read(c.saved_value(x)),
                                                    each([&](Linear const& map) { return map.weight(back); }),
                                                    {dx.data, x.value.extent}, dx.write,
                                                    views(dweights, Extents<2>{outputs, inputs}), writes(dweights),
                                                    views(dbiases, Extents<1>{outputs}), writes(dbiases), partial.data);
          });
      return y;
    }
  }

  /// @param distances number of distances that a bias needs; 0 without a bias
  void check(Index rows, Index memory_rows, Extents<2> bias, Index distances) const;
  [[nodiscard]] std::string name() const { return query_.weight().layer("MultiHeadAttention", 2); }

  static Index head_width_of(Options const& options);

  Index head_width_, queries_per_key_;
  Linear query_, key_, value_, output_;
  Index heads_;
  double scale_;
  bool causal_;
  double rotary_base_;
  Dropout dropout_;
};

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/attention/attention.ipp>
#endif
