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
  template <class Scalar, int Rank>
  using View = TensorView<Scalar, Rank, HostSpace>;  ///< view of host memory

  template <class Scalar>
  using Inputs = detail::AttentionInputs<Scalar, HostSpace>;  ///< arguments that both passes share
  template <class Scalar>
  using Target = detail::AttentionTarget<Scalar>;  ///< destination of one gradient
  template <class Scalar>
  using Gradients =
      detail::AttentionGradients<Scalar>;  ///< destinations of all gradients; one for the bias may be null

  /// Returns the elements of scratch memory that `forward` needs.
  template <class Scalar>
  [[nodiscard]] static Index forward_scratch(Stream stream, Inputs<Scalar> const& in);
  /// Returns the elements of scratch memory that `backward` needs.
  template <class Scalar>
  [[nodiscard]] static Index scratch(Stream stream, Inputs<Scalar> const& in);

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
  template <class Scalar>
  static void forward(Stream stream, Inputs<Scalar> const& in, View<Scalar, 2> out, View<Scalar, 2> log_sums,
                      View<Scalar, 1> memory);

  /// Computes the gradients of the inputs from the gradient of `out`.
  /// @shape out, log_sums from forward   @shape dout as out   @shape gradients as their inputs
  /// @shape memory [scratch(stream, in)]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void backward(Stream stream, Inputs<Scalar> const& in, View<Scalar const, 2> out,
                       View<Scalar const, 2> log_sums, View<Scalar const, 2> dout, Gradients<Scalar> const& to,
                       View<Scalar, 1> memory);

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
  template <class Scalar>
  struct Scratch {
    static constexpr Index max_columns = 64 / Index{sizeof(Scalar)} * 2;
    Index stride, width;  // number of keys and head width, rounded up to whole tiles
    Index size;
    Scalar *keys_across = nullptr, *values_across = nullptr;  // transposed, for products over the head's width
    Scalar *keys = nullptr, *queries = nullptr, *gradients = nullptr;
    Scalar *p = nullptr, *ds = nullptr;  // [query_block, stride]

    explicit Scratch(Inputs<Scalar> const& in)
        : stride((in.keys.length + max_columns - 1) / max_columns * max_columns),
          width((in.head_width() + max_columns - 1) / max_columns * max_columns),
          size(2 * stride * in.head_width() + in.keys.length * width + 2 * query_block * (width + stride)) {}
    Scratch(Inputs<Scalar> const& in, Scalar* memory) : Scratch(in) {
      Index const sizes[] = {stride * in.head_width(), stride * in.head_width(), in.keys.length * width,
                             query_block * width,      query_block * width,      query_block * stride};
      Scalar** const parts[] = {&keys_across, &values_across, &keys, &queries, &gradients, &p};
      for (Index i = 0; i < 6; memory += sizes[i++]) *parts[i] = memory;
      ds = memory;
    }
  };

  /// Calls f(head, scratch) for each head of each row. The results do not depend on which thread processes which head.
  template <class Scalar, class Function>
  static void for_heads(Stream stream, Inputs<Scalar> const& in, View<Scalar, 1> memory, Function const& f);

  template <class Scalar>
  [[nodiscard]] static Head head_of(Inputs<Scalar> const& in, Index h) noexcept;

  /// Returns the number of keys that query i attends to.
  template <class Scalar>
  [[nodiscard]] static Index visible_keys(Inputs<Scalar> const& in, Head const& head, Index i) noexcept;
  /// Returns query i's bias for key 0, or null.
  template <class Scalar>
  [[nodiscard]] static Scalar const* bias(Inputs<Scalar> const& in, Head const& head, Index i) noexcept;

  template <class Scalar, class Product>
  static void forward_head(Product product, Inputs<Scalar> const& in, Head const& head, Scratch<Scalar> const& at,
                           Scalar* out, Scalar* log_sums);

  template <class Scalar, class Product>
  static void backward_head(Product product, Inputs<Scalar> const& in, Head const& head, Scratch<Scalar> const& at,
                            Scalar const* out, Scalar const* dout, Scalar const* log_sums, Gradients<Scalar> const& to,
                            Scalar* dbias);

  /// Computes p[q, j] = scale query[i + q] . key[j].
  template <class Scalar, class Product>
  static void multiply_scores(Product product, Inputs<Scalar> const& in, Head const& head, Index i, Index queries,
                              Index keys, Scratch<Scalar> const& at);

  /// Replaces scores by the exponentials of their differences from the row's largest score, after dropout. Keys that a
  /// query does not attend to get zeros. Stores the inverse sums in `reciprocals`.
  template <class Scalar>
  static void softmax_numerators(Inputs<Scalar> const& in, Head const& head, Index i, Index queries, Index keys,
                                 Scratch<Scalar> const& at, Scalar* log_sums, Scalar* reciprocals);

  /// Replaces scores by probabilities, and the gradients of probabilities by the gradients of scores.
  template <class Scalar>
  static void differentiate(Inputs<Scalar> const& in, Head const& head, Index i, Index queries, Index keys,
                            Scratch<Scalar> const& at, Scalar const* out, Scalar const* dout, Scalar const* log_sums,
                            Scalar* dbias);

  template <class Scalar>
  static void scale_rows(Scalar* rows, Scalar const* by, Index count, Index width, Index row_size);

  template <class Scalar>
  static void zero(Scalar* to, Index rows, Index row_size, Index count);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/attention/attention.ipp>
#endif
