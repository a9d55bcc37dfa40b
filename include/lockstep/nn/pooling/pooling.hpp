// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/kernel/pooling/pooling.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns the mean over the tokens of each sequence, without padding; zeros for a sequence without tokens.
/// @shape returns [rows, width]
template <class Context>
[[nodiscard]] VariableOf<Context, 2> mean_pool(Context& context, SequenceOf<Context> const& x);
/// Rejects an input that is no Sequence at compile time.
template <class Context, detail::NotSequence<Context> Input>
[[nodiscard]] VariableOf<Context, 2> mean_pool(Context& context, Input const& x) {
  return mean_pool(context, detail::reject_non_sequence<Context>(x));
}

/// Returns the sum over the tokens of each sequence, without padding; zeros for a sequence without tokens. After a
/// FusedEmbedding of lists of ids it computes torch's EmbeddingBag with mode "sum".
/// @shape returns [rows, width]
template <class Context>
[[nodiscard]] VariableOf<Context, 2> sum_pool(Context& context, SequenceOf<Context> const& x);
/// Rejects an input that is no Sequence at compile time.
template <class Context, detail::NotSequence<Context> Input>
[[nodiscard]] VariableOf<Context, 2> sum_pool(Context& context, Input const& x) {
  return sum_pool(context, detail::reject_non_sequence<Context>(x));
}

/// Returns the largest value of each channel over the tokens of each sequence, without padding, as x.max(dim=1).values
/// in PyTorch: max-over-time pooling after a convolution. The gradient goes to the first of several equal values. If a
/// channel has a NaN, its maximum is NaN. A sequence without tokens gives zeros, without gradient.
/// @shape returns [rows, width]
/// @determinism bitwise, for any number of threads
template <class Context>
[[nodiscard]] VariableOf<Context, 2> max_pool(Context& context, SequenceOf<Context> const& x);
/// Rejects an input that is no Sequence at compile time.
template <class Context, detail::NotSequence<Context> Input>
[[nodiscard]] VariableOf<Context, 2> max_pool(Context& context, Input const& x) {
  return max_pool(context, detail::reject_non_sequence<Context>(x));
}

namespace detail {
template <class Context>
[[nodiscard]] VariableOf<Context, 2> pooled_token(Context& context, SequenceOf<Context> const& x,
                                                  kernel::PooledToken which) {
  using Kernel = kernel::Pooling<typename Context::Space>;
  using Operand = nn::Operand<Context>;
  auto y = context.template variable<2>({x.layout.rows, x.width()});
  Staging work(context);
  Kernel::template token<Operand>(context.stream(), x.layout, which, work.read(x.tokens.value), work.write(y.value));
  context.on_backward(y, std::tuple{}, [x, y, which](Context& c) {
    Staging back(c);
    if (auto const dx = back.gradient(x.tokens))
      Kernel::template token_backward<Operand>(c.stream(), x.layout, which, back.read(y.gradient()),
                                               {dx.data, x.tokens.value.extent}, dx.write);
  });
  return y;
}
}  // namespace detail

/// Returns the first token of each sequence, for models that begin sequences with a token that gathers the others.
/// Zeros for a sequence without tokens.
/// @shape returns [rows, width]
template <class Context>
[[nodiscard]] VariableOf<Context, 2> first_token(Context& context, SequenceOf<Context> const& x) {
  context.cache().expect_whole_sequences("first_token");
  return detail::pooled_token(context, x, kernel::PooledToken::first);
}
/// Rejects an input that is no Sequence at compile time.
template <class Context, detail::NotSequence<Context> Input>
[[nodiscard]] VariableOf<Context, 2> first_token(Context& context, Input const& x) {
  return first_token(context, detail::reject_non_sequence<Context>(x));
}

/// Returns the last token of each sequence, which under causal attention has read all others. Zeros for a sequence
/// without tokens.
/// @shape returns [rows, width]
template <class Context>
[[nodiscard]] VariableOf<Context, 2> last_token(Context& context, SequenceOf<Context> const& x) {
  return detail::pooled_token(context, x, kernel::PooledToken::last);
}
/// Rejects an input that is no Sequence at compile time.
template <class Context, detail::NotSequence<Context> Input>
[[nodiscard]] VariableOf<Context, 2> last_token(Context& context, Input const& x) {
  return last_token(context, detail::reject_non_sequence<Context>(x));
}

/// Returns the last token of each sequence in a pass that begins token-by-token prediction, and x in any other pass.
/// Call it in front of the layer that makes the logits: only the last token's are needed, and those of a long prompt
/// take much time and memory.
/// @shape returns sequences of one token, or x
/// @determinism bitwise, for any number of threads
template <class Context>
[[nodiscard]] SequenceOf<Context> newest_token(Context& context, SequenceOf<Context> const& x) {
  if constexpr (Context::Space::host_accessible)
    if (context.cache().is_decoding() && !context.cache().continues())
      return {last_token(context, x), SequenceLayout<HostSpace>::padded(1, {}, x.layout.positions)};
  return x;
}
/// Rejects an input that is no Sequence at compile time.
template <class Context, detail::NotSequence<Context> Input>
[[nodiscard]] SequenceOf<Context> newest_token(Context&, Input const& x) {
  return detail::reject_non_sequence<Context>(x);
}

/// Rejects calls without the context in front at compile time.
auto mean_pool(detail::NoContext auto const& first, auto const&...) { return detail::reject_call(first); }
/// Rejects calls without the context in front at compile time.
auto sum_pool(detail::NoContext auto const& first, auto const&...) { return detail::reject_call(first); }
/// Rejects calls without the context in front at compile time.
auto max_pool(detail::NoContext auto const& first, auto const&...) { return detail::reject_call(first); }

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/pooling/pooling.ipp>
#endif
