// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/attention.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/dropout.hpp>
#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// Multi-head self-attention over the tokens of each sequence: out = output(attention(query(x), key(x), value(x))),
/// with dropout on the attention weights. Padding neither attends nor is attended to.
/// @determinism bitwise, for any number of threads
class MultiHeadAttention {
 public:
  /// @throws ShapeError unless `heads` divides `d_model`   @throws ConfigError unless 0 <= dropout < 1
  MultiHeadAttention(Index d_model, Index heads, double dropout = 0)
      : query_(d_model, d_model),
        key_(d_model, d_model),
        value_(d_model, d_model),
        output_(d_model, d_model),
        heads_(heads),
        dropout_(dropout) {
    expect<ShapeError>(heads >= 1 && d_model % heads == 0, [&] {
      return "MultiHeadAttention: " + std::to_string(heads) + " heads do not divide a d_model of " +
             std::to_string(d_model) + "; each head takes an equal share of it";
    });
  }

  void visit(auto&& each) {
    each("query", query_);
    each("key", key_);
    each("value", value_);
    each("output", output_);
  }

  /// @shape x.tokens [rows * length, d_model]   @shape returns as x
  /// @throws ShapeError when x has another width
  template <class Context>
  [[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> forward(
      Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x) const {
    using Scalar = typename Context::Scalar;
    using Kernel = kernel::Attention<typename Context::Space>;
    auto const query = query_.forward(context, x.tokens);
    auto const key = key_.forward(context, x.tokens);
    auto const value = value_.forward(context, x.tokens);
    typename Kernel::template Inputs<Scalar> const inputs{query.value, key.value, value.value,
                                                          x.layout,    heads_,    dropout_.mask(context)};
    auto const mixed = context.template variable<2>(query.value.extent);
    auto const log_sums = context.template temporary<Scalar>(Extents<2>{x.layout.rows * heads_, x.layout.length});
    auto const memory =
        context.template temporary<Scalar>(Extents<1>{Kernel::scratch(context.stream(), x.layout.length)});
    Kernel::template forward<Scalar>(context.stream(), inputs, mixed.value, log_sums, memory);
    context.on_backward(mixed, std::tuple{}, [=](Context& c) {
      auto const target = [&](auto const& variable) {
        auto const gradient = c.gradient(variable);
        return typename Kernel::template Target<Scalar>{gradient.data, gradient.write};
      };
      Kernel::template backward<Scalar>(c.stream(), inputs, mixed.value, log_sums, mixed.gradient(), target(query),
                                        target(key), target(value), memory);
    });
    return output_.forward(context, x.with(mixed));
  }

 private:
  Linear query_, key_, value_, output_;
  Index heads_;
  Dropout dropout_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
