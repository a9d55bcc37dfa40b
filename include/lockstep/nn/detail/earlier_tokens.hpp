// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn::detail {

/// What a context keeps of tokens from pass to pass, for who predicts sequences token by token: the keys and values of
/// causal attention, memories and their keys and values, the states of recurrent layers and convolutions. Usually
/// nothing: a pass is one over whole sequences.
template <class Scalar>
class EarlierTokens {
  using Layout = kernel::SequenceLayout<HostSpace>;
  using View = TensorView<Scalar, 2, HostSpace>;

 public:
  // ---- for layers: forward

  /// Whether this pass keeps what is appended, and may be one over the tokens that come next.
  [[nodiscard]] bool keeps_tokens() const noexcept { return keeps_; }
  /// How many tokens of each sequence earlier passes have had.
  [[nodiscard]] Index earlier_tokens() const noexcept { return earlier_; }

  /// `x` behind what earlier passes have appended in the same place of the model. It stays until the next pass.
  /// @shape x [rows * added, width]   @shape returns [rows * (earlier_tokens() + added), width], by sequence
  /// @throws ShapeError unless all sequences have equally many tokens, behind others one, and are as many as before
  [[nodiscard]] View append(View x, Layout const& layout) {
    check(layout);
    auto const rows = layout.rows, width = x.extent[1];
    auto const before = earlier_ * width, added = layout.length * width, all = before + added;
    auto& kept = next_of(kept_, next_);
    if (earlier_ == 0) kept.clear();
    expect<ShapeError>(std::ssize(kept) == rows * before, [&] {
      return "attention goes on with " + std::to_string(rows) + " sequences of width " + std::to_string(width) +
             ", and the pass that began them had others; begin anew";
    });
    kept.resize(static_cast<std::size_t>(rows * all));
    for (Index row = rows; row-- > 0;) {
      auto* const to = kept.data() + row * all;
      std::copy_backward(kept.data() + row * before, kept.data() + (row + 1) * before, to + before);
      std::copy_n(x.data + row * added, added, to + before);
    }
    added_ = layout.length;
    return {kept.data(), {rows * (earlier_ + layout.length), width}};
  }

  /// What the pass before left in the same place of the model for each sequence, zeros where sequences begin, to be
  /// replaced by what this pass leaves. It stays until the next pass.
  /// @shape returns [rows, width]   @throws ShapeError as `append`
  [[nodiscard]] TensorView<Accumulate<Scalar>, 2, HostSpace> carried(Layout const& layout, Index width) {
    check(layout);
    auto& kept = next_of(carried_, next_carried_);
    if (earlier_ == 0) kept.assign(static_cast<std::size_t>(layout.rows * width), Accumulate<Scalar>{0});
    expect<ShapeError>(std::ssize(kept) == layout.rows * width, [&] {
      return "a recurrent layer goes on with " + std::to_string(layout.rows) + " sequences, and the pass that began " +
             "them had others; begin anew";
    });
    added_ = layout.length;
    return {kept.data(), {layout.rows, width}};
  }

  /// What `make()` returned in the pass that began the sequences, in the same place of the model: of a memory.
  /// @shape returns `extent`   @throws ShapeError when it was of another
  template <class Make>
  [[nodiscard]] View made_once(Extents<2> extent, Make const& make) {
    auto& kept = next_of(kept_, next_);
    if (earlier_ == 0) {
      View const made = make();
      kept.assign(made.data, made.data + made.size());
    }
    expect<ShapeError>(std::ssize(kept) == elements(extent), [&] {
      return "attention goes on with a memory whose keys are " + to_string(extent) +
             ", and the pass that began the sequences had another; begin anew";
    });
    return {kept.data(), extent};
  }
  /// The memory that `make()` returned in the pass that began the sequences, over which make is one of whole ones. It
  /// stays until others begin.
  template <class Sequence, class Make>
  [[nodiscard]] Sequence memory(Make const& make) {
    auto& kept = next_of(memories_, next_memory_);
    if (earlier_ == 0) {
      keeps_ = false;
      Sequence const made = make();
      keeps_ = true;
      kept.take(made.tokens.value, made.layout);
    }
    return {{kept.view(), nullptr}, kept.layout};
  }
  /// Whether the pass is one over tokens that come next, or the one that begins them, and these are such a memory's.
  [[nodiscard]] bool is_memory(View x) const noexcept {
    return keeps_ &&
           std::any_of(memories_.begin(), memories_.end(), [&](auto const& m) { return m.values.data() == x.data; });
  }

