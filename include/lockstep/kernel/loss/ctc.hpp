// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <limits>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/loss/detail/ctc_path.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Treatment of sequences with too few tokens: they need one per label, and a blank between equal labels.
enum class ImpossibleAlignment {
  reject,  ///< an error, or an infinite loss on a device (the default)
  ignore,  ///< they are ignored
  refuse [[deprecated("kernel::ImpossibleAlignment::reject")]] = reject,     ///< deprecated: use reject
  leave_out [[deprecated("kernel::ImpossibleAlignment::ignore")]] = ignore,  ///< deprecated: use ignore
};

/// Number by which the loss of each sequence is divided.
enum class CtcDivisor {
  one,     ///< nothing is divided: the mean is that over the sequences (the default)
  labels,  ///< the sequence's number of labels, or 1 if it has none: PyTorch's mean
};

/// Options of the CTC loss: blank class, targets without an alignment, factor, divisor.
struct CtcOptions {
  Index blank = 0;                                               ///< the class without a label
  ImpossibleAlignment impossible = ImpossibleAlignment::reject;  ///< sequences with too few tokens for their labels
  double factor = 1;                     ///< of loss and gradient, not of the weight: for an auxiliary loss
  CtcDivisor divisor = CtcDivisor::one;  ///< of each sequence's loss and gradient

  /// Returns the factor on the loss of a sequence with that many labels.
  [[nodiscard]] constexpr double factor_of(Index labels) const noexcept {
    return divisor == CtcDivisor::labels && labels > 1 ? factor / static_cast<double>(labels) : factor;
  }
};

namespace detail {
template <class Space>
void check_ctc(SequenceLayout<Space> const& layout, SequenceLayout<Space> const& label_layout,
               CtcOptions const& options, Extents<2> logits, Index labels) {
  expect<ShapeError>(logits[0] == layout.slots && label_layout.rows == layout.rows && labels == label_layout.slots,
                     [&] {
                       return "ctc_loss: logits are " + to_string(logits) + " of " + std::to_string(layout.rows) +
                              " sequences, and there are labels of " + std::to_string(label_layout.rows) +
                              "; each sequence needs its labels";
                     });
  expect<ConfigError>(options.blank >= 0 && options.blank < logits[1], [&] {
    return "ctc_loss: the blank is " + std::to_string(options.blank) + " and there are " + std::to_string(logits[1]) +
           " classes; it must be one of them";
  });
}
}  // namespace detail

/// Connectionist temporal classification: -log of the total probability of all alignments of a sequence of labels to
/// more tokens. Each token predicts a class or the blank. A class that is repeated without a blank between counts once.
template <class Space>
struct Ctc : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Ctc<HostSpace> : detail::KernelTypes<HostSpace> {
  using Layout = SequenceLayout<HostSpace>;  ///< tokens or labels of each sequence

  /// Returns the number of elements of memory that the loss needs.
  [[nodiscard]] static Index memory_elements(Index slots, Index rows, Index longest_labels, Index classes) noexcept {
    return detail::CtcMemory<float>::elements(slots, rows, longest_labels, classes);
  }

