// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/attention/keys_and_values.hpp>
#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// State of token-by-token prediction between passes: keys and values of causal attention (the KV cache), memories with
/// their keys and values, and states of recurrent layers and convolutions. Usually empty, because a pass covers whole
/// sequences. Sequences may have unequal lengths. A part of nn::Context.
template <class Scalar>
class DecodingCache {
  using Layout = kernel::SequenceLayout<HostSpace>;
  using View = TensorView<Scalar, 2, HostSpace>;
  using Real = Accumulate<Scalar>;

 public:
  using KeysAndValues = kernel::KeysAndValues<Real>;                 ///< of one sequence, at one place of the model
  using RealView = TensorView<Real const, 2, HostSpace>;             ///< keys or values of a pass
  using Attended = std::span<std::shared_ptr<KeysAndValues> const>;  ///< of each sequence of a pass

  // ---- for layers: forward

  /// Returns whether this pass keeps appended tokens.
  [[nodiscard]] bool is_decoding() const noexcept { return decoding_; }
  /// Returns whether this pass has one token for each sequence, after the tokens of earlier passes.
  [[nodiscard]] bool continues() const noexcept { return decoding_ && continues_; }
  /// Returns the number of tokens of each sequence in earlier passes; 0 unless the pass continues sequences.
  /// @throws ShapeError if the sequences have unequal numbers: call cached_tokens(row)
  [[nodiscard]] Index cached_tokens() const {
    if (!continues() || lengths_.empty()) return 0;
    expect<ShapeError>(min_cached_tokens() == max_cached_tokens(), [&] {
      return "Context::cache().cached_tokens(): the sequences have from " + std::to_string(min_cached_tokens()) +
             " to " + std::to_string(max_cached_tokens()) + " tokens; call cached_tokens(row) for each";
    });
    return lengths_.front();
  }
  /// Returns the number of tokens of a sequence of this pass in earlier passes.
  [[nodiscard]] Index cached_tokens(Index row) const noexcept {
    return continues() ? lengths_[static_cast<std::size_t>(row)] : 0;
  }
  /// Returns cached_tokens(row) of all rows of a pass; null unless it continues sequences.
  /// @throws ShapeError if it continues another number of sequences
  [[nodiscard]] Index const* cached_lengths(Index rows) const {
    if (!continues()) return nullptr;
    expect<ShapeError>(rows == sequences(), [&] { return describe_others("a layer", rows); });
    return lengths_.data();
  }
  /// Returns the least number of tokens of a sequence in earlier passes.
  [[nodiscard]] Index min_cached_tokens() const noexcept {
    return continues() && !lengths_.empty() ? *std::min_element(lengths_.begin(), lengths_.end()) : 0;
  }
  /// Returns the largest number of tokens of a sequence in earlier passes.
  [[nodiscard]] Index max_cached_tokens() const noexcept {
    return continues() && !lengths_.empty() ? *std::max_element(lengths_.begin(), lengths_.end()) : 0;
  }

  /// Appends keys and values to those that earlier passes appended at this place of the model. Returns those of each
  /// sequence, valid until the next pass.
  /// @shape keys, values [layout.slots, heads * head width]
  /// @throws ShapeError if a sequence has no tokens, if a pass that continues adds more than one, or has other
  /// sequences
  [[nodiscard]] Attended append(RealView keys, RealView values, Layout const& layout, Index heads) {
    check(layout);
    auto& entry = next_entry(keys_and_values_, next_keys_or_values_);
    begin_rows(entry, layout, heads, keys.extent[1]);
    auto const first = continues_ ? Index{0} : first_row_;
    for (Index row = 0; row < layout.rows; ++row) {
      auto& kept = entry[static_cast<std::size_t>(first + row)];
      if (continues_ && kept.use_count() > 1) kept = std::make_shared<KeysAndValues>(*kept);  // rows are repeated
      kept->append(keys.data + layout.start(row) * keys.extent[1], values.data + layout.start(row) * keys.extent[1],
                   layout.tokens(row));
    }
    appended_ = appended_ || layout.rows > 0;
    return Attended(entry).subspan(static_cast<std::size_t>(first));
  }

