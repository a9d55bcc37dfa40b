// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI {

/// Something that took time.
struct Span {
  enum class Kind : std::uint8_t {
    phase,     ///< of training; `number` is the step, where it is one
    forward,   ///< an operation of a model: `number` is its place in the pass, `amount` the bytes of what it made
    again,     ///< the same, once more in backward
    backward,  ///< of the operation with that `number`
    bucket,    ///< gradients, from complete to summed; `number` is their place, `amount` their bytes
    batch,     ///< a worker's: `number` is the batch's micro-step, `amount` the rows
    level,     ///< of something that rises and falls: at `begin` it was `amount`
  };
  char const* name = "";  ///< of static storage; of an operation the type of its backward closure
  double begin = 0;       ///< Clock::seconds(), as is `end`
  double end = 0;
  Index number = -1;
  Index amount = 0;
  int first = -1;  ///< the least ordinal of an operation's parameters, or a batch's worker; -1: none
  int last = -1;   ///< the largest of them
  Kind kind = Kind::phase;
};

/// What was done and when: a span that contains others is added after them. For one thread at a time. Nothing is
/// allocated by `add`; what finds no room is counted.
class Timeline {
 public:
  /// Without room.
  Timeline() = default;
  /// @cost most * sizeof(Span) bytes of address space, memory as it is filled
  explicit Timeline(std::size_t most) { clear(most); }
  Timeline(Timeline const&) = delete;
  Timeline& operator=(Timeline const&) = delete;
  ~Timeline() { ::operator delete(memory_); }

  /// Empty, with room for `most`.
  void clear(std::size_t most = std::size_t{1} << 18) {
    ::operator delete(std::exchange(memory_, nullptr));
    count_ = most_ = 0;
    left_out_ = 0;
    memory_ = ::operator new(most * sizeof(Span));
    most_ = most;
  }
  void add(Span const& span) noexcept {
    if (count_ < most_)
      new (data() + count_++) Span(span);
    else
      ++left_out_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] Span const& operator[](std::size_t i) const noexcept { return data()[i]; }
  /// To be completed by who added it.
  [[nodiscard]] Span& operator[](std::size_t i) noexcept { return data()[i]; }
  [[nodiscard]] Span const* begin() const noexcept { return data(); }
  [[nodiscard]] Span const* end() const noexcept { return data() + count_; }
  /// How many found no room.
  [[nodiscard]] Index left_out() const noexcept { return left_out_; }

 private:
  [[nodiscard]] Span* data() const noexcept { return static_cast<Span*>(memory_); }

  void* memory_ = nullptr;  // by hand: a vector of spans costs every compilation 9 MB
  std::size_t most_ = 0, count_ = 0;
  Index left_out_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI
