// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/attention/cached_attention.hpp>
#include <lockstep/kernel/attention/detail/attention_rows.hpp>
#include <lockstep/kernel/gemm/packed_product.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE Index CachedAttention<HostSpace>::scratch(Stream stream, Inputs<Scalar> const& in) {
  Index longest = 0;
  for (auto const& each : in.attended) longest = std::max(longest, each->tokens());
  constexpr Index panel = KeysAndValues<Scalar>::panel;
  return stream.pool().threads() * ((longest + panel - 1) / panel * panel);
}

template <class Scalar>
LOCKSTEP_INLINE void CachedAttention<HostSpace>::forward(Stream stream, Inputs<Scalar> const& in, Matrix<Scalar> out,
                                                         Vector<Scalar> memory) {
  auto const rows = in.query.extent[0], width = in.query.extent[1];
  expect<ShapeError>(std::ssize(in.attended) == rows && out.extent == in.query.extent, [&] {
    return "CachedAttention: query " + to_string(in.query.extent) + ", output " + to_string(out.extent) +
           " and the keys of " + std::to_string(in.attended.size()) + " sequences; each row needs one of each";
  });
  auto const key_heads = in.heads / in.query_heads_per_key_head, head_width = width / in.heads;
  for (Index row = 0; row < rows; ++row) {
    auto const& kept = *in.attended[static_cast<std::size_t>(row)];
    expect<ShapeError>(kept.heads() == key_heads && kept.head_width() == head_width, [&] {
      return "CachedAttention: the keys of sequence " + std::to_string(row) + " have " + std::to_string(kept.heads()) +
             " heads of width " + std::to_string(kept.head_width()) + ", but the queries need " +
             std::to_string(key_heads) + " of width " + std::to_string(head_width);
    });
    expect<ShapeError>(!in.bias.data || (in.bias.extent[0] == in.heads && in.first_bias[row] >= 0 &&
                                         in.first_bias[row] + kept.tokens() <= in.bias.extent[1]),
                       [&] {
                         return "CachedAttention: bias is " + to_string(in.bias.extent) + "; " +
                                std::to_string(in.heads) + " heads and sequence " + std::to_string(row) + " need " +
                                to_string(Extents<2>{in.heads, in.first_bias[row] + kept.tokens()}) +
                                "; make it for these lengths";
                       });
  }
  Index const members = stream.pool().threads(), tasks = rows * key_heads, share = memory.size() / members;
  std::atomic<Index> next{0};
  stream.pool().run(std::min(members, tasks), [&](Index member) {
    auto* const scores = memory.data + member * share;
    detail::with_row_product<Scalar>([&](auto product) {
      for (Index task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;)
        for (Index i = 0; i < in.query_heads_per_key_head; ++i) {
          Index const row = task / key_heads, head = task % key_heads * in.query_heads_per_key_head + i;
          forward_head(product, in, row, head, out.data + row * width + head * head_width, scores);
        }
    });
  });
}

template <class Product, class Scalar>
LOCKSTEP_INLINE void CachedAttention<HostSpace>::forward_head(Product product, Inputs<Scalar> const& in, Index row,
                                                              Index head, Scalar* out, Scalar* scores) {
  constexpr Index panel = KeysAndValues<Scalar>::panel;
  static_assert(Product::columns(1) == panel);
  auto const& kept = *in.attended[static_cast<std::size_t>(row)];
  auto const keys = kept.tokens(), width = kept.head_width();
  auto const key_head = head / in.query_heads_per_key_head;
  auto const* const query = in.query.data + row * in.query.extent[1] + head * width;
  product.multiply_row(product.columns(keys), width, static_cast<Scalar>(in.scale), query, kept.keys(key_head), width,
                       panel, scores);
  auto const* const bias = in.bias.data ? in.bias.data + head * in.bias.extent[1] + in.first_bias[row] : nullptr;
  Scalar sum;
  with_best_instructions([=, &sum](auto vectors) {
    auto const largest = detail::largest_score(vectors, scores, bias, keys);
    sum = detail::exponentials(vectors, scores, largest, keys);
  });
  product.multiply_row(width, keys, Scalar{1}, scores, kept.values(key_head), 1, width, out);
  Scalar const reciprocal = 1 / sum;
  for (Index c = 0; c < width; ++c) out[c] *= reciprocal;
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template Index CachedAttention<HostSpace>::scratch<float>(Stream stream, Inputs<float> const& in);
template Index CachedAttention<HostSpace>::scratch<double>(Stream stream, Inputs<double> const& in);
template void CachedAttention<HostSpace>::forward<float>(Stream stream, Inputs<float> const& in, Matrix<float> out,
                                                         Vector<float> memory);
template void CachedAttention<HostSpace>::forward<double>(Stream stream, Inputs<double> const& in, Matrix<double> out,
                                                          Vector<double> memory);
#endif

}}}  // namespace lockstep::kernel
