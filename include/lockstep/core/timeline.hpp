// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// A named interval of time.
struct Span {
  /// Kind of a span.
  enum class Kind : std::uint8_t {
    phase,      ///< of training; `number` is the step, if it has one
    forward,    ///< a model's operation: `number` is its index in the pass, `amount` the bytes it allocated
    recompute,  ///< a forward operation repeated in backward
    backward,   ///< backward of the operation with that `number`
    bucket,     ///< gradients, from complete to summed; `number` is their index, `amount` their bytes
    batch,      ///< of a worker: `number` is the batch's micro-step, `amount` the rows
    level,      ///< a quantity that rises and falls: its value at `begin` was `amount`
  };
  char const* name = "";    ///< of static storage; for operations the type of the backward closure
  double begin = 0;         ///< Clock::seconds(), like `end`
  double end = 0;           ///< Clock::seconds()
  Index number = -1;        ///< meaning: see Kind; -1: none
  Index amount = 0;         ///< meaning: see Kind
  int first = -1;           ///< the least ordinal of an operation's parameters, or a batch's worker; -1: none
  int last = -1;            ///< the largest ordinal
  Kind kind = Kind::phase;  ///< kind of interval, which says what `number` and `amount` are
};

/// Recorded spans in order of their ends: a span that contains others is added after them. Use from one thread at a
/// time. `add` never allocates; it counts spans that do not fit.
class Timeline {
 public:
  /// Makes a timeline with a capacity of 0.
  Timeline() = default;
  /// @cost most * sizeof(Span) bytes of address space; memory is used as it fills
  explicit Timeline(std::size_t most) { clear(most); }
  Timeline(Timeline const&) = delete;
  Timeline& operator=(Timeline const&) = delete;
  ~Timeline() { ::operator delete(memory_); }

  /// Removes all spans and reserves capacity for `most`.
  void clear(std::size_t most = std::size_t{1} << 18) {
    ::operator delete(std::exchange(memory_, nullptr));
    count_ = most_ = 0;
    left_out_ = 0;
    memory_ = ::operator new(most * sizeof(Span));
    most_ = most;
  }
  /// Adds a span, or counts it as left out if the timeline is full.
  void add(Span const& span) noexcept {
    if (count_ < most_)
      new (data() + count_++) Span(span);
    else
      ++left_out_;
  }
  /// Returns the number of spans.
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// Returns span i of [0, size()).
  [[nodiscard]] Span const& operator[](std::size_t i) const noexcept { return data()[i]; }
  /// Returns a span for its writer to complete.
  [[nodiscard]] Span& operator[](std::size_t i) noexcept { return data()[i]; }
  /// Returns the first span.
  [[nodiscard]] Span const* begin() const noexcept { return data(); }
  /// Returns the end of the spans.
  [[nodiscard]] Span const* end() const noexcept { return data() + count_; }
  /// Returns the number of spans that did not fit.
  [[nodiscard]] Index left_out() const noexcept { return left_out_; }

 private:
  [[nodiscard]] Span* data() const noexcept { return static_cast<Span*>(memory_); }

  void* memory_ = nullptr;  // raw memory: a vector of spans costs every compilation 9 MB
  std::size_t most_ = 0, count_ = 0;
  Index left_out_ = 0;
};

}}  // namespace lockstep
