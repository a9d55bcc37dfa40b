// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_CUDNN)
#include <cudnn.h>

#include <cstdint>
#include <utility>

#include <lockstep/kernel/attention/detail/attention_inputs.hpp>
#include <lockstep/kernel/attention/detail/graph_cudnn.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Determines a pass's graph.
struct CudnnAttentionShape {
  AttentionPass pass;
  cudnnDataType_t type;
  std::int64_t rows, heads, key_heads, queries, keys, channels;
  bool causal, padded;

  auto operator<=>(CudnnAttentionShape const&) const = default;
};

/// Tensors of the graphs.
namespace cudnn_id {
enum : std::int64_t {
  query,
  key,
  value,
  out,
  log_sums,
  query_lengths,
  key_lengths,
  scale,
  minus_infinity,
  one,
  dout,
  means,  ///< out . dout of each query and head, float: memory that backward needs in addition to the workspace
  dquery,
  dkey,
  dvalue,
};
}  // namespace cudnn_id

/// Describes both passes of attention to cuDNN, which recognizes its fused kernels by the operations and their order.
/// Tensors are [rows, heads, tokens, channels]. A head of keys is next to the other heads of its token.
/// @source NVIDIA's cudnn-frontend, composite nodes of scaled_dot_product_flash_attention.h
class CudnnAttentionGraph {
 public:
  explicit CudnnAttentionGraph(CudnnAttentionShape const& shape) : s_(shape) {
    if (s_.padded) {
      queries_ = graph_.stored(cudnn_id::query_lengths, CUDNN_DATA_INT32, {s_.rows, 1, 1, 1}, {1, 1, 1, 1});
      keys_ = graph_.stored(cudnn_id::key_lengths, CUDNN_DATA_INT32, {s_.rows, 1, 1, 1}, {1, 1, 1, 1});
    }
    scale_ = graph_.number(cudnn_id::scale);
    if (s_.padded || s_.causal) minus_infinity_ = graph_.number(cudnn_id::minus_infinity);
    s_.pass == AttentionPass::forward ? forward() : backward();
  }
  [[nodiscard]] static CudnnGraph describe(CudnnAttentionShape const& shape) {
    return std::move(CudnnAttentionGraph(shape).graph_);
  }

 private:
  using Tensor = CudnnGraph::Tensor;