  /// For what cannot go on with sequences of which it sees the last tokens only.
  /// @throws ConfigError in such a pass, and in the one that begins them
  void expect_whole_sequences(char const* who) const {
    expect<ConfigError>(!keeps_, [&] {
      return std::string(who) +
             ": the model is to predict token by token, by Predictor::begin and next, and this takes " +
             "whole sequences: causal attention of tokens to each other can go on with them, a causal convolution, a " +
             "recurrent layer that reads forwards, and attention to a memory that nn::encode_once made; use " +
             "Predictor::predict";
    });
  }

  // ---- for who runs the model

  /// The passes from here on are over tokens that come behind so many of each sequence; 0 begins others.
  void keep_tokens(Index earlier) noexcept {
    keeps_ = true, earlier_ = earlier, next_ = next_memory_ = next_carried_ = 0, added_ = 0;
  }
  /// They are over whole sequences again. What was kept stays.
  void keep_no_tokens() noexcept { keeps_ = false, earlier_ = 0; }
  /// How many tokens have been appended since keep_tokens.
  [[nodiscard]] Index added_tokens() const noexcept { return added_; }

 private:
  /// A memory in storage of its own: batches come and go.
  struct Memory {
    std::vector<Scalar> values;
    std::vector<std::int32_t> lengths;
    std::vector<Index> offsets, positions;
    Layout layout;
    Index width = 0;

    void take(View x, Layout const& of) {
      values.assign(x.data, x.data + x.size());
      width = x.extent[1], layout = of;
      copy(lengths, layout.lengths), copy(offsets, layout.offsets), copy(positions, layout.positions);
    }
    [[nodiscard]] View view() { return {values.data(), {layout.slots, width}}; }
    template <class T>
    static void copy(std::vector<T>& to, TensorView<T const, 1, HostSpace>& from) {
      if (!from.data) return;
      to.assign(from.data, from.data + from.size());
      from.data = to.data();
    }
  };

  template <class T>
  [[nodiscard]] static T& next_of(std::vector<T>& all, std::size_t& next) {
    if (next == all.size()) all.emplace_back();
    return all[next++];
  }
  void check(Layout const& layout) const {
    for (Index row = 0; row < layout.rows; ++row)
      expect<ShapeError>(layout.tokens(row) == layout.length, [&] {
        return "sequences that are predicted token by token are equally long, and sequence " + std::to_string(row) +
               " of the batch has " + std::to_string(layout.tokens(row)) + " tokens where there is room for " +
               std::to_string(layout.length) + "; give those of one length, or one at a time";
      });
    expect<ShapeError>(earlier_ == 0 || layout.length == 1, [&] {
      return "Predictor::next takes one token of each sequence, and the batch has " + std::to_string(layout.length) +
             "; begin anew with all of them";
    });
  }

  std::vector<std::vector<Scalar>> kept_;  // in the order in which the model appends, [rows, tokens, width] each
  std::vector<Memory> memories_;           // in the order in which the model makes them
  std::vector<std::vector<Accumulate<Scalar>>> carried_;  // in the order in which the model asks, [rows, width] each
  std::size_t next_ = 0, next_memory_ = 0, next_carried_ = 0;
  Index earlier_ = 0, added_ = 0;
  bool keeps_ = false;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn::detail