  /// Computes losses[r] = -factor_of(labels of row r) * log p(labels of row r | softmax of its logits), weights[r] = 1;
  /// both are 0 for a sequence that is ignored. gradient = the gradient of the sum of the losses, or it is added; zero
  /// in padding.
  /// @shape logits [layout.slots, classes]   @shape labels [label_layout.slots], each in [0, classes) and not the blank
  /// @shape losses, weights [rows]   @shape memory [memory_elements(...)], overwritten
  /// @shape gradient as logits, and with `overwrite` may be their memory; null is skipped
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError if the shapes disagree; ConfigError for a blank outside the classes
  /// @throws RowError (at Contract::normal) for a label outside the classes or a sequence too short for its labels
  /// @source Graves et al.: Connectionist Temporal Classification (2006)
  template <class Scalar, class Label>
  static void forward_backward(Stream stream, Layout layout, Layout label_layout, CtcOptions const& options,
                               Matrix<Scalar const> logits, Vector<Label const> labels, Vector<double> losses,
                               Vector<double> weights, Matrix<Scalar> gradient, Write write, Vector<Scalar> memory) {
    check(layout, label_layout, options, logits.extent, labels);
    auto const classes = logits.extent[1], all = detail::CtcMemory<Scalar>::states(label_layout.length);
    auto const buffers = detail::CtcMemory<Scalar>::of(memory.data, layout.slots, label_layout.length);
    stream.pool().for_ranges(layout.rows, 1, [&](Index row, Index end) {
      for (; row < end; ++row) {
        auto const first = layout.start(row), tokens = layout.tokens(row);
        detail::CtcPath<Label> const path{labels.data + label_layout.start(row), label_layout.tokens(row),
                                          options.blank};
        auto* const dx = gradient.data ? gradient.data + first * classes : nullptr;
        if (dx && write == Write::overwrite)
          std::fill(dx + tokens * classes, dx + (layout.end(row) - first) * classes, Scalar{0});
        bool const possible = tokens >= path.min_tokens();
        losses.data[row] = 0;
        weights.data[row] = possible || options.impossible == ImpossibleAlignment::reject ? 1 : 0;
        if (!possible) {
          if (weights.data[row] > 0) losses.data[row] = std::numeric_limits<double>::infinity();
          if (dx && write == Write::overwrite) std::fill_n(dx, tokens * classes, Scalar{0});
        } else if (tokens > 0) {
          double const factor = options.factor_of(path.count);
          auto* const own =
              buffers.row_memory + row * detail::CtcMemory<Scalar>::row_elements(label_layout.length, classes);
          Row<Scalar, Label> const at{classes,
                                      tokens,
                                      path,
                                      logits.data + first * classes,
                                      dx,
                                      write,
                                      static_cast<Scalar>(factor),
                                      buffers.token_states + first * all,
                                      buffers.normalizers + first,
                                      own,
                                      own + all,
                                      own + 2 * all,
                                      own + 3 * all};
          with_best_instructions([&](auto vectors) {
            losses.data[row] = -factor * at.forward(vectors);
            if (dx) at.backward(vectors);
          });
        }
      }
    });
  }

 private:
  template <class Scalar, class Label>
  struct Row {
    Index classes, tokens;
    detail::CtcPath<Label> path;
    Scalar const* x;
    Scalar* dx;
    Write write;
    Scalar factor;
    Scalar *log_alpha, *normalizers;                    // [tokens, states], [tokens]
    Scalar *log_beta, *emissions, *skip, *class_terms;  // [states] each, [classes]

    /// Computes the logarithms of the states' probabilities up to each token, shifted so that the largest is 0. Returns
    /// the log probability of the labels.
    template <class Vectors>
    [[gnu::always_inline]] double forward(Vectors vectors) const {
      auto const states = path.states();
      for (Index s = 0; s < states; ++s) skip[s] = path.skips(s) ? Scalar{0} : detail::ctc_log_zero<Scalar>;
      double subtracted = 0;
      for (Index t = 0; t < tokens; ++t) {
        auto const* const here = x + t * classes;
        Scalar const maximum = detail::largest(vectors, here, classes);
        for (Index k = 0; k < classes; ++k) class_terms[k] = detail::exp(here[k] - maximum);
        normalizers[t] = maximum + detail::log(detail::sum(vectors, class_terms, classes));
        load_emissions(t);
        auto* const now = log_alpha + t * states;
        if (t == 0) {
          for (Index s = 0; s < states; ++s) now[s] = emissions[s] + (s < 2 ? Scalar{0} : detail::ctc_log_zero<Scalar>);
        } else {
          auto const* const before = now - states;
          now[0] = before[0] + emissions[0];
          if (states > 1) now[1] = detail::log_sum(before[1], before[0], detail::ctc_log_zero<Scalar>) + emissions[1];
          for (Index s = 2; s < states; ++s)
            now[s] = detail::log_sum(before[s], before[s - 1], before[s - 2] + skip[s]) + emissions[s];
        }
        subtracted += subtract_largest(vectors, now, states);
      }
      auto const* const last = log_alpha + (tokens - 1) * states;
      auto const before_last = states > 1 ? last[states - 2] : detail::ctc_log_zero<Scalar>;
      return subtracted +
             static_cast<double>(detail::log_sum(last[states - 1], before_last, detail::ctc_log_zero<Scalar>));
    }

