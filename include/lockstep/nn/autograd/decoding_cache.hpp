// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// State of token-by-token prediction between passes: keys and values of causal attention (the KV cache), memories with
/// their keys and values, and states of recurrent layers and convolutions. Usually empty, because a pass covers whole
/// sequences. A part of nn::Context.
template <class Scalar>
class DecodingCache {
  using Layout = kernel::SequenceLayout<HostSpace>;
  using View = TensorView<Scalar, 2, HostSpace>;

 public:
  // ---- for layers: forward

  /// Returns whether this pass keeps appended tokens. Such a pass may cover only the next tokens.
  [[nodiscard]] bool is_decoding() const noexcept { return decoding_; }
  /// Returns the number of tokens of each sequence in earlier passes.
  [[nodiscard]] Index cached_tokens() const noexcept { return cached_; }

  /// Appends `x` to the tensors that earlier passes appended at this place of the model. Valid until the next pass.
  /// @shape x [rows * added, width]   @shape returns [rows * (cached_tokens() + added), width], by sequence
  /// @throws ShapeError unless all sequences have equally many tokens, later passes add one token, and the number of
  /// sequences is unchanged
  [[nodiscard]] View append(View x, Layout const& layout) {
    check(layout);
    auto const rows = layout.rows, width = x.extent[1];
    auto const before = cached_ * width, added = layout.length * width, all = before + added;
    auto& entry = next_entry(keys_and_values_, next_keys_or_values_);
    if (cached_ == 0) entry.clear();
    expect<ShapeError>(std::ssize(entry) == rows * before, [&] {
      return "attention continues " + std::to_string(rows) + " sequences of width " + std::to_string(width) +
             ", but the pass that began them had others; call Predictor::begin again";
    });
    entry.resize(static_cast<std::size_t>(rows * all));
    for (Index row = rows; row-- > 0;) {
      auto* const to = entry.data() + row * all;
      std::copy_backward(entry.data() + row * before, entry.data() + (row + 1) * before, to + before);
      std::copy_n(x.data + row * added, added, to + before);
    }
    appended_ = layout.length;
    rows_ = rows;
    return {entry.data(), {rows * (cached_ + layout.length), width}};
  }

  /// Returns the state that the previous pass left for each sequence at this place of the model; zeros at the beginning
  /// of sequences. The layer replaces it with its new state. Valid until the next pass.
  /// @shape returns [rows, width]   @throws ShapeError as `append`
  [[nodiscard]] TensorView<Accumulate<Scalar>, 2, HostSpace> recurrent_state(Layout const& layout, Index width) {
    check(layout);
    auto& entry = next_entry(states_, next_state_);
    if (cached_ == 0) entry.assign(static_cast<std::size_t>(layout.rows * width), Accumulate<Scalar>{0});
    expect<ShapeError>(std::ssize(entry) == layout.rows * width, [&] {
      return "a recurrent layer continues " + std::to_string(layout.rows) + " sequences, but the pass that began " +
             "them had others; call Predictor::begin again";
    });
    appended_ = layout.length;
    rows_ = layout.rows;
    return {entry.data(), {layout.rows, width}};
  }

  /// Returns the result of `make()` from the pass that began the sequences, at this place of the model, for tensors
  /// computed from the tokens of a memory.
  /// @shape memory [slots, any]   @shape returns [slots, width]   @throws ShapeError if the kept one has another shape
  template <class Make>
  [[nodiscard]] View cached_projection(View memory, Index width, Make const& make) {
    auto& entry = next_entry(projections_, next_projection_);
    if (cached_ == 0) {
      View const result = make();
      entry.values.assign(result.data, result.data + result.size());
      entry.memory = static_cast<std::size_t>(
          std::find_if(memories_.begin(), memories_.end(), [&](auto const& m) { return m.holds(memory); }) -
          memories_.begin());
      entry.width = width;
    }
    Extents<2> const extent{memory.extent[0], width};
    expect<ShapeError>(std::ssize(entry.values) == elements(extent), [&] {
      return "attention continues with a memory whose keys are " + to_string(extent) +
             ", but the pass that began the sequences had another; call Predictor::begin again";
    });
    return {entry.values.data(), extent};
  }
  /// Returns the memory that `make()` returned in the pass that began the sequences. `make` runs as a pass over whole
  /// sequences. Valid until other sequences begin.
  template <class Sequence, class Make>
  [[nodiscard]] Sequence cached_memory(Make const& make) {
    auto& entry = next_entry(memories_, next_memory_);
    if (cached_ == 0) {
      decoding_ = false;
      Sequence const result = make();
      decoding_ = true;
      entry.take(result.tokens.value, result.layout);
      rows_of_memory_.resize(static_cast<std::size_t>(result.layout.rows));
      std::iota(rows_of_memory_.begin(), rows_of_memory_.end(), Index{0});
    }
    return {{entry.view(), nullptr}, entry.layout};
  }
  /// Returns whether the pass predicts token by token, or begins to, and x holds the values of such a memory.
  [[nodiscard]] bool is_cached_memory(View x) const noexcept {
    return decoding_ && std::any_of(memories_.begin(), memories_.end(), [&](auto const& m) { return m.holds(x); });
  }

