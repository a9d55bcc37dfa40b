// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/attention/detail/attention_inputs.hpp>
#include <lockstep/kernel/attention/detail/attention_rows.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/log.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/gemm/packed_product.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Scaled dot-product attention of sequences to themselves or to others, with several heads in adjacent channels.
template <class Space>
struct Attention : detail::NotIncluded<Space> {};

/// One task per sequence and head of keys. Multiplies a block of queries at a time by all keys that it attends to, and
/// keeps only the logarithm of each query's sum. Memory thus grows linearly with the tokens, not with their square. The
/// backward pass recomputes the probabilities.
template <>
struct Attention<HostSpace> : detail::KernelTypes<HostSpace> {
  template <class T, int Rank>
  using View = TensorView<T, Rank, HostSpace>;

  template <class T>
  using Inputs = detail::AttentionInputs<T, HostSpace>;
  template <class T>
  using Target = detail::AttentionTarget<T>;
  template <class T>
  using Gradients = detail::AttentionGradients<T>;

  /// Returns the elements of scratch memory that `forward` (first function) or `backward` (second) needs.
  template <class T>
  [[nodiscard]] static Index forward_scratch(Stream stream, Inputs<T> const& in) {
    return stream.pool().threads() * Scratch<T>(in).size;
  }
  template <class T>
  [[nodiscard]] static Index scratch(Stream stream, Inputs<T> const& in) {
    return forward_scratch(stream, in) + (in.bias.data ? in.rows() * in.bias.size() : 0);
  }

  /// Computes attention for each head, for tokens i of a row's queries and j of its keys. p[i, j] = softmax over j of
  /// (scale query[i] . key[j] + bias[j - i]). Then out[i] = sum over j of drop(p)[i, j] value[j], and log_sums[i] = log
  /// of the sum of the exponentials. Padding slots of `out` are zero, as is a query without keys. Padding of the inputs
  /// is not read. In `drop`, p[i, j] has number (head * n + i) * m + j within the sample. n is the sample's number of
  /// queries, and m its number of keys rounded up to a multiple of 8. If heads share keys, their gradients are added in
  /// the heads' order.
  /// @shape out as query   @shape log_sums [rows * heads, queries.length]
  /// @shape memory [forward_scratch(stream, in)]
  /// @determinism bitwise, for any number of threads, and for any position of the sample in any batch
  /// @throws ShapeError if `heads` does not divide the width, `query_heads_per_key_head` does not divide the heads, or
  /// the shapes disagree
  /// @source the definition (Vaswani et al. 2017; the bias: Raffel et al. 2020), in blocks of queries
  template <class T>
  static void forward(Stream stream, Inputs<T> const& in, View<T, 2> out, View<T, 2> log_sums, View<T, 1> memory) {
    in.check(out.extent);
    detail::with_packed_product<T>([&](auto product) {
      for_heads(stream, in, memory, [&](Head const& head, Scratch<T> const& at) {
        forward_head(product, in, head, at, out.data + head.query, log_sums.data + head.index * in.queries.length);
      });
    });
  }

  /// Computes the gradients of the inputs from the gradient of `out`.
  /// @shape out, log_sums from forward   @shape dout as out   @shape gradients as their inputs
  /// @shape memory [scratch(stream, in)]
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void backward(Stream stream, Inputs<T> const& in, View<T const, 2> out, View<T const, 2> log_sums,
                       View<T const, 2> dout, Gradients<T> const& to, View<T, 1> memory) {
    Index const per_row = in.bias.size();  // each row's part of the bias's gradient, summed in order
    auto* const partial = memory.data + stream.pool().threads() * Scratch<T>(in).size;
    detail::with_packed_product<T>([&](auto product) {
      for_heads(stream, in, memory, [&](Head const& head, Scratch<T> const& at) {
        auto* const dbias = to.bias.data ? partial + head.index * in.distances() : nullptr;
        if (dbias) std::fill_n(dbias, in.distances(), T{0});
        backward_head(product, in, head, at, out.data + head.query, dout.data + head.query,
                      log_sums.data + head.index * in.queries.length, to, dbias);
      });
    });
    if (to.bias.data)
      stream.pool().for_ranges(per_row, 4096, [&](Index begin, Index end) {
        detail::sum_rows(partial + begin, per_row, end - begin, in.rows(), to.bias.data + begin, to.bias.write);
      });
  }

 private:
  static constexpr Index query_block = detail::row_block;  // whole tiles of any height

