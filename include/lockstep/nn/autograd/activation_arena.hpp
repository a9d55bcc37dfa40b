// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/free_memory.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/memory/free_list.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/memory/scratch.hpp>
#include <lockstep/nn/autograd/parameter_gradients.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Arena of a micro-batch's activations and their gradients. Reuses memory that is given back. A part of nn::Context.
template <class Space>
class ActivationArena {
  using Scratch = memory::Scratch<memory::DefaultResource<Space>>;

 public:
  /// Returns uninitialized memory for `count` elements.
  template <class Element>
  [[nodiscard]] Element* take(Index count) {
    auto const bytes = static_cast<std::size_t>(count) * sizeof(Element);
    largest_ = std::max(largest_, bytes);
    // Small allocations would split blocks that the next large one needs whole.
    auto* const reused = bytes >= largest_ / 16 ? free_.take(bytes) : nullptr;
    return reinterpret_cast<Element*>(reused ? reused : take_new(bytes));
  }
  /// Frees memory for reuse; ignores null.
  template <class Element>
  void release(Element* data, Index count) {
    auto* const bytes = reinterpret_cast<std::byte*>(data);
    if (data) free_.give(bytes, static_cast<std::size_t>(count) * sizeof(Element), scratch_.chunk_of(bytes));
  }
  /// Returns where to write the slot's gradient: overwrites at first, adds later; empty for a null slot.
  template <class Scalar>
  [[nodiscard]] GradientTarget<Scalar> target(GradientSlot<Scalar>* slot) {
    if (!slot) return {nullptr, Write::overwrite};
    if (slot->data) return {slot->data, Write::add};
    slot->data = slot->reserved ? slot->reserved : take<Scalar>(slot->size);
    return {slot->data, Write::overwrite};
  }
  /// Returns where to write the gradient of x, computed elementwise from the gradient of y, which no other closure
  /// reads: in y's memory, unless x's gradient has a place or y has several producers.
  template <class Scalar>
  [[nodiscard]] GradientTarget<Scalar> target_in_place(GradientSlot<Scalar>* x, GradientSlot<Scalar>& y) {
    if (!x || x->data || x->reserved || x->size != y.size || y.producers > 1) return target(x);
    x->data = y.data;
    y.memory_reused = true;
    return {x->data, Write::overwrite};
  }
  /// Returns where to write the gradient of x in the memory of its value, which nothing reads afterwards.
  template <class Scalar>
  [[nodiscard]] GradientTarget<Scalar> target_in_place_of_value(GradientSlot<Scalar>& x) noexcept {
    x.data = std::exchange(x.value, nullptr);
    return {x.data, Write::overwrite};
  }
  /// Takes memory for a slot's gradient, if it has none, that a later rewind to a mark does not free.
  template <class Scalar>
  void reserve_gradient(GradientSlot<Scalar>* slot) {
    if (slot && !slot->data && !slot->reserved) slot->reserved = take<Scalar>(slot->size);
  }
  /// Counts one producer whose backward has read the gradient. The last one frees gradient and activation.
  template <class Scalar>
  void finish_producer(GradientSlot<Scalar>& slot) {
    if (--slot.producers > 0) return;
    if (!slot.memory_reused) release(slot.data, slot.size);
    release(slot.value, slot.size);
  }

  /// Returns whether the next rewind releases memory that was allocated.
  [[nodiscard]] bool is_fragmented() const noexcept { return scratch_.is_fragmented(); }
  /// Frees everything.
  void rewind() {
    scratch_.rewind();
    free_.clear();
    largest_ = 0;
  }
  /// A state to rewind to, or to `keep`. Until then, memory that was freed before the mark is not reused.
  struct Mark {
    typename Scratch::Mark scratch;  ///< place in the arena
    std::size_t free;                ///< scope of the freed memory
  };
  /// Returns the current state.
  [[nodiscard]] Mark mark() noexcept { return {scratch_.mark(), free_.begin_scope()}; }
  /// Frees everything that was taken since the mark.
  void rewind(Mark const& mark) noexcept {
    keep(mark);
    scratch_.rewind(mark.scratch);
  }
  /// Ends the mark without rewinding.
  void keep(Mark const& mark) noexcept { free_.end_scope(mark.free); }

  /// Returns the memory of the arena, used or not.
  [[nodiscard]] std::size_t capacity_bytes() const noexcept { return scratch_.capacity_bytes(); }
  /// Returns how often the arena has allocated.
  [[nodiscard]] std::uint64_t allocations() const noexcept { return scratch_.allocations(); }

 private:
  /// @throws CudaError, on a GPU, that also says how much the batch's activations take
  [[nodiscard]] std::byte* take_new(std::size_t bytes) {
    if constexpr (Space::host_accessible) {
      return scratch_.take(bytes);
    } else {
      try {
        return scratch_.take(bytes);
      } catch (CudaError const& error) {
        throw CudaError("activations of a batch, " + memory_size(static_cast<double>(scratch_.capacity_bytes())) +
                        " so far, need " + memory_size(static_cast<double>(bytes)) + " more: " + error.what());
      }
    }
  }

  Scratch scratch_;
  memory::FreeList free_;
  std::size_t largest_ = 0;
};

}}}  // namespace lockstep::nn
