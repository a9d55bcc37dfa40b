// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Softmax and negative log likelihood in one pass over the logits.
template <class Space>
struct CrossEntropy {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct CrossEntropy<HostSpace> {
  /// losses[r] = log(sum over c of exp(logits[r, c])) - logits[r, labels[r]], without overflow for any finite logits.
  /// @shape logits [rows, classes]   @shape labels [rows], each in [0, classes)   @shape losses [rows]
  /// @determinism bitwise, for any number of threads
  /// @throws DataError (at Contract::normal) for a label outside the classes
  template <class T, class Label>
  static void forward(memory::Stream<HostSpace> stream, TensorView<T const, 2, HostSpace> logits,
                      TensorView<Label, 1, HostSpace> labels, TensorView<double, 1, HostSpace> losses) {
    forward_backward(stream, logits, labels, losses, TensorView<T, 2, HostSpace>{}, Write::overwrite);
  }

  /// The same, and the gradient of the sum of the losses in the same pass:
  /// gradient[r, c] = softmax(logits[r])[c] - (c == labels[r]), or gradient += that.
  /// @shape gradient as logits, and with `overwrite` may be their memory; a null one is left out
  template <class T, class Label>
  static void forward_backward(memory::Stream<HostSpace> stream, TensorView<T const, 2, HostSpace> logits,
                               TensorView<Label, 1, HostSpace> labels, TensorView<double, 1, HostSpace> losses,
                               TensorView<T, 2, HostSpace> gradient, Write write) {
    auto const rows = logits.extent[0], classes = logits.extent[1];
    check(logits.extent, labels);
    Index const rows_per_task = std::max<Index>(1, elements_per_task / std::max<Index>(1, classes));
    stream.pool().for_ranges(rows, rows_per_task, [=](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) {
        auto const at = r * classes, label = static_cast<Index>(labels.data[r]);
        losses.data[r] = gradient.data ? loss_and_gradient(logits.data + at, classes, label, gradient.data + at, write)
                                       : loss(logits.data + at, classes, label);
      }
    });
  }

 private:
  static constexpr Index elements_per_task = 4096, block = 256;

  template <class Label>
  static void check(Extents<2> logits, TensorView<Label, 1, HostSpace> labels) {
    expect<ShapeError>(logits[0] == labels.size(), [&] {
      return "cross_entropy: logits are " + to_string(logits) + " and there are " + std::to_string(labels.size()) +
             " labels; each row of logits needs one";
    });
    if constexpr (checks(Contract::normal)) {
      for (Index r = 0; r < logits[0]; ++r) {
        auto const label = static_cast<Index>(labels.data[r]);
        expect<DataError>(label >= 0 && label < logits[1], [&] {
          return "cross_entropy: row " + std::to_string(r) + " of the batch has label " + std::to_string(label) +
                 ", outside [0, " + std::to_string(logits[1]) +
                 "); number the classes from 0, or give the model as many outputs as there are classes";
        });
      }
    }
  }

  /// Sums are floats within a block and doubles across blocks: with 2^15 classes, too, the error is that of one block.
  template <class T>
  static double loss(T const* logits, Index classes, Index label) {
    return with_best_instructions([=] {
      T const most = detail::largest(logits, classes);
      T exponentials[block];
      double total = 0;
      for (Index c = 0; c < classes; c += block) {
        Index const here = std::min(block, classes - c);
        for (Index i = 0; i < here; ++i) exponentials[i] = detail::exp(logits[c + i] - most);
        total += static_cast<double>(detail::sum(exponentials, here));
      }
      return std::log(total) + (static_cast<double>(most) - static_cast<double>(logits[label]));
    });
  }

  template <class T>
  static double loss_and_gradient(T const* logits, Index classes, Index label, T* gradient, Write write) {
    return with_best_instructions([=] {
      T const at_label = logits[label];  // before the gradient takes its place
      T const most = detail::largest(logits, classes);
      T exponentials[block];
      double total = 0;
      for (Index c = 0; c < classes; c += block) {
        Index const here = std::min(block, classes - c);
        T* const to = write == Write::overwrite ? gradient + c : exponentials;
        for (Index i = 0; i < here; ++i) to[i] = detail::exp(logits[c + i] - most);
        total += static_cast<double>(detail::sum(to, here));
      }
      auto const scale = static_cast<T>(1 / total);
      if (write == Write::overwrite) {
        for (Index c = 0; c < classes; ++c) gradient[c] *= scale;
      } else {
        for (Index c = 0; c < classes; ++c) gradient[c] += detail::exp(logits[c] - most) * scale;
      }
      gradient[label] -= T{1};
      return std::log(total) + (static_cast<double>(most) - static_cast<double>(at_label));
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