  struct Head {
    Index index;          // counts heads over all rows
    Index number;         // within the row
    bool first;           // of those that share its keys, which one task processes in order
    Index queries, keys;  // tokens of the row
    Index query, key;     // offset of its first element in query and out, and in key and value (null if empty)
    Index query_padding, key_padding;  // slots after the tokens
    std::uint64_t position;            // dropout's key

    /// Returns the number, within the sample, of the probability of query i and key 0.
    [[nodiscard]] std::uint64_t element(Index i) const noexcept {
      return static_cast<std::uint64_t>((number * queries + i) * ((keys + 7) / 8 * 8));
    }
  };

  /// A thread's memory: operands packed for the widest tile, and the scores of a block of queries.
  template <class T>
  struct Scratch {
    static constexpr Index max_columns = 64 / Index{sizeof(T)} * 2;
    Index stride, width;  // number of keys and head width, rounded up to whole tiles
    Index size;
    T *keys_across = nullptr, *values_across = nullptr;  // transposed, for products over the head's width
    T *keys = nullptr, *queries = nullptr, *gradients = nullptr;
    T *p = nullptr, *ds = nullptr;  // [query_block, stride]

    explicit Scratch(Inputs<T> const& in)
        : stride((in.keys.length + max_columns - 1) / max_columns * max_columns),
          width((in.head_width() + max_columns - 1) / max_columns * max_columns),
          size(2 * stride * in.head_width() + in.keys.length * width + 2 * query_block * (width + stride)) {}
    Scratch(Inputs<T> const& in, T* memory) : Scratch(in) {
      Index const sizes[] = {stride * in.head_width(), stride * in.head_width(), in.keys.length * width,
                             query_block * width,      query_block * width,      query_block * stride};
      T** const parts[] = {&keys_across, &values_across, &keys, &queries, &gradients, &p};
      for (Index i = 0; i < 6; memory += sizes[i++]) *parts[i] = memory;
      ds = memory;
    }
  };

  /// Calls f(head, scratch) for each head of each row. The results do not depend on which thread processes which head.
  template <class T, class F>
  static void for_heads(Stream stream, Inputs<T> const& in, View<T, 1> memory, F const& f) {
    Index const members = stream.pool().threads(), tasks = in.rows() * in.key_heads();
    std::atomic<Index> next{0};
    stream.pool().run(std::min(members, tasks), [&](Index member) {
      Scratch<T> const scratch(in, memory.data + member * Scratch<T>(in).size);
      for (Index task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;)
        for (Index h = task * in.query_heads_per_key_head; h < (task + 1) * in.query_heads_per_key_head; ++h)
          f(head_of(in, h), scratch);
    });
  }