  /// Returns the state that the previous pass left for each sequence at this place of the model; zeros at the beginning
  /// of sequences. The layer replaces it with its new state. Valid until the next pass.
  /// @shape returns [rows, width]   @throws ShapeError as `append`
  [[nodiscard]] TensorView<Real, 2, HostSpace> recurrent_state(Layout const& layout, Index width) {
    check(layout);
    auto& state = next_entry(states_, next_state_);
    state.width = width;
    auto const before = continues_ ? Index{0} : first_row_ * width;
    if (!continues_) state.values.resize(static_cast<std::size_t>(before + layout.rows * width));
    expect<ShapeError>(std::ssize(state.values) == before + layout.rows * width,
                       [&] { return describe_others("a recurrent layer", layout.rows); });
    appended_ = appended_ || layout.rows > 0;
    return {state.values.data() + before, {layout.rows, width}};
  }

  /// Keeps the keys and values that attention computed of a memory at this place of the model.
  /// @shape keys, values [slots of the memory, heads * head width]
  void keep_memory(RealView keys, RealView values, Layout const& layout, Index heads) {
    auto& entry = next_entry(projections_, next_projection_);
    begin_rows(entry, layout, heads, keys.extent[1]);
    for (Index row = 0; row < layout.rows; ++row)
      entry[static_cast<std::size_t>(first_row_ + row)]->append(keys.data + layout.start(row) * keys.extent[1],
                                                                values.data + layout.start(row) * keys.extent[1],
                                                                layout.tokens(row));
  }
  /// Returns the keys and values that the passes that began the sequences kept at this place of the model.
  [[nodiscard]] Attended kept_memory(Index rows) {
    auto const& entry = next_entry(projections_, next_projection_);
    expect<ShapeError>(std::ssize(entry) == rows, [&] { return describe_others("attention to a memory", rows); });
    return entry;
  }
  /// Returns the memory that `make()` returned in the pass that began the sequences. `make` runs as a pass over whole
  /// sequences. Valid until the next pass.
  template <class Sequence, class Make>
  [[nodiscard]] Sequence cached_memory(Make const& make) {
    auto& entry = next_entry(memories_, next_memory_);
    if (continues_) return {{entry.kept.view(), nullptr}, entry.kept.layout};
    decoding_ = false;
    Sequence const result = make();
    decoding_ = true;
    auto& begun = first_row_ == 0 ? entry.kept : entry.added;
    begun.take(result.tokens.value, result.layout);
    begun_memories_ = begun.layout.rows;
    return {{begun.view(), nullptr}, begun.layout};
  }
  /// Returns whether the pass predicts token by token, or begins to, and x holds the values of such a memory.
  [[nodiscard]] bool is_cached_memory(View x) const noexcept {
    return decoding_ && std::any_of(memories_.begin(), memories_.end(),
                                    [&](auto const& m) { return m.kept.holds(x) || m.added.holds(x); });
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
    if (continues() && steps < window) expect_whole_sequences(who);
  }

  // ---- for the code that runs the model