  void forward() {
    auto const query = tokens(cudnn_id::query, s_.heads, s_.queries);
    auto const key = transposed(cudnn_id::key);
    auto const value = tokens(cudnn_id::value, s_.key_heads, s_.keys);
    auto scores = graph_.product(query, key, matrix(), {queries_, keys_, nullptr});
    scores = causal(padded(binary(CUDNN_POINTWISE_MUL, scores, scale_)));
    auto const maximum = graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, column());
    auto const exponentials = unary(CUDNN_POINTWISE_EXP, binary(CUDNN_POINTWISE_SUB, scores, maximum));
    auto const sum = graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, column());
    auto const logarithm = graph_.pointwise(CUDNN_POINTWISE_LOG, sum, nullptr, nullptr, column());
    graph_.pointwise(CUDNN_POINTWISE_ADD, maximum, logarithm, nullptr, per_query(cudnn_id::log_sums));
    auto const probabilities = graph_.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, nullptr, matrix(s_.type));
    graph_.product(probabilities, value, tokens(cudnn_id::out, s_.heads, s_.queries), {queries_, nullptr, keys_});
  }

  /// The gradient of the scores is a whole matrix here, which cuDNN stores in its workspace: only then does it add to
  /// the queries' gradients in a fixed order.
  void backward() {
    auto const query = tokens(cudnn_id::query, s_.heads, s_.queries);
    auto const key = transposed(cudnn_id::key), value = transposed(cudnn_id::value);
    auto const out = tokens(cudnn_id::out, s_.heads, s_.queries), dout = tokens(cudnn_id::dout, s_.heads, s_.queries);
    auto const means = per_query(cudnn_id::means);
    auto const products = graph_.pointwise(
        CUDNN_POINTWISE_MUL, dout, out, nullptr,
        graph_.temporary({s_.rows, s_.heads, s_.queries, s_.channels}, token_stride(s_.heads, s_.queries)));
    auto const sums = graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, products, column());
    graph_.pointwise(CUDNN_POINTWISE_MUL, sums, graph_.number(cudnn_id::one), nullptr, means);

    auto scores = graph_.product(query, key, matrix(), {queries_, keys_, nullptr});
    scores = padded(binary(CUDNN_POINTWISE_MUL, scores, scale_));
    scores = causal(binary(CUDNN_POINTWISE_SUB, scores, per_query(cudnn_id::log_sums)));
    auto const probabilities = unary(CUDNN_POINTWISE_EXP, scores);
    key_gradient(cudnn_id::dvalue, probabilities, dout);

    auto slopes = graph_.product(dout, value, matrix(), {queries_, keys_, nullptr});
    slopes = binary(CUDNN_POINTWISE_SUB, slopes, means);
    slopes = binary(CUDNN_POINTWISE_MUL, slopes, probabilities);
    slopes = binary(CUDNN_POINTWISE_MUL, slopes, scale_);
    key_gradient(cudnn_id::dkey, slopes, query);
    auto const keys = graph_.reshape(key, graph_.temporary({s_.rows, s_.key_heads, s_.keys, s_.channels},
                                                           token_stride(s_.key_heads, s_.keys), s_.type));
    graph_.product(slopes, keys, tokens(cudnn_id::dquery, s_.heads, s_.queries), {queries_, nullptr, keys_});
  }

  /// Computes the product of the transposed matrix and `with`, and adds the heads that share keys.
  void key_gradient(std::int64_t id, Tensor matrix, Tensor with) {
    auto const n = s_.queries, m = s_.keys;
    auto const across =
        graph_.reshape(matrix, graph_.temporary({s_.rows, s_.heads, m, n}, {s_.heads * n * m, n * m, 1, m}, s_.type));
    auto const to = tokens(id, s_.key_heads, m);
    CudnnGraph::Limits const limits{keys_, nullptr, queries_};
    if (s_.key_heads == s_.heads) {
      graph_.product(across, with, to, limits);
      return;
    }
    auto const c = s_.channels;
    auto const each = graph_.temporary({s_.rows, s_.heads, m, c}, {s_.heads * m * c, m * c, c, 1}, s_.type);
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, graph_.product(across, with, each, limits), to);
  }

  /// Replaces scores of padding by minus infinity.
  [[nodiscard]] Tensor padded(Tensor scores) {
    if (!s_.padded) return scores;
    auto const row = index(scores, 2, CUDNN_DATA_INT32), column = index(scores, 3, CUDNN_DATA_INT32);
    auto const is_query = compare(CUDNN_POINTWISE_CMP_LT, row, queries_),
               is_key = compare(CUDNN_POINTWISE_CMP_LT, column, keys_);
    return select(scores, compare(CUDNN_POINTWISE_LOGICAL_AND, is_query, is_key));
  }
  /// Replaces scores of later keys by minus infinity.
  [[nodiscard]] Tensor causal(Tensor scores) {
    if (!s_.causal) return scores;
    auto const row = index(scores, 2, CUDNN_DATA_FLOAT), column = index(scores, 3, CUDNN_DATA_FLOAT);
    return select(scores, compare(CUDNN_POINTWISE_CMP_GE, row, column));
  }
  [[nodiscard]] Tensor index(Tensor like, std::int64_t axis, cudnnDataType_t precision) {
    return graph_.pointwise(CUDNN_POINTWISE_GEN_INDEX, like, nullptr, nullptr, matrix(CUDNN_DATA_INT32), precision,
                            axis);
  }
  [[nodiscard]] Tensor compare(cudnnPointwiseMode_t mode, Tensor x, Tensor b) {
    return graph_.pointwise(mode, x, b, nullptr, matrix(CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN);
  }
  [[nodiscard]] Tensor select(Tensor scores, Tensor where) {
    return graph_.pointwise(CUDNN_POINTWISE_BINARY_SELECT, scores, minus_infinity_, where, matrix());
  }
  [[nodiscard]] Tensor unary(cudnnPointwiseMode_t mode, Tensor x) {
    return graph_.pointwise(mode, x, nullptr, nullptr, matrix());
  }
  [[nodiscard]] Tensor binary(cudnnPointwiseMode_t mode, Tensor x, Tensor b) {
    return graph_.pointwise(mode, x, b, nullptr, matrix());
  }

  /// A temporary with a number for each query and key.
  [[nodiscard]] Tensor matrix(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    auto const n = s_.queries, m = s_.keys;
    return graph_.temporary({s_.rows, s_.heads, n, m}, {s_.heads * n * m, n * m, m, 1}, type);
  }
  /// A temporary with a number for each query.
  [[nodiscard]] Tensor column() {
    return graph_.temporary({s_.rows, s_.heads, s_.queries, 1}, {s_.heads * s_.queries, s_.queries, 1, 1});
  }
  [[nodiscard]] Tensor per_query(std::int64_t id) {
    return graph_.stored(id, CUDNN_DATA_FLOAT, {s_.rows, s_.heads, s_.queries, 1},
                         {s_.heads * s_.queries, s_.queries, 1, 1});
  }
  [[nodiscard]] Tensor tokens(std::int64_t id, std::int64_t heads, std::int64_t count) {
    return graph_.stored(id, s_.type, {s_.rows, heads, count, s_.channels}, token_stride(heads, count));
  }
  /// Keys or values as [rows, heads, channels, tokens].
  [[nodiscard]] Tensor transposed(std::int64_t id) {
    auto const stride = token_stride(s_.key_heads, s_.keys);
    return graph_.stored(id, s_.type, {s_.rows, s_.key_heads, s_.channels, s_.keys},
                         {stride[0], stride[1], stride[3], stride[2]});
  }
  [[nodiscard]] CudnnSizes token_stride(std::int64_t heads, std::int64_t count) const noexcept {
    return {count * heads * s_.channels, s_.channels, heads * s_.channels, 1};
  }

  CudnnAttentionShape s_;
  CudnnGraph graph_;
  Tensor queries_ = nullptr, keys_ = nullptr, scale_ = nullptr, minus_infinity_ = nullptr;
};

}}}  // namespace lockstep::kernel::detail
#endif
