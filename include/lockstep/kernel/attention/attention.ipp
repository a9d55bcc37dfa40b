// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/attention/attention.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <class Scalar>
LOCKSTEP_INLINE Index Attention<HostSpace>::forward_scratch(Stream stream, Inputs<Scalar> const& in) {
  return stream.pool().threads() * Scratch<Scalar>(in).size;
}

template <class Scalar>
LOCKSTEP_INLINE Index Attention<HostSpace>::scratch(Stream stream, Inputs<Scalar> const& in) {
  return forward_scratch(stream, in) + (in.bias.data ? in.rows() * in.bias.size() : 0);
}

template <class Scalar>
LOCKSTEP_INLINE void Attention<HostSpace>::forward(Stream stream, Inputs<Scalar> const& in, View<Scalar, 2> out,
                                                   View<Scalar, 2> log_sums, View<Scalar, 1> memory) {
  in.check(out.extent);
  detail::with_packed_product<Scalar>([&](auto product) {
    for_heads(stream, in, memory, [&](Head const& head, Scratch<Scalar> const& at) {
      forward_head(product, in, head, at, out.data + head.query, log_sums.data + head.index * in.queries.length);
    });
  });
}

template <class Scalar>
LOCKSTEP_INLINE void Attention<HostSpace>::backward(Stream stream, Inputs<Scalar> const& in, View<Scalar const, 2> out,
                                                    View<Scalar const, 2> log_sums, View<Scalar const, 2> dout,
                                                    Gradients<Scalar> const& to, View<Scalar, 1> memory) {
  Index const per_row = in.bias.size();  // each row's part of the bias's gradient, summed in order
  auto* const partial = memory.data + stream.pool().threads() * Scratch<Scalar>(in).size;
  detail::with_packed_product<Scalar>([&](auto product) {
    for_heads(stream, in, memory, [&](Head const& head, Scratch<Scalar> const& at) {
      auto* const dbias = to.bias.data ? partial + head.index * in.distances() : nullptr;
      if (dbias) std::fill_n(dbias, in.distances(), Scalar{0});
      backward_head(product, in, head, at, out.data + head.query, dout.data + head.query,
                    log_sums.data + head.index * in.queries.length, to, dbias);
    });
  });
  if (to.bias.data)
    stream.pool().for_ranges(per_row, 4096, [&](Index begin, Index end) {
      detail::sum_rows(partial + begin, per_row, end - begin, in.rows(), to.bias.data + begin, to.bias.write);
    });
}

LOCKSTEP_INLINE std::uint64_t Attention<HostSpace>::Head::element(Index i) const noexcept {
  return static_cast<std::uint64_t>((number * queries + i) * ((keys + 7) / 8 * 8));
}

template <class Scalar, class Function>
LOCKSTEP_INLINE void Attention<HostSpace>::for_heads(Stream stream, Inputs<Scalar> const& in, View<Scalar, 1> memory,
                                                     Function const& f) {
  Index const members = stream.pool().threads(), tasks = in.rows() * in.key_heads();
  std::atomic<Index> next{0};
  stream.pool().run(std::min(members, tasks), [&](Index member) {
    Scratch<Scalar> const scratch(in, memory.data + member * Scratch<Scalar>(in).size);
    for (Index task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;)
      for (Index h = task * in.query_heads_per_key_head; h < (task + 1) * in.query_heads_per_key_head; ++h)
        f(head_of(in, h), scratch);
  });
}

template <class Scalar>
LOCKSTEP_INLINE Attention<HostSpace>::Head Attention<HostSpace>::head_of(Inputs<Scalar> const& in, Index h) noexcept {
  Index const row = h / in.heads, number = h % in.heads, width = in.head_width();
  auto const &q = in.queries, &k = in.keys;
  return {.index = h,
          .number = number,
          .first = number % in.query_heads_per_key_head == 0,
          .queries = q.tokens(row),
          .keys = k.tokens(row),
          .query = q.slots > 0 ? q.start(row) * in.width() + number * width : 0,
          .key = k.slots > 0 ? k.start(row) * in.key_width() + number / in.query_heads_per_key_head * width : 0,
          .query_padding = q.end(row) - q.start(row) - q.tokens(row),
          .key_padding = k.end(row) - k.start(row) - k.tokens(row),
          .position = q.positions.data ? static_cast<std::uint64_t>(q.positions.data[row]) : 0};
}

template <class Scalar>
LOCKSTEP_INLINE Index Attention<HostSpace>::visible_keys(Inputs<Scalar> const& in, Head const& head, Index i) noexcept {
  return in.causal ? std::min(head.keys, i + 1) : head.keys;
}

template <class Scalar>
LOCKSTEP_INLINE Scalar const* Attention<HostSpace>::bias(Inputs<Scalar> const& in, Head const& head, Index i) noexcept {
  return in.bias.data ? in.bias.data + head.number * in.distances() + in.queries.length - 1 - i : nullptr;
}

