// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/loss/ctc.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <lockstep/core/thread_pool.hpp>

#include "ctc_case.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::CtcCase;
using lockstep_test::values;
using lockstep_test::view;
using Layout = kernel::SequenceLayout<HostSpace>;
using Kernel = kernel::Ctc<HostSpace>;

namespace {

/// Sequences that are concatenated, or padded to the longest plus two.
struct Sequences {
  std::vector<std::int32_t> lengths;
  std::vector<Index> offsets{0}, positions;
  Index longest = 0;
  explicit Sequences(std::vector<std::int32_t> of) : lengths(std::move(of)), positions(lengths.size()) {
    for (auto const length : lengths) {
      offsets.push_back(offsets.back() + length);
      longest = std::max<Index>(longest, length);
    }
  }
  [[nodiscard]] Index rows() const { return std::ssize(lengths); }
  [[nodiscard]] Layout ragged() const {
    return Layout::ragged(offsets.back(), longest, view(offsets, rows() + 1), view(positions, rows()));
  }
  [[nodiscard]] Layout padded() const {
    return Layout::padded(longest + 2, view(lengths, rows()), view(positions, rows()));
  }
};

struct Outcome {
  std::vector<double> losses, weights;
  std::vector<float> gradient;
  bool operator==(Outcome const&) const = default;
};

enum class Gradient { apart, in_place };

Outcome run(CtcCase<float> const& c, Layout const& layout, std::vector<float> logits, int threads,
            Gradient where = Gradient::apart) {
  Sequences const labels(c.counts);
  ThreadPool pool(threads);
  Outcome out{std::vector<double>(c.tokens.size()), std::vector<double>(c.tokens.size()),
              std::vector<float>(logits.size(), 9)};
  auto const elements = Kernel::memory_elements(layout.slots, layout.rows, labels.longest, c.classes);
  std::vector<float> memory(static_cast<std::size_t>(elements));
  auto& gradient = where == Gradient::apart ? out.gradient : logits;
  Kernel::forward_backward<float, std::int32_t>(
      memory::Stream<HostSpace>(pool), layout, labels.ragged(), {.impossible = kernel::ImpossibleAlignment::ignore},
      view(logits, layout.slots, c.classes), view(c.labels, std::ssize(c.labels)), view(out.losses, layout.rows),
      view(out.weights, layout.rows), view(gradient, layout.slots, c.classes), Write::overwrite,
      view(memory, elements));
  if (where == Gradient::in_place) out.gradient = logits;
  return out;
}

}  // namespace

TEST_CASE("bits are equal padded and ragged, in place or not, and for any number of threads") {
  for (auto const& each : CtcCase<float>::some()) {
    Sequences const tokens(each.tokens);
    auto const ragged = tokens.ragged(), padded = tokens.padded();
    auto const logits = values<float>(ragged.slots * each.classes, 1, 3);
    std::vector<float> spread(static_cast<std::size_t>(padded.slots * each.classes), 77);
    for (Index row = 0; row < tokens.rows(); ++row)
      std::copy(logits.begin() + ragged.start(row) * each.classes, logits.begin() + ragged.end(row) * each.classes,
                spread.begin() + padded.start(row) * each.classes);
    auto const expected = run(each, ragged, logits, 1);
    CHECK(run(each, ragged, logits, 3) == expected);
    CHECK(run(each, ragged, logits, 1, Gradient::in_place) == expected);
    auto const other = run(each, padded, spread, 2);
    CHECK(other.losses == expected.losses);
    CHECK(other.weights == expected.weights);
    Index wrong = 0;
    for (Index row = 0; row < tokens.rows(); ++row)
      for (Index t = 0; t < padded.length; ++t)
        for (Index k = 0; k < each.classes; ++k) {
          auto const found = other.gradient[static_cast<std::size_t>((padded.start(row) + t) * each.classes + k)];
          auto const at = static_cast<std::size_t>((ragged.start(row) + t) * each.classes + k);
          wrong += found != (t < ragged.tokens(row) ? expected.gradient[at] : 0);
        }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a path's states are labels between blanks, and skipped blanks are between different labels") {
  std::vector<std::int32_t> const labels{3, 3, 5};
  kernel::detail::CtcPath<std::int32_t> const path{labels.data(), 3, 0};
  CHECK(path.states() == 7);
  CHECK(path.min_tokens() == 4);
  CHECK(path.label(0) == 0);
  CHECK(path.label(1) == 3);
  CHECK(path.label(5) == 5);
  CHECK_FALSE(path.skips(1));
  CHECK_FALSE(path.skips(3));
  CHECK_FALSE(path.skips(4));
  CHECK(path.skips(5));
}

TEST_CASE("logits of minus infinity are never used and are not NaN; NaN is propagated") {
  CtcCase<float> const c{{4}, {1}, {1}, 3};
  Sequences const tokens(c.tokens);
  auto const layout = tokens.ragged();
  auto const never = -std::numeric_limits<float>::infinity();
  std::vector<float> logits{0, 0, never, never, 0, never, 0, 0, never, 0, never, never};
  // The first and the third token are the blank or the label with equal probability: all four paths read the label.
  auto const out = run(c, layout, logits, 1);
  CHECK(std::abs(out.losses[0]) < 1e-5);
  for (float const each : out.gradient) CHECK(std::isfinite(each));
  logits[1] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(run(c, layout, logits, 1).losses[0]));
}