  template <class T>
  [[nodiscard]] static Head head_of(Inputs<T> const& in, Index h) noexcept {
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

  /// Returns the number of keys that query i attends to.
  template <class T>
  [[nodiscard]] static Index visible_keys(Inputs<T> const& in, Head const& head, Index i) noexcept {
    return in.causal ? std::min(head.keys, i + 1) : head.keys;
  }
  /// Returns query i's bias for key 0, or null.
  template <class T>
  [[nodiscard]] static T const* bias(Inputs<T> const& in, Head const& head, Index i) noexcept {
    return in.bias.data ? in.bias.data + head.number * in.distances() + in.queries.length - 1 - i : nullptr;
  }

  template <class T, class Product>
  static void forward_head(Product product, Inputs<T> const& in, Head const& head, Scratch<T> const& at, T* out,
                           T* log_sums) {
    auto const width = in.width(), head_width = in.head_width(), key_width = in.key_width();
    if (head.first) {
      product.pack({in.key.data + head.key, 1, key_width}, head_width, head.keys, at.keys_across);
      product.pack({in.value.data + head.key, key_width, 1}, head.keys, head_width, at.keys);
    }
    for (Index i = 0; i < head.queries; i += query_block) {
      Index const queries = std::min(query_block, head.queries - i), keys = visible_keys(in, head, i + queries - 1);
      multiply_scores(product, in, head, i, queries, keys, at);
      T reciprocals[query_block];
      softmax_numerators(in, head, i, queries, keys, at, log_sums, reciprocals);
      auto* const to = out + i * width;
      product.multiply(queries, head_width, keys, T{1}, {at.p, at.stride, 1}, at.keys, head.keys, T{0}, to, width);
      scale_rows(to, reciprocals, queries, head_width, width);
    }
    zero(out + head.queries * width, head.query_padding, width, head_width);
  }

  template <class T, class Product>
  static void backward_head(Product product, Inputs<T> const& in, Head const& head, Scratch<T> const& at, T const* out,
                            T const* dout, T const* log_sums, Gradients<T> const& to, T* dbias) {
    auto const width = in.width(), key_width = in.key_width(), head_width = in.head_width(), stride = at.stride;
    auto const scale = static_cast<T>(in.scale);
    auto const *query = in.query.data + head.query, *key = in.key.data + head.key;
    if (head.first) {
      product.pack({key, 1, key_width}, head_width, head.keys, at.keys_across);
      product.pack({in.value.data + head.key, 1, key_width}, head_width, head.keys, at.values_across);
      product.pack({key, key_width, 1}, head.keys, head_width, at.keys);
    }
    // The last queries attend to the most keys. Only the last block may overwrite the keys' gradients; all others add.
    Index const maximum = head.queries > 0 ? visible_keys(in, head, head.queries - 1) : 0;
    Target<T> const targets[] = {to.key, to.value};  // nvcc cannot compile a loop over a list of dependent type
    for (auto const& target : targets)
      if (head.first && target.write == Write::overwrite)
        zero(target.data + head.key + maximum * key_width, head.keys - maximum + head.key_padding, key_width,
             head_width);
    if (to.query.write == Write::overwrite)
      zero(to.query.data + head.query + head.queries * width, head.query_padding, width, head_width);
    Index const last = (head.queries - 1) / query_block * query_block;
    for (Index i = last; i >= 0 && i < head.queries; i -= query_block) {
      Index const queries = std::min(query_block, head.queries - i), keys = visible_keys(in, head, i + queries - 1);
      auto const beta = [&](Target<T> target) {
        return head.first && i == last && target.write == Write::overwrite ? T{0} : T{1};
      };
      multiply_scores(product, in, head, i, queries, keys, at);
      product.multiply(queries, product.columns(keys), head_width, T{1}, {dout + i * width, width, 1}, at.values_across,
                       head_width, T{0}, at.ds, stride);
      differentiate(in, head, i, queries, keys, at, out, dout, log_sums, dbias);
      product.pack({dout + i * width, width, 1}, queries, head_width, at.gradients);
      product.multiply(keys, head_width, queries, T{1}, {at.p, 1, stride}, at.gradients, queries, beta(to.value),
                       to.value.data + head.key, key_width);
      product.pack({query + i * width, width, 1}, queries, head_width, at.queries);
      product.multiply(keys, head_width, queries, scale, {at.ds, 1, stride}, at.queries, queries, beta(to.key),
                       to.key.data + head.key, key_width);
      product.multiply(queries, head_width, keys, scale, {at.ds, stride, 1}, at.keys, head.keys,
                       to.query.write == Write::overwrite ? T{0} : T{1}, to.query.data + head.query + i * width, width);
    }
  }

  /// Computes p[q, j] = scale query[i + q] . key[j].
  template <class T, class Product>
  static void multiply_scores(Product product, Inputs<T> const& in, Head const& head, Index i, Index queries,
                              Index keys, Scratch<T> const& at) {
    product.multiply(queries, product.columns(keys), in.head_width(), static_cast<T>(in.scale),
                     {in.query.data + head.query + i * in.width(), in.width(), 1}, at.keys_across, in.head_width(),
                     T{0}, at.p, at.stride);
  }

  /// Replaces scores by the exponentials of their differences from the row's largest score, after dropout. Keys that a
  /// query does not attend to get zeros. Stores the inverse sums in `reciprocals`.
  template <class T>
  static void softmax_numerators(Inputs<T> const& in, Head const& head, Index i, Index queries, Index keys,
                                 Scratch<T> const& at, T* log_sums, T* reciprocals) {
    with_best_instructions([=, &in, &head, p = at.p, stride = at.stride](auto vectors) {
      T sums[query_block];
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

  /// Replaces scores by probabilities, and the gradients of probabilities by the gradients of scores.
  template <class T>
  static void differentiate(Inputs<T> const& in, Head const& head, Index i, Index queries, Index keys,
                            Scratch<T> const& at, T const* out, T const* dout, T const* log_sums, T* dbias) {
    with_best_instructions([=, &in, &head, p = at.p, ds = at.ds, stride = at.stride, width = in.width()](auto vectors) {
      T means[query_block];
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

  template <class T>
  static void scale_rows(T* rows, T const* by, Index count, Index width, Index row_size) {
    with_best_instructions([=] {
      for (Index q = 0; q < count; ++q)
        for (Index c = 0; c < width; ++c) rows[q * row_size + c] *= by[q];
    });
  }

  template <class T>
  static void zero(T* to, Index rows, Index row_size, Index count) {
    for (Index row = 0; row < rows; ++row) std::fill_n(to + row * row_size, count, T{0});
  }
};

}}}  // namespace lockstep::kernel
