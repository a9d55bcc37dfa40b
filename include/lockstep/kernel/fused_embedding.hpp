// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/segment_plan.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/drop.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/detail/token_runs.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Token and position embedding in one pass, and its gradients without atomics.
template <class Space>
struct FusedEmbedding {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct FusedEmbedding<HostSpace> {
  using Stream = memory::Stream<HostSpace>;
  template <class T, int Rank>
  using View = TensorView<T, Rank, HostSpace>;

  /// What a call looks up: tokens t < lengths[r] of row r.
  struct Tokens {
    View<std::int32_t const, 2> ids;      // [rows, length]
    View<std::int32_t const, 1> lengths;  // [rows]

    [[nodiscard]] Index rows() const noexcept { return ids.extent[0]; }
    [[nodiscard]] Index length() const noexcept { return ids.extent[1]; }
  };

  /// What the token gradient needs to know of the ids. Its storage is kept from batch to batch.
  using Plan = SegmentPlan;

  /// Plans the sums of `backward_token`.
  /// @shape scratch [rows * length]
  static void plan(Stream, Tokens const& tokens, View<std::int32_t, 1> scratch, Plan& plan) {
    for (Index r = 0; r < tokens.rows(); ++r) {
      auto const from = r * tokens.length();
      auto* const padding = std::copy_n(tokens.ids.data + from, tokens.lengths.data[r], scratch.data + from);
      std::fill(padding, scratch.data + from + tokens.length(), -1);  // a plan leaves negative ids out
    }
    plan.build(scratch.span());
  }

  /// out[r, t] = drop(token[ids[r, t]] + position[t]) for tokens, zero in padding; `drop` is that of kernel::Dropout
  /// for element t * width + channel of the sample at positions[r].
  /// @shape token [vocabulary, width]   @shape position [most positions, width]   @shape positions [rows]
  /// @shape out [rows * length, width]
  /// @determinism bitwise, for any number of threads, wherever the sample lies in whatever batch
  /// @throws DataError (at Contract::normal) for an id outside the table or a sequence longer than the positions
  template <class T>
  static void forward(Stream stream, Tokens const& tokens, View<T const, 2> token, View<T const, 2> position,
                      DropoutMask mask, View<Index const, 1> positions, View<T, 2> out) {
    check(tokens, token.extent[0], position.extent[0]);
    auto const width = out.extent[1];
    detail::for_token_runs(
        stream.pool(), SequenceLayout<HostSpace>::padded(tokens.length(), tokens.lengths, positions),
        [=, ids = tokens.ids.data](Index row, Index slot, Index at, Index count) {
          auto const place = static_cast<std::uint64_t>(positions.data[row]);
          with_best_instructions([=] {
            auto* const to = out.data + at * width;
            for (Index k = 0; k < count; ++k)
              detail::add_rows(token.data + ids[at + k] * width, position.data + (slot + k) * width, to + k * width,
                               width);
            if (mask.active())
              detail::drop(mask, place, static_cast<std::uint64_t>(slot * width), count * width, to, to);
          });
        },
        [=](Index at, Index padding) { std::fill_n(out.data + at * width, padding * width, T{0}); });
  }

  /// Rows of scratch memory that `backward_token` takes: a function of the shape alone.
  [[nodiscard]] static Index partial_rows(Tokens const& tokens, Plan const&) noexcept {
    return tokens.ids.size() / chunk + 1;
  }

