// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/drop.hpp>
#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/gemm_dispatch.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Scaled dot-product attention of sequences with themselves, several heads side by side.
template <class Space>
struct Attention {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

/// One task per sequence and head. A block of queries at a time is held against all keys, and only its logarithm of the
/// sum is kept: memory grows with the tokens, not with their square, and backward recomputes the probabilities.
template <>
struct Attention<HostSpace> {
  using Stream = memory::Stream<HostSpace>;
  template <class T, int Rank>
  using View = TensorView<T, Rank, HostSpace>;

  /// What forward and backward have in common.
  template <class T>
  struct Inputs {
    View<T const, 2> query, key, value;  // [layout.slots, heads * head width]
    SequenceLayout<HostSpace> layout;
    Index heads;
    DropoutMask mask;

    [[nodiscard]] Index rows() const noexcept { return layout.rows; }
    [[nodiscard]] Index length() const noexcept { return layout.length; }
    [[nodiscard]] Index width() const noexcept { return query.extent[1]; }
    [[nodiscard]] Index head_width() const noexcept { return width() / heads; }
    [[nodiscard]] double scale() const noexcept { return 1 / std::sqrt(static_cast<double>(head_width())); }
  };
  template <class T>
  struct Target {
    T* data;
    Write write;
  };

  /// Elements of scratch memory that `forward` and `backward` take.
  [[nodiscard]] static Index scratch(Stream stream, Index length) {
    return stream.pool().threads() * 2 * query_block * padded(length);
  }

  /// For the tokens i, j of a sequence, per head: p[i, j] = softmax over j of query[i] . key[j] / sqrt(head width),
  /// then out[i] = sum over j of drop(p)[i, j] value[j], and log_sums[i] = log of the sum of the exponentials. Padding
  /// slots of `out` are zero; those of the inputs are not read. `drop` keeps element (head * n + i) * m + j of the
  /// sample, where n is its length and m = n rounded up to a multiple of 8.
  /// @shape out as query   @shape log_sums [rows * heads, length]   @shape memory [scratch(stream, length)]
  /// @determinism bitwise, for any number of threads, wherever the sample lies in whatever batch
  /// @throws ShapeError when `heads` does not divide the width or the shapes disagree
  /// @source the definition (Vaswani et al. 2017), in blocks of queries
  template <class T>
  static void forward(Stream stream, Inputs<T> const& in, View<T, 2> out, View<T, 2> log_sums, View<T, 1> memory) {
    check(in, out.extent);
    for_heads(stream, in, memory, [&](Head const& head, T* scores) {
      auto* const to = out.data + head.offset;
      for (Index i = 0; i < head.tokens; i += query_block) {
        Index const queries = std::min(query_block, head.tokens - i);
        multiply_scores(in, head, i, queries, scores);
        auto* const sums = log_sums.data + head.index * in.length() + i;
        with_best_instructions([=, tokens = head.tokens, mask = in.mask, place = head.place, first = head.element(i)] {
          for (Index q = 0; q < queries; ++q) {
            auto* const row = scores + q * padded(tokens);
            T const most = detail::largest(row, tokens);
            for (Index j = 0; j < tokens; ++j) row[j] = detail::exp(row[j] - most);
            T const sum = detail::sum(row, tokens);
            sums[q] = most + std::log(sum);
            T const factor = 1 / sum;
            for (Index j = 0; j < tokens; ++j) row[j] *= factor;
            if (mask.active())
              detail::drop(mask, place, first + static_cast<std::uint64_t>(q * padded(tokens)), tokens, row, row);
          }
        });
        multiply<T>({queries, in.head_width(), head.tokens}, 1, {scores, padded(head.tokens), 1},
                    {in.value.data + head.offset, in.width(), 1}, 0, to + i * in.width(), in.width());
      }
      zero_padding(in, head, to);
    });
  }

  /// The gradients of the inputs, from that of `out`.
  /// @shape out, log_sums as forward left them   @shape dout as out   @shape dquery, dkey, dvalue as query
  template <class T>
  static void backward(Stream stream, Inputs<T> const& in, View<T const, 2> out, View<T const, 2> log_sums,
                       View<T const, 2> dout, Target<T> dquery, Target<T> dkey, Target<T> dvalue, View<T, 1> memory) {
    auto const width = in.width(), head_width = in.head_width();
    auto const scale = static_cast<T>(in.scale());
    for_heads(stream, in, memory, [&](Head const& head, T* p) {
      auto const stride = padded(head.tokens);
      auto* const ds = p + query_block * stride;  // first the gradient of p, then that of the scores
      for (Index i = 0; i < head.tokens; i += query_block) {
        Index const queries = std::min(query_block, head.tokens - i), at = head.offset + i * width;
        multiply_scores(in, head, i, queries, p);
        multiply<T>({queries, head.tokens, head_width}, 1, {dout.data + at, width, 1},
                    {in.value.data + head.offset, 1, width}, 0, ds, stride);
        score_gradients(in, head, i, queries, out.data + at, dout.data + at,
                        log_sums.data + head.index * in.length() + i, p, ds);
        auto const beta = [&](Target<T> target) { return i == 0 && target.write == Write::overwrite ? T{0} : T{1}; };
        multiply<T>({head.tokens, head_width, queries}, 1, {p, 1, stride}, {dout.data + at, width, 1}, beta(dvalue),
                    dvalue.data + head.offset, width);
        multiply<T>({head.tokens, head_width, queries}, scale, {ds, 1, stride}, {in.query.data + at, width, 1},
                    beta(dkey), dkey.data + head.offset, width);
        multiply<T>({queries, head_width, head.tokens}, scale, {ds, stride, 1}, {in.key.data + head.offset, width, 1},
                    dquery.write == Write::overwrite ? T{0} : T{1}, dquery.data + at, width);
      }
      for (auto const& target : {dquery, dkey, dvalue})
        if (target.write == Write::overwrite) zero_padding(in, head, target.data + head.offset);
    });
  }

