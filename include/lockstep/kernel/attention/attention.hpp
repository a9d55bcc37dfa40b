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
  [[nodiscard]] static Index forward_scratch(Stream stream, Inputs<T> const& in);
  template <class T>
  [[nodiscard]] static Index scratch(Stream stream, Inputs<T> const& in);

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
  static void forward(Stream stream, Inputs<T> const& in, View<T, 2> out, View<T, 2> log_sums, View<T, 1> memory);

  /// Computes the gradients of the inputs from the gradient of `out`.
  /// @shape out, log_sums from forward   @shape dout as out   @shape gradients as their inputs
  /// @shape memory [scratch(stream, in)]
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void backward(Stream stream, Inputs<T> const& in, View<T const, 2> out, View<T const, 2> log_sums,
                       View<T const, 2> dout, Gradients<T> const& to, View<T, 1> memory);

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
    [[nodiscard]] std::uint64_t element(Index i) const noexcept;
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
  static void for_heads(Stream stream, Inputs<T> const& in, View<T, 1> memory, F const& f);

  template <class T>
  [[nodiscard]] static Head head_of(Inputs<T> const& in, Index h) noexcept;

  /// Returns the number of keys that query i attends to.
  template <class T>
  [[nodiscard]] static Index visible_keys(Inputs<T> const& in, Head const& head, Index i) noexcept;
  /// Returns query i's bias for key 0, or null.
  template <class T>
  [[nodiscard]] static T const* bias(Inputs<T> const& in, Head const& head, Index i) noexcept;

  template <class T, class Product>
  static void forward_head(Product product, Inputs<T> const& in, Head const& head, Scratch<T> const& at, T* out,
                           T* log_sums);

  template <class T, class Product>
  static void backward_head(Product product, Inputs<T> const& in, Head const& head, Scratch<T> const& at, T const* out,
                            T const* dout, T const* log_sums, Gradients<T> const& to, T* dbias);

  /// Computes p[q, j] = scale query[i + q] . key[j].
  template <class T, class Product>
  static void multiply_scores(Product product, Inputs<T> const& in, Head const& head, Index i, Index queries,
                              Index keys, Scratch<T> const& at);

  /// Replaces scores by the exponentials of their differences from the row's largest score, after dropout. Keys that a
  /// query does not attend to get zeros. Stores the inverse sums in `reciprocals`.
  template <class T>
  static void softmax_numerators(Inputs<T> const& in, Head const& head, Index i, Index queries, Index keys,
                                 Scratch<T> const& at, T* log_sums, T* reciprocals);

  /// Replaces scores by probabilities, and the gradients of probabilities by the gradients of scores.
  template <class T>
  static void differentiate(Inputs<T> const& in, Head const& head, Index i, Index queries, Index keys,
                            Scratch<T> const& at, T const* out, T const* dout, T const* log_sums, T* dbias);

  template <class T>
  static void scale_rows(T* rows, T const* by, Index count, Index width, Index row_size);

  template <class T>
  static void zero(T* to, Index rows, Index row_size, Index count);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/attention/attention.ipp>
#endif
