// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/attention/relative_bias.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Learned attention bias by the distance between key and query, as in T5: one number per bucket of distances and head.
/// Compute it once and pass it to several layers to share it. Starts as N(0, 0.02).
/// @shape table [buckets, heads]
/// @determinism bitwise, for any number of threads
/// @source Raffel et al.: Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer (2020)
class RelativePositionBias : detail::RejectedCalls<2> {
 public:
  /// Options of the table: heads and buckets of distances.
  struct Options {
    Index heads;           ///< of the attention
    Index buckets = 32;    ///< an even number unless causal
    Index farthest = 128;  ///< this distance and all larger ones share a bucket
    bool causal = false;   ///< for causal attention: all buckets are for keys before the query
  };

  /// @throws ConfigError for a size below 1 or an unsuitable number of buckets
  explicit RelativePositionBias(Options const& options)
      : table_{{options.buckets, options.heads}, Initializer::normal(0.02)},
        buckets_{.count = options.buckets, .farthest = options.farthest, .causal = options.causal} {
    expect<ConfigError>(options.heads >= 1 && buckets_.valid(), [&] {
      return "RelativePositionBias: " + std::to_string(options.heads) + " heads, " + std::to_string(options.buckets) +
             " buckets up to a distance of " + std::to_string(options.farthest) +
             "; heads must be at least 1, buckets at least 2 for each direction and even for two directions, and the "
             "distance above half the buckets of one direction";
    });
  }

  /// Names the parameter "table".
  void visit(auto&& each) { each("table", table_); }

  /// Returns the bias of MultiHeadAttention::forward for attention to a memory, the keys. During prediction token by
  /// token, the queries follow earlier tokens. If sequences have unequal numbers of them, there are as many more
  /// distances.
  /// @shape returns [heads, queries.length + keys.length - 1]
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, SequenceLayout<typename Context::Space> const& queries,
                                               SequenceLayout<typename Context::Space> const& keys) const {
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::RelativeBias<typename Context::Space>;
    Index const earlier = context.cache().max_cached_tokens(), first = 1 - queries.length - earlier;
    Index const distances = queries.length + keys.length - 1 + earlier - context.cache().min_cached_tokens();
    auto const bias = context.template variable<2>({table_.shape[1], std::max<Index>(0, distances)});
    Staging work(context);
    Kernel::template forward<Operand>(context.stream(), buckets_, first, context.template value<2>(table_),
                                      work.write(bias.value));
    context.on_backward(bias, std::tie(table_), [this, bias, first](Context& c) {
      Staging back(c);
      auto const dtable = c.gradient(table_);
      Kernel::template backward<Operand>(c.stream(), buckets_, first, back.read(bias.gradient()),
                                         {dtable.data, {table_.shape[0], table_.shape[1]}}, dtable.write);
    });
    return bias;
  }
  /// Returns the bias for self-attention. During prediction token by token, the keys include earlier tokens.
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, SequenceOf<Context> const& x) const {
    auto keys = x.layout;
    keys.length += context.cache().min_cached_tokens();
    return forward(context, x.layout, keys);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedCalls<2>::forward;

 private:
  Parameter table_;
  kernel::RelativeBuckets buckets_;
};

}}}  // namespace lockstep::nn