template <class Scalar, class Product>
LOCKSTEP_INLINE void Attention<HostSpace>::forward_head(Product product, Inputs<Scalar> const& in, Head const& head,
                                                        Scratch<Scalar> const& at, Scalar* out, Scalar* log_sums) {
  auto const width = in.width(), head_width = in.head_width(), key_width = in.key_width();
  if (head.first) {
    product.pack({in.key.data + head.key, 1, key_width}, head_width, head.keys, at.keys_across);
    product.pack({in.value.data + head.key, key_width, 1}, head.keys, head_width, at.keys);
  }
  for (Index i = 0; i < head.queries; i += query_block) {
    Index const queries = std::min(query_block, head.queries - i), keys = visible_keys(in, head, i + queries - 1);
    multiply_scores(product, in, head, i, queries, keys, at);
    Scalar reciprocals[query_block];
    softmax_numerators(in, head, i, queries, keys, at, log_sums, reciprocals);
    auto* const to = out + i * width;
    product.multiply(queries, head_width, keys, Scalar{1}, {at.p, at.stride, 1}, at.keys, head.keys, Scalar{0}, to,
                     width);
    scale_rows(to, reciprocals, queries, head_width, width);
  }
  zero(out + head.queries * width, head.query_padding, width, head_width);
}

template <class Scalar, class Product>
LOCKSTEP_INLINE void Attention<HostSpace>::backward_head(Product product, Inputs<Scalar> const& in, Head const& head,
                                                         Scratch<Scalar> const& at, Scalar const* out,
                                                         Scalar const* dout, Scalar const* log_sums,
                                                         Gradients<Scalar> const& to, Scalar* dbias) {
  auto const width = in.width(), key_width = in.key_width(), head_width = in.head_width(), stride = at.stride;
  auto const scale = static_cast<Scalar>(in.scale);
  auto const *query = in.query.data + head.query, *key = in.key.data + head.key;
  if (head.first) {
    product.pack({key, 1, key_width}, head_width, head.keys, at.keys_across);
    product.pack({in.value.data + head.key, 1, key_width}, head_width, head.keys, at.values_across);
    product.pack({key, key_width, 1}, head.keys, head_width, at.keys);
  }
  // The last queries attend to the most keys. Only the last block may overwrite the keys' gradients; all others add.
  Index const maximum = head.queries > 0 ? visible_keys(in, head, head.queries - 1) : 0;
  Target<Scalar> const targets[] = {to.key, to.value};  // nvcc cannot compile a loop over a list of dependent type
  for (auto const& target : targets)
    if (head.first && target.write == Write::overwrite)
      zero(target.data + head.key + maximum * key_width, head.keys - maximum + head.key_padding, key_width, head_width);
  if (to.query.write == Write::overwrite)
    zero(to.query.data + head.query + head.queries * width, head.query_padding, width, head_width);
  Index const last = (head.queries - 1) / query_block * query_block;
  for (Index i = last; i >= 0 && i < head.queries; i -= query_block) {
    Index const queries = std::min(query_block, head.queries - i), keys = visible_keys(in, head, i + queries - 1);
    auto const beta = [&](Target<Scalar> target) {
      return head.first && i == last && target.write == Write::overwrite ? Scalar{0} : Scalar{1};
    };
    multiply_scores(product, in, head, i, queries, keys, at);
    product.multiply(queries, product.columns(keys), head_width, Scalar{1}, {dout + i * width, width, 1},
                     at.values_across, head_width, Scalar{0}, at.ds, stride);
    differentiate(in, head, i, queries, keys, at, out, dout, log_sums, dbias);
    product.pack({dout + i * width, width, 1}, queries, head_width, at.gradients);
    product.multiply(keys, head_width, queries, Scalar{1}, {at.p, 1, stride}, at.gradients, queries, beta(to.value),
                     to.value.data + head.key, key_width);
    product.pack({query + i * width, width, 1}, queries, head_width, at.queries);
    product.multiply(keys, head_width, queries, scale, {at.ds, 1, stride}, at.queries, queries, beta(to.key),
                     to.key.data + head.key, key_width);
    product.multiply(queries, head_width, keys, scale, {at.ds, stride, 1}, at.keys, head.keys,
                     to.query.write == Write::overwrite ? Scalar{0} : Scalar{1}, to.query.data + head.query + i * width,
                     width);
  }
}

template <class Scalar, class Product>
LOCKSTEP_INLINE void Attention<HostSpace>::multiply_scores(Product product, Inputs<Scalar> const& in, Head const& head,
                                                           Index i, Index queries, Index keys,
                                                           Scratch<Scalar> const& at) {
  product.multiply(queries, product.columns(keys), in.head_width(), static_cast<Scalar>(in.scale),
                   {in.query.data + head.query + i * in.width(), in.width(), 1}, at.keys_across, in.head_width(),
                   Scalar{0}, at.p, at.stride);
}