  /// Rejects token-by-token prediction for a layer that needs whole sequences.
  /// @throws ConfigError in such a pass, and in the pass that begins the sequences
  void expect_whole_sequences(char const* who) const {
    expect<ConfigError>(!decoding_, [&] {
      return std::string(who) + ": Predictor::begin and next predict token by token, but this needs " +
             "whole sequences; causal self-attention, causal convolutions, recurrent layers that read forwards, and " +
             "attention to a memory that nn::encode_once made can predict token by token; otherwise use " +
             "Predictor::predict";
    });
  }
  /// Rejects a window over more steps than this pass has, if it continues sequences: the window would read padding
  /// instead of earlier steps.
  /// @throws ConfigError for such a window
  void expect_steps(Index steps, Index window, char const* who) const {
    if (cached_ > 0 && steps < window) expect_whole_sequences(who);
  }

  // ---- for the code that runs the model

  /// Starts passes over the tokens that follow `earlier` tokens of each sequence; 0 begins new sequences.
  void begin_decoding_pass(Index earlier) noexcept {
    decoding_ = true;
    cached_ = earlier;
    appended_ = 0;
    next_keys_or_values_ = next_state_ = next_projection_ = next_memory_ = 0;
  }
  /// Returns to passes over whole sequences. Kept state stays.
  void end_decoding() noexcept {
    decoding_ = false;
    cached_ = 0;
  }
  /// Sequence r of the next pass continues sequence rows[r] of the pass before: sequences may be reordered, repeated or
  /// left out. Memories are copied only if another sequence's is needed in some row.
  /// @throws ShapeError for a row that the pass before did not have; names it
  void select_rows(std::span<Index const> rows) {
    for (auto const row : rows)
      expect<ShapeError>(row >= 0 && row < rows_, [&] {
        return "Predictor::select: row " + std::to_string(row) + " of " + std::to_string(rows_) +
               " sequences; rows count from 0";
      });
    auto const gather_equal_parts = [&](auto& values) {
      auto const each = std::ssize(values) / std::max<Index>(1, rows_);
      gather(values, rows, [&](Index row) { return std::pair{row * each, (row + 1) * each}; });
    };
    for (std::size_t i = 0; i < next_keys_or_values_; ++i) gather_equal_parts(keys_and_values_[i]);
    for (std::size_t i = 0; i < next_state_; ++i) gather_equal_parts(states_[i]);
    rows_ = std::ssize(rows);
    if (memories_.empty()) return;
    auto origins = rows_of_memory_;
    gather(origins, rows, [](Index row) { return std::pair{row, row + 1}; });
    if (origins == rows_of_memory_) return;  // beams of one sample share what its memory holds
    for (std::size_t i = 0; i < next_projection_; ++i) {
      auto& projection = projections_[i];
      auto const& layout = memories_[projection.memory].layout;
      gather(projection.values, rows, [&](Index row) {
        return std::pair{layout.start(row) * projection.width, layout.end(row) * projection.width};
      });
    }
    for (std::size_t i = 0; i < next_memory_; ++i) memories_[i].select(rows);
    rows_of_memory_ = std::move(origins);
  }
  /// Returns the number of tokens appended since begin_decoding_pass.
  [[nodiscard]] Index appended_tokens() const noexcept { return appended_; }

