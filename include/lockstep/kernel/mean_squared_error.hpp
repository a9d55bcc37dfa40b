// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Squared differences, their sum and its gradient in one pass.
template <class Space>
struct MeanSquaredError {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct MeanSquaredError<HostSpace> {
  /// The slots that share one element of `losses` and `weights`.
  [[nodiscard]] static constexpr Index slots_per_chunk(Index width) noexcept {
    return std::max<Index>(1, elements_per_chunk / std::max<Index>(1, width));
  }
  [[nodiscard]] static constexpr Index chunks(Index slots, Index width) noexcept {
    return (slots + slots_per_chunk(width) - 1) / slots_per_chunk(width);
  }

  /// For each chunk of slots, over the elements of those that hold tokens: losses = factor * sum of (prediction -
  /// target)^2 and weights = their number. gradient = 2 * factor * (prediction - target) and zero in padding, or
  /// gradient += that. Padding is not read.
  /// @shape prediction, target [layout.slots, width]   @shape losses, weights [chunks(layout.slots, width)],
  /// overwritten
  /// @shape gradient as prediction; a null one is left out
  /// @determinism bitwise, for any number of threads
  /// @source direct from the definition
  template <class T, class U>
  static void forward_backward(memory::Stream<HostSpace> stream, SequenceLayout<HostSpace> layout, T factor,
                               TensorView<T const, 2, HostSpace> prediction, TensorView<U const, 2, HostSpace> target,
                               TensorView<double, 1, HostSpace> losses, TensorView<double, 1, HostSpace> weights,
                               TensorView<T, 2, HostSpace> gradient, Write write) {
    auto const width = prediction.extent[1], per_chunk = slots_per_chunk(width);
    stream.pool().for_ranges(layout.slots, per_chunk, [=](Index begin, Index end) {
      double sum = 0;
      Index tokens = 0;
      for (Index slot = begin, next; slot < end; slot = next) {
        bool const token = layout.is_token(slot);
        for (next = slot + 1; next < end && layout.is_token(next) == token;) ++next;
        auto const at = slot * width, count = (next - slot) * width;
        auto* const to = gradient.data ? gradient.data + at : nullptr;
        if (token) {
          sum += run(prediction.data + at, target.data + at, count, factor, to, write);
          tokens += next - slot;
        } else if (to && write == Write::overwrite) {
          std::fill_n(to, count, T{0});
        }
      }
      losses.data[begin / per_chunk] = sum * static_cast<double>(factor);
      weights.data[begin / per_chunk] = static_cast<double>(tokens * width);
    });
  }

 private:
  static constexpr Index elements_per_chunk = 4096, block = 256;

  /// Sums are of type T within a block and doubles across blocks.
  template <class T, class U>
  static double run(T const* prediction, U const* target, Index count, T factor, T* gradient, Write write) {
    return with_best_instructions([=] {
      T differences[block], squares[block];
      double total = 0;
      for (Index first = 0; first < count; first += block) {
        Index const here = std::min(block, count - first);
        for (Index i = 0; i < here; ++i) {
          differences[i] = prediction[first + i] - static_cast<T>(target[first + i]);
          squares[i] = differences[i] * differences[i];
        }
        total += static_cast<double>(detail::sum(squares, here));
        if (!gradient) continue;
        T* const to = gradient + first;
        if (write == Write::overwrite) {
          for (Index i = 0; i < here; ++i) to[i] = 2 * factor * differences[i];
        } else {
          for (Index i = 0; i < here; ++i) to[i] += 2 * factor * differences[i];
        }
      }
      return total;
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
