// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/memory/scratch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Whether a forward pass prepares a backward pass.
enum class Mode {
  training,    ///< records backward, applies dropout
  evaluation,  ///< records nothing
};

/// Closures that a forward pass leaves for backward, and their objects, in an arena that the host reads. Runs no
/// destructors. A part of nn::Context.
template <class Context>
class Tape {
 public:
  /// One operation of the backward pass, and its data.
  struct Entry {
    void* closure;                 ///< in the tape's memory
    void (*run)(void*, Context&);  ///< calls the closure
  };
  /// State of a tape to rewind to.
  struct Mark {
    memory::Scratch<>::Mark memory;  ///< place in the memory
    std::size_t entries;             ///< number of closures of backward
    std::size_t recomputes;          ///< number of closures that recompute values
  };

  /// Returns a new object in the tape's memory, valid until the tape is rewound.
  template <class Element, class... Arguments>
  [[nodiscard]] Element* make(Arguments&&... arguments) {
    return new (memory_.take(sizeof(Element))) Element{std::forward<Arguments>(arguments)...};
  }
  /// Returns a copy in the tape's memory.
  template <class Element>
  [[nodiscard]] std::span<Element const> copy(std::span<Element const> from) {
    auto* const to = reinterpret_cast<Element*>(memory_.take(from.size_bytes()));
    std::uninitialized_copy(from.begin(), from.end(), to);
    return {to, from.size()};
  }
  /// Adds a closure of backward.
  void push(Entry const& entry) { entries_.push_back(entry); }
  /// Returns the number of closures.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// Runs and removes the closures from index `first`, last one first. Reports them to the tracer, if it is not null.
  template <class Tracer>
  void run(std::size_t first, Context& context, Tracer* tracer) {
    for (auto i = entries_.size(); i-- > first;) {
      typename Tracer::Running running;
      if (tracer) running = tracer->enter(i);
      entries_[i].run(entries_[i].closure, context);
      if (tracer) tracer->leave(running);
    }
    entries_.resize(first);
  }

  /// Adds a closure that recomputes a value that is released until backward. Returns its number.
  [[nodiscard]] int push_recompute(Entry const& recompute) {
    recomputes_.push_back(recompute);
    return static_cast<int>(recomputes_.size()) - 1;
  }
  /// Runs the closure with this number.
  void run_recompute(int number, Context& context) const {
    auto const& recompute = recomputes_[static_cast<std::size_t>(number)];
    recompute.run(recompute.closure, context);
  }

  /// Returns whether the pass that fills the tape repeats a part of forward during backward.
  [[nodiscard]] bool recomputing() const noexcept { return recomputing_; }
  /// Returns the previous value.
  bool set_recomputing(bool recomputing) noexcept { return std::exchange(recomputing_, recomputing); }

  /// Returns the current state.
  [[nodiscard]] Mark mark() noexcept { return {memory_.mark(), entries_.size(), recomputes_.size()}; }
  /// Removes everything that was added since the mark.
  void rewind(Mark const& mark) noexcept {
    memory_.rewind(mark.memory);
    entries_.resize(mark.entries);
    recomputes_.resize(mark.recomputes);
  }
  /// Removes everything.
  void clear() {
    memory_.rewind();
    entries_.clear();
    recomputes_.clear();
    recomputing_ = false;
  }

 private:
  memory::Scratch<> memory_;
  std::vector<Entry> entries_, recomputes_;
  bool recomputing_ = false;
};

}}}  // namespace lockstep::nn