template <class Scalar>
LOCKSTEP_INLINE void Attention<HostSpace>::softmax_numerators(Inputs<Scalar> const& in, Head const& head, Index i,
                                                              Index queries, Index keys, Scratch<Scalar> const& at,
                                                              Scalar* log_sums, Scalar* reciprocals) {
  with_best_instructions([=, &in, &head, p = at.p, stride = at.stride](auto vectors) {
    Scalar sums[query_block];
    // A row's exponentials need its largest score, so the largest scores of all rows are computed first.
    for (Index q = 0; q < queries; ++q)
      log_sums[i + q] =
          detail::largest_score(vectors, p + q * stride, bias(in, head, i + q), visible_keys(in, head, i + q));
    for (Index q = 0; q < queries; ++q) {
      auto* const row = p + q * stride;
      Index const here = visible_keys(in, head, i + q);
      sums[q] = detail::exponentials(vectors, row, log_sums[i + q], here);
      if (in.mask.active()) detail::apply_dropout(in.mask, head.position, head.element(i + q), here, row, row);
      detail::clear_after(row, here, keys);
    }
    // For all rows together, so that logarithms and divisions fill whole vectors.
    for (Index q = 0; q < queries; ++q) log_sums[i + q] += detail::log(sums[q]);
    for (Index q = 0; q < queries; ++q) reciprocals[q] = 1 / sums[q];
  });
}

template <class Scalar>
LOCKSTEP_INLINE void Attention<HostSpace>::differentiate(Inputs<Scalar> const& in, Head const& head, Index i,
                                                         Index queries, Index keys, Scratch<Scalar> const& at,
                                                         Scalar const* out, Scalar const* dout, Scalar const* log_sums,
                                                         Scalar* dbias) {
  with_best_instructions([=, &in, &head, p = at.p, ds = at.ds, stride = at.stride, width = in.width()](auto vectors) {
    Scalar means[query_block];
    for (Index q = 0; q < queries; ++q)
      means[q] = detail::dot(vectors, out + (i + q) * width, dout + (i + q) * width, in.head_width());
    for (Index q = 0; q < queries; ++q) {
      auto *const row = p + q * stride, *const gradient = ds + q * stride;
      Index const here = visible_keys(in, head, i + q);
      detail::score_gradients_row(row, gradient, bias(in, head, i + q), log_sums[i + q], means[q], here, in.mask,
                                  head.position, head.element(i + q));
      detail::clear_after(row, here, keys);
      detail::clear_after(gradient, here, keys);
      if (!dbias) continue;
      auto* const by_distance = dbias + in.queries.length - 1 - (i + q);
      for (Index j = 0; j < here; ++j) by_distance[j] += gradient[j];
    }
  });
}

template <class Scalar>
LOCKSTEP_INLINE void Attention<HostSpace>::scale_rows(Scalar* rows, Scalar const* by, Index count, Index width,
                                                      Index row_size) {
  with_best_instructions([=] {
    for (Index q = 0; q < count; ++q)
      for (Index c = 0; c < width; ++c) rows[q * row_size + c] *= by[q];
  });
}

template <class Scalar>
LOCKSTEP_INLINE void Attention<HostSpace>::zero(Scalar* to, Index rows, Index row_size, Index count) {
  for (Index row = 0; row < rows; ++row) std::fill_n(to + row * row_size, count, Scalar{0});
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template Index Attention<HostSpace>::forward_scratch<float>(Stream stream, Inputs<float> const& in);
template Index Attention<HostSpace>::forward_scratch<double>(Stream stream, Inputs<double> const& in);
template Index Attention<HostSpace>::scratch<float>(Stream stream, Inputs<float> const& in);
template Index Attention<HostSpace>::scratch<double>(Stream stream, Inputs<double> const& in);
template void Attention<HostSpace>::forward<float>(Stream stream, Inputs<float> const& in, View<float, 2> out,
                                                   View<float, 2> log_sums, View<float, 1> memory);
template void Attention<HostSpace>::forward<double>(Stream stream, Inputs<double> const& in, View<double, 2> out,
                                                    View<double, 2> log_sums, View<double, 1> memory);
template void Attention<HostSpace>::backward<float>(Stream stream, Inputs<float> const& in, View<float const, 2> out,
                                                    View<float const, 2> log_sums, View<float const, 2> dout,
                                                    Gradients<float> const& to, View<float, 1> memory);
template void Attention<HostSpace>::backward<double>(Stream stream, Inputs<double> const& in, View<double const, 2> out,
                                                     View<double const, 2> log_sums, View<double const, 2> dout,
                                                     Gradients<double> const& to, View<double, 1> memory);
#endif

}}}  // namespace lockstep::kernel