 private:
  static constexpr Index query_block = 128;

  struct Head {
    Index index;          // counts heads over all rows
    Index tokens;         // of the row
    Index slots;          // of the row
    Index offset;         // of the head's first element in query, key, value and out
    std::uint64_t place;  // dropout's key
    Index number;         // within the row

    /// The number, within the sample, of the probability of query i and key 0.
    [[nodiscard]] std::uint64_t element(Index i) const noexcept {
      return static_cast<std::uint64_t>((number * tokens + i) * padded(tokens));
    }
  };

  [[nodiscard]] static constexpr Index padded(Index tokens) noexcept { return (tokens + 7) / 8 * 8; }

  template <class T>
  static void check(Inputs<T> const& in, Extents<2> out) {
    expect<ShapeError>(in.heads >= 1 && in.width() % in.heads == 0, [&] {
      return "Attention: " + std::to_string(in.heads) + " heads do not divide a width of " + std::to_string(in.width());
    });
    expect<ShapeError>(
        in.query.extent == in.key.extent && in.query.extent == in.value.extent && in.query.extent == out, [&] {
          return "Attention: query " + to_string(in.query.extent) + ", key " + to_string(in.key.extent) + ", value " +
                 to_string(in.value.extent) + " and output " + to_string(out) + " must have the same shape";
        });
  }

  /// f(head, scratch) for every head of every row. Which thread takes which head does not matter to any bit.
  template <class T, class F>
  static void for_heads(Stream stream, Inputs<T> const& in, View<T, 1> memory, F const& f) {
    if (in.query.empty()) return;
    Index const members = stream.pool().threads(), heads = in.rows() * in.heads;
    std::atomic<Index> next{0};
    stream.pool().run(std::min(members, heads), [&](Index member) {
      auto* const scratch = memory.data + member * 2 * query_block * padded(in.length());
      for (Index h; (h = next.fetch_add(1, std::memory_order_relaxed)) < heads;) {
        Index const row = h / in.heads, number = h % in.heads;
        f(Head{h, in.layout.tokens(row), in.layout.end(row) - in.layout.start(row),
               in.layout.start(row) * in.width() + number * in.head_width(),
               static_cast<std::uint64_t>(in.layout.positions.data[row]), number},
          scratch);
      }
    });
  }

  struct Extent {
    Index m, n, k;
  };
  template <class T>
  static void multiply(Extent extent, T alpha, detail::Strided<T const> a, detail::Strided<T const> b, T beta, T* c,
                       Index c_row) {
    detail::multiply_on_this_thread(detail::GemmBlock<T>{.m = extent.m,
                                                         .n = extent.n,
                                                         .k = extent.k,
                                                         .alpha = alpha,
                                                         .a = a,
                                                         .b = b,
                                                         .beta = beta,
                                                         .c = c,
                                                         .c_row = c_row,
                                                         .bias = nullptr});
  }

  /// scores[q, j] = query[i + q] . key[j] / sqrt(head width).
  template <class T>
  static void multiply_scores(Inputs<T> const& in, Head const& head, Index i, Index queries, T* scores) {
    multiply<T>({queries, head.tokens, in.head_width()}, static_cast<T>(in.scale()),
                {in.query.data + head.offset + i * in.width(), in.width(), 1},
                {in.key.data + head.offset, 1, in.width()}, 0, scores, padded(head.tokens));
  }

  /// p: scores become probabilities as the values met them, after dropout; ds: the gradient of those becomes that of
  /// the scores, ds = p (drop(dp) - sum over j of p drop(dp)), where the sum equals dout . out.
  template <class T>
  static void score_gradients(Inputs<T> const& in, Head const& head, Index i, Index queries, T const* out,
                              T const* dout, T const* log_sums, T* p, T* ds) {
    with_best_instructions([=, tokens = head.tokens, width = in.width(), head_width = in.head_width(), mask = in.mask,
                            place = head.place, first = head.element(i)] {
      auto const keep = static_cast<T>(mask.scale());
      auto const dropped = static_cast<std::uint16_t>(mask.dropped);
      for (Index q = 0; q < queries; ++q) {
        T const log_sum = log_sums[q], mean = detail::dot(out + q * width, dout + q * width, head_width);
        auto* const row = p + q * padded(tokens);
        auto* const gradient = ds + q * padded(tokens);
        for (Index j = 0; j < tokens; ++j) row[j] = detail::exp(row[j] - log_sum);
        if (!mask.active()) {
          for (Index j = 0; j < tokens; ++j) gradient[j] = row[j] * (gradient[j] - mean);
          continue;
        }
        detail::for_dropout_bits(mask, place, first + static_cast<std::uint64_t>(q * padded(tokens)), tokens,
                                 [=](Index done, Index here, std::uint16_t const* bits) {
                                   for (Index j = 0; j < here; ++j) {
                                     T const factor = bits[j] >= dropped ? keep : T{0}, x = row[done + j];
                                     gradient[done + j] = x * (gradient[done + j] * factor - mean);
                                     row[done + j] = x * factor;
                                   }
                                 });
      }
    });
  }

  template <class T>
  static void zero_padding(Inputs<T> const& in, Head const& head, T* to) {
    for (Index t = head.tokens; t < head.slots; ++t) std::fill_n(to + t * in.width(), in.head_width(), T{0});
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