  /// Releases the state of all sequences.
  void forget_sequences() noexcept {
    keys_and_values_.clear();
    projections_.clear();
    memories_.clear();
    states_.clear();
    lengths_.clear();
    origins_of_memory_.clear();
  }
  /// Starts a pass that begins sequences, after `earlier` ones that continue later; 0 forgets all others.
  void begin_sequences(Index earlier = 0) {
    if (earlier == 0) forget_sequences();
    start_pass(false);
    first_row_ = earlier;
  }
  /// Starts a pass with the next token of each sequence.
  void continue_sequences() noexcept { start_pass(true); }
  /// Ends a pass that begins or continues sequences. Returns whether any layer kept something.
  bool end_decoding_pass() {
    if (!appended_) return false;
    if (continues_) {
      for (auto& length : lengths_) ++length;
      return true;
    }
    for (Index row = 0; row < begun_memories_; ++row) origins_of_memory_.push_back(next_origin_++);
    if (first_row_ > 0)
      for (std::size_t i = 0; i < next_memory_; ++i) memories_[i].kept.add(std::exchange(memories_[i].added, {}));
    return true;
  }
  /// Ends a pass that failed. Forgets the sequences that it began, or those that it continued.
  void cancel_decoding_pass() noexcept {
    if (continues_ || first_row_ == 0) return forget_sequences();
    auto const truncate = [](auto& all, Index size) {
      if (std::ssize(all) > size) all.erase(all.begin() + size, all.end());
    };
    for (auto& entry : keys_and_values_) truncate(entry, first_row_);
    for (auto& entry : projections_) truncate(entry, first_row_);
    for (auto& state : states_) truncate(state.values, first_row_ * state.width);
    for (auto& memory : memories_) memory.added = {};
    truncate(lengths_, first_row_);
  }
  /// Returns to passes over whole sequences. Kept state stays.
  void end_decoding() noexcept { decoding_ = false; }
  /// Returns the number of sequences that the next pass continues.
  [[nodiscard]] Index sequences() const noexcept { return std::ssize(lengths_); }
  /// Returns the bytes of keys and values. Repeated sequences that share them count several times.
  [[nodiscard]] Index key_and_value_bytes() const noexcept {
    Index sum = 0;
    std::vector<Rows> const* const both[] = {&keys_and_values_, &projections_};
    for (auto const* const all : both)
      for (auto const& entry : *all)
        for (auto const& kept : entry) sum += kept->bytes();
    return sum;
  }
  /// Sequence r of the next pass continues sequence rows[r] of the pass before: sequences may be reordered, repeated or
  /// left out. Repeated sequences share keys and values until they append other ones. Memories are copied only if
  /// another sequence's is needed in some row.
  /// @throws ShapeError for a row that the pass before did not have; names it
  void select_rows(std::span<Index const> rows) {
    auto const before = sequences();
    for (auto const row : rows)
      expect<ShapeError>(row >= 0 && row < before, [&] {
        return "Predictor::select: row " + std::to_string(row) + " of " + std::to_string(before) +
               " sequences; rows count from 0";
      });
    auto const one = [](Index row) { return std::pair{row, row + 1}; };
    for (auto& entry : keys_and_values_) gather(entry, rows, one);
    for (auto& entry : projections_) gather(entry, rows, one);
    for (auto& state : states_)
      gather(state.values, rows, [&](Index row) { return std::pair{row * state.width, (row + 1) * state.width}; });
    gather(lengths_, rows, one);
    if (memories_.empty()) return;
    auto origins = origins_of_memory_;
    gather(origins, rows, one);
    if (origins == origins_of_memory_) return;  // beams of one sample share what its memory holds
    for (auto& memory : memories_) memory.kept.select(rows);
    origins_of_memory_ = std::move(origins);
  }

 private:
  using Rows = std::vector<std::shared_ptr<KeysAndValues>>;

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
    [[nodiscard]] bool holds(View x) const noexcept { return x.data && x.data == values.data(); }
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