    template <class Vectors>
    [[gnu::always_inline]] void backward(Vectors vectors) const {
      auto const states = path.states();
      for (Index s = 0; s < states; ++s) log_beta[s] = s + 2 >= states ? Scalar{0} : detail::ctc_log_zero<Scalar>;
      for (Index t = tokens; t-- > 0;) {
        auto const* const here = x + t * classes;
        auto* const now = log_alpha + t * states;
        load_emissions(t);
        for (Index s = 0; s < states; ++s) emissions[s] += log_beta[s];
        for (Index s = 0; s < states; ++s) now[s] += log_beta[s];
        Scalar const maximum = detail::largest(vectors, now, states);
        for (Index s = 0; s < states; ++s) now[s] = detail::exp(now[s] - maximum);
        Scalar const share = factor / detail::sum(vectors, now, states), normalizer = normalizers[t];
        auto* const to = dx + t * classes;
        for (Index k = 0; k < classes; ++k) class_terms[k] = factor * detail::exp(here[k] - normalizer);
        if (write == Write::overwrite) {
          std::copy_n(class_terms, classes, to);
        } else {
          for (Index k = 0; k < classes; ++k) to[k] += class_terms[k];
        }
        for (Index s = 0; s < states; ++s) to[path.label(s)] -= share * now[s];
        for (Index s = 0; s + 2 < states; ++s)
          log_beta[s] = detail::log_sum(emissions[s], emissions[s + 1], emissions[s + 2] + skip[s + 2]);
        if (states > 1)
          log_beta[states - 2] =
              detail::log_sum(emissions[states - 2], emissions[states - 1], detail::ctc_log_zero<Scalar>);
        log_beta[states - 1] = emissions[states - 1];
        static_cast<void>(subtract_largest(vectors, log_beta, states));
      }
    }

   private:
    /// Reads the log probability that token t gives to each state's label.
    [[gnu::always_inline]] void load_emissions(Index t) const {
      for (Index s = 0; s < path.states(); ++s)  // a logit of minus infinity is never chosen, and gives no NaN
        emissions[s] = std::max(x[t * classes + path.label(s)] - normalizers[t], detail::ctc_log_zero<Scalar>);
    }
    /// Subtracts the largest number from all, and returns it.
    template <class Vectors>
    [[gnu::always_inline]] static Scalar subtract_largest(Vectors vectors, Scalar* numbers, Index count) {
      Scalar const maximum = detail::largest(vectors, numbers, count);
      for (Index i = 0; i < count; ++i) numbers[i] -= maximum;
      return maximum;
    }
  };

  template <class Label>
  static void check(Layout const& layout, Layout const& label_layout, CtcOptions const& options, Extents<2> logits,
                    Vector<Label const> labels) {
    detail::check_ctc(layout, label_layout, options, logits, labels.size());
    if constexpr (checks(Contract::normal)) {
      for (Index row = 0; row < layout.rows; ++row) {
        auto const reject = [row](std::string const& what) {
          throw RowError("ctc_loss: row " + std::to_string(row) + " of the batch has " + what, row);
        };
        detail::CtcPath<Label> const path{labels.data + label_layout.start(row), label_layout.tokens(row),
                                          options.blank};
        for (Index i = 0; i < path.count; ++i)
          if (auto const label = static_cast<Index>(path.labels[i]);
              label < 0 || label >= logits[1] || label == options.blank)
            reject("the label " + std::to_string(label) + (label == options.blank ? ", the blank" : "") +
                   ", outside [0, " + std::to_string(logits[1]) +
                   ") without the blank; number the labels around the blank, or " +
                   "give the model as many outputs as there are classes");
        if (auto const min_tokens = path.min_tokens();
            options.impossible == ImpossibleAlignment::reject && layout.tokens(row) < min_tokens)
          reject(std::to_string(path.count) + " labels, which need " + std::to_string(min_tokens) +
                 " tokens, including a blank between equal labels, and " + std::to_string(layout.tokens(row)) +
                 " tokens; let the model shorten sequences less, leave such samples out, or set " +
                 "CtcOptions::impossible");
      }
    }
  }
};

}}}  // namespace lockstep::kernel