  /// The gradient of the token table: row v is the sum of dy over the slots that hold id v. Each chunk of the plan is
  /// summed on its own, then the chunks of a row in order, so one hot row spreads over all threads. `overwrite` zeroes
  /// the rows of absent ids; `add` touches only rows that occur. Where `touched` has bits they decide instead, row by
  /// row: those that it contains are added to, others overwritten and entered, absent ones left alone.
  /// @shape dy [rows * length, width], already through `drop`
  /// @shape partial [partial_rows(tokens, plan), width], scratch   @shape gradient [vocabulary, width]
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void backward_token(Stream stream, Plan const& plan, View<T const, 2> dy, View<T, 2> partial,
                             View<T, 2> gradient, Write write, TouchedRows const& touched = {}) {
    auto const width = gradient.extent[1], rows = static_cast<Index>(plan.rows.size());
    auto const* const ids = plan.rows.data();
    auto const* const first = plan.first.data();
    auto const* const begin = plan.begin.data();
    // The first chunk of a row goes straight into the gradient. Later ones start a whole chunk after another one of
    // their row, so no two of them begin within the same `chunk` entries of the order.
    auto const place = [=](Index c) { return static_cast<Index>(begin[c]) / chunk; };
    auto const first_write = [=](Index row) {
      if (touched.words == nullptr) return write;
      return touched.contains(ids[row]) ? Write::add : Write::overwrite;
    };
    stream.pool().for_ranges(plan.chunks(), chunks_per_task, [&](Index c, Index end) {
      auto row = std::upper_bound(first, first + rows, static_cast<std::uint32_t>(c)) - first - 1;
      for (; c < end; ++c) {
        row += c == first[row + 1];
        bool const is_first = c == first[row];
        detail::sum_rows(dy.data, width, width, detail::Listed{plan.order.data() + begin[c]}, begin[c + 1] - begin[c],
                         is_first ? gradient.data + ids[row] * width : partial.data + place(c) * width,
                         is_first ? first_write(row) : Write::overwrite);
      }
    });
    auto const finish_row = [=](Index row) {
      auto const second = static_cast<Index>(first[row]) + 1, later = static_cast<Index>(first[row + 1]) - second;
      if (later > 0)
        detail::sum_rows(
            partial.data, width, width, [=](Index i) { return place(second + i); }, later,
            gradient.data + ids[row] * width, Write::add);
    };
    if (touched.words != nullptr || write == Write::add) {
      stream.pool().for_ranges(rows, rows_per_task, [&](Index row, Index end) {
        for (; row < end; ++row) finish_row(row);
      });
    } else {
      stream.pool().for_ranges(gradient.extent[0], rows_per_task, [&](Index id, Index end) {
        auto row = std::lower_bound(ids, ids + rows, id) - ids;
        for (; row < rows && ids[row] < end; ++row) {
          std::fill_n(gradient.data + id * width, (ids[row] - id) * width, T{0});
          finish_row(row);
          id = ids[row] + 1;
        }
        std::fill_n(gradient.data + id * width, (end - id) * width, T{0});
      });
    }
    if (touched.words != nullptr) touched.insert(plan.rows);
  }

  /// The gradient of the position table: row t is the sum over r with lengths[r] > t of dy[r, t], in the order of r.
  /// `overwrite` zeroes the rows beyond the batch's length.
  /// @shape dy [rows * length, width], already through `drop`   @shape gradient [most positions, width]
  /// @determinism bitwise, for any number of threads
  template <class T>
  static void backward_position(Stream stream, Tokens const& tokens, View<T const, 2> dy, View<T, 2> gradient,
                                Write write) {
    auto const width = gradient.extent[1], length = tokens.length();
    auto const used = tokens.rows() == 0 ? 0 : std::min(length, gradient.extent[0]);
    stream.pool().run(write == Write::overwrite ? gradient.extent[0] : used, [=, rows = tokens.rows()](Index t) {
      auto* const to = gradient.data + t * width;
      if (t >= used) return static_cast<void>(std::fill_n(to, width, T{0}));
      detail::sum_rows(dy.data + t * width, length * width, width, detail::LongerThan{tokens.lengths.data, t}, rows, to,
                       write);
    });
  }

 private:
  static constexpr Index chunk = static_cast<Index>(SegmentPlan::chunk), chunks_per_task = 16, rows_per_task = 128;

  static void check(Tokens const& tokens, Index vocabulary, Index most_positions) {
    if constexpr (!checks(Contract::normal)) return;
    for (Index r = 0; r < tokens.rows(); ++r) {
      auto const length = static_cast<Index>(tokens.lengths.data[r]);
      expect<DataError>(length >= 0 && length <= std::min(tokens.length(), most_positions), [&] {
        return "FusedEmbedding: row " + std::to_string(r) + " of the batch has " + std::to_string(length) +
               " tokens; there are " + std::to_string(most_positions) + " positions and " +
               std::to_string(tokens.length()) + " slots: cut the sequence, or give the layer a larger `length`";
      });
      auto const* const ids = tokens.ids.data + r * tokens.length();
      bool valid = true;  // one test per row: the loop stays free of branches
      for (Index t = 0; t < length; ++t)
        valid &= static_cast<std::uint32_t>(ids[t]) < static_cast<std::uint64_t>(vocabulary);
      for (Index t = 0; !valid && t < length; ++t)
        expect<DataError>(ids[t] >= 0 && ids[t] < vocabulary, [&] {
          return "FusedEmbedding: row " + std::to_string(r) + " of the batch has id " + std::to_string(ids[t]) +
                 " at position " + std::to_string(t) + "; the table has " + std::to_string(vocabulary) +
                 " rows, ids are 0 to " + std::to_string(vocabulary - 1) +
                 ": use the vocabulary that the model was made for, or give the layer a larger `vocabulary`";
        });
    }
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