    /// Adds the sequences of another memory after these.
    void add(Memory const& other) {
      std::vector<Index> tokens, positions_of_all;
      std::vector<Scalar> all;
      bool const ragged = layout.is_ragged(), keyed = layout.positions.data && other.layout.positions.data;
      Index const length = std::max(layout.length, other.layout.length);
      Memory const* const both[] = {this, &other};
      for (auto const* const each : both)
        for (Index row = 0; row < each->layout.rows; ++row) {
          auto const* const from = each->values.data() + each->layout.start(row) * width;
          tokens.push_back(each->layout.tokens(row));
          all.insert(all.end(), from, from + tokens.back() * width);
          if (!ragged) all.resize(tokens.size() * static_cast<std::size_t>(length * width));
          if (keyed) positions_of_all.push_back(each->layout.positions.data[row]);
        }
      values = std::move(all);
      positions = std::move(positions_of_all);
      lengths.assign(tokens.begin(), tokens.end());
      offsets.assign(1, 0);
      for (auto const count : tokens) offsets.push_back(offsets.back() + count);
      layout = {
          .rows = std::ssize(tokens), .slots = ragged ? offsets.back() : std::ssize(tokens) * length, .length = length};
      if (ragged) layout.offsets = {offsets.data(), {std::ssize(offsets)}};
      if (!ragged) layout.lengths = {lengths.data(), {std::ssize(lengths)}};
      if (keyed) layout.positions = {positions.data(), {std::ssize(positions)}};
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
  /// State of a recurrent layer, [rows, width].
  struct State {
    std::vector<Real> values;
    Index width = 0;
  };
  /// A memory of all sequences, and of those that a pass begins after others.
  struct Memories {
    Memory kept, added;
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
  void start_pass(bool continues) noexcept {
    decoding_ = true;
    continues_ = continues;
    appended_ = false;
    begun_memories_ = 0;
    next_keys_or_values_ = next_state_ = next_projection_ = next_memory_ = 0;
  }
  /// Makes room for the sequences that a pass begins, or checks those that it continues.
  void begin_rows(Rows& entry, Layout const& layout, Index heads, Index width) {
    if (!continues_) {
      entry.resize(static_cast<std::size_t>(first_row_));
      for (Index row = 0; row < layout.rows; ++row)
        entry.push_back(std::make_shared<KeysAndValues>(heads, width / heads));
    }
    expect<ShapeError>(!continues_ || std::ssize(entry) == layout.rows,
                       [&] { return describe_others("attention", layout.rows); });
  }
  [[nodiscard]] std::string describe_others(char const* who, Index rows) const {
    return std::string(who) + " continues " + std::to_string(rows) + " sequences, but the passes that began them had " +
           std::to_string(sequences()) + "; call Predictor::begin again, or Predictor::select";
  }
  /// Checks the sequences of a pass, and takes their lengths if it begins them.
  void check(Layout const& layout) {
    if (continues_) {
      for (Index row = 0; row < layout.rows; ++row)
        expect<ShapeError>(layout.tokens(row) == 1, [&] {
          return "Predictor::next takes one token of each sequence, and sequence " + std::to_string(row) +
                 " of the batch has " + std::to_string(layout.tokens(row)) +
                 "; call Predictor::begin with all of them, and an encoder of other sequences inside nn::encode_once";
        });
      return;
    }
    for (Index row = 0; row < layout.rows; ++row) {
      auto const tokens = layout.tokens(row);
      expect<ShapeError>(tokens > 0, [&] {
        return "Predictor::begin: sequence " + std::to_string(row) +
               " of the batch has no tokens; begin each with one, such as that between documents";
      });
      if (first_row_ + row == sequences()) lengths_.push_back(tokens);
      expect<ShapeError>(lengths_[static_cast<std::size_t>(first_row_ + row)] == tokens, [&] {
        return "Predictor::begin: sequence " + std::to_string(row) + " has " +
               std::to_string(lengths_[static_cast<std::size_t>(first_row_ + row)]) + " tokens in one layer and " +
               std::to_string(tokens) + " in another; call an encoder of other sequences inside nn::encode_once";
      });
    }
  }

  std::vector<Rows> keys_and_values_;     // in the order in which the model appends
  std::vector<Rows> projections_;         // of memories, in the order in which the model asks
  std::vector<Memories> memories_;        // in the order in which the model makes them
  std::vector<Index> lengths_;            // tokens of each sequence in earlier passes
  std::vector<Index> origins_of_memory_;  // number of the begun sequence whose memory each row has
  std::vector<State> states_;             // in the order in which the model asks
  std::size_t next_keys_or_values_ = 0, next_memory_ = 0, next_projection_ = 0, next_state_ = 0;
  Index first_row_ = 0, begun_memories_ = 0, next_origin_ = 0;
  bool decoding_ = false, continues_ = false, appended_ = false;
};

}}}  // namespace lockstep::nn