 private:
  /// A memory with its own storage, because the batch's storage is reused.
  struct Memory {
    std::vector<Scalar> values;
    std::vector<std::int32_t> lengths;
    std::vector<Index> offsets, positions;
    Layout layout;
    Index width = 0;

    void take(View x, Layout const& from) {
      values.assign(x.data, x.data + x.size());
      width = x.extent[1];
      layout = from;
      copy(lengths, layout.lengths);
      copy(offsets, layout.offsets);
      copy(positions, layout.positions);
    }
    [[nodiscard]] View view() { return {values.data(), {layout.slots, width}}; }
    [[nodiscard]] bool holds(View x) const noexcept { return x.data == values.data(); }
    void select(std::span<Index const> rows) {
      gather(values, rows, [&](Index row) { return std::pair{layout.start(row) * width, layout.end(row) * width}; });
      auto const one = [](Index row) { return std::pair{row, row + 1}; };
      if (!lengths.empty()) gather(lengths, rows, one);
      if (!positions.empty()) gather(positions, rows, one);
      std::vector<Index> starts{0};
      for (auto const row : rows) starts.push_back(starts.back() + layout.end(row) - layout.start(row));
      layout.rows = std::ssize(rows);
      layout.slots = starts.back();
      if (layout.is_ragged()) offsets = std::move(starts);
      point_to(lengths, layout.lengths);
      point_to(offsets, layout.offsets);
      point_to(positions, layout.positions);
    }

   private:
    template <class Element>
    static void copy(std::vector<Element>& to, TensorView<Element const, 1, HostSpace>& from) {
      to.clear();
      if (!from.data) return;
      to.assign(from.data, from.data + from.size());
      point_to(to, from);
    }
    template <class Element>
    static void point_to(std::vector<Element> const& to, TensorView<Element const, 1, HostSpace>& view) {
      if (view.data) view = {to.data(), {std::ssize(to)}};
    }
  };
  /// Keys or values of a memory, [slots of the memory, width].
  struct Projection {
    std::vector<Scalar> values;
    std::size_t memory = 0;
    Index width = 0;
  };

  /// `values` becomes the parts [begin, end) = part(row), one for each of the rows.
  template <class Element, class Part>
  static void gather(std::vector<Element>& values, std::span<Index const> rows, Part const& part) {
    std::vector<Element> out;
    std::size_t size = 0;
    for (auto const row : rows) size += static_cast<std::size_t>(part(row).second - part(row).first);
    out.reserve(size);
    for (auto const row : rows)
      out.insert(out.end(), values.begin() + part(row).first, values.begin() + part(row).second);
    values = std::move(out);
  }
  template <class Element>
  [[nodiscard]] static Element& next_entry(std::vector<Element>& all, std::size_t& next) {
    if (next == all.size()) all.emplace_back();
    return all[next++];
  }
  void check(Layout const& layout) const {
    for (Index row = 0; row < layout.rows; ++row)
      expect<ShapeError>(layout.tokens(row) == layout.length, [&] {
        return "sequences that are predicted token by token must be equally long, but sequence " + std::to_string(row) +
               " of the batch has " + std::to_string(layout.tokens(row)) + " tokens and not " +
               std::to_string(layout.length) +
               "; give sequences of one length, or one sequence at a time, and call an encoder of other sequences " +
               "inside nn::encode_once";
      });
    expect<ShapeError>(cached_ == 0 || layout.length == 1, [&] {
      return "Predictor::next takes one token of each sequence, and the batch has " + std::to_string(layout.length) +
             "; call Predictor::begin with all of them, and an encoder of other sequences inside nn::encode_once";
    });
  }

  std::vector<std::vector<Scalar>>
      keys_and_values_;                  // in the order in which the model appends, [rows, tokens, width] each
  std::vector<Projection> projections_;  // in the order in which the model asks
  std::vector<Memory> memories_;         // in the order in which the model makes them
  std::vector<Index> rows_of_memory_;    // the row of each memory in the pass that began the sequences
  std::vector<std::vector<Accumulate<Scalar>>> states_;  // in the order in which the model asks, [rows, width] each
  std::size_t next_keys_or_values_ = 0, next_memory_ = 0, next_projection_ = 0, next_state_ = 0;
  Index cached_ = 0, appended_ = 0;
  Index rows_ = 0;  // sequences of the last pass
  bool decoding_ = false;
};

}}}  // namespace lockstep::nn
