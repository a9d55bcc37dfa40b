// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/write.hpp>

#include "kernel/values.hpp"

/// What every backend's fused embedding must satisfy. A backend has
///   template <class T> std::vector<T> forward(EmbeddingCase<T> const&);
///   template <class T> EmbeddingGradients<T> backward(EmbeddingCase<T> const&, Write, T before);
/// where `before` fills both gradients first.
namespace lockstep_test {

using lockstep::Index;
using lockstep::Write;
using lockstep::kernel::DropoutMask;

enum class Ids { spread, skewed, all_equal, extremes };

template <class T>
struct EmbeddingGradients {
  std::vector<T> token, position;
  bool operator==(EmbeddingGradients const&) const = default;
};

template <class T>
struct EmbeddingCase {
  Index vocabulary = 0, most_positions = 0, rows = 0, length = 0, width = 0;
  DropoutMask mask;
  std::vector<std::int32_t> ids, lengths;
  std::vector<Index> positions;
  std::vector<T> token, position, dy;

  /// Lengths are full, empty, one and half, in turn; padding holds an id outside the table and nan gradients.
  [[nodiscard]] static EmbeddingCase make(Index rows, Index length, Index width, Ids kind, double dropout = 0,
                                          Index vocabulary = 53) {
    EmbeddingCase c;
    c.vocabulary = vocabulary;
    c.most_positions = length + 2;
    c.rows = rows;
    c.length = length;
    c.width = width;
    c.mask = DropoutMask::of(1234, dropout);
    c.token = values<T>(c.vocabulary * width, 1);
    c.position = values<T>(c.most_positions * width, 2);
    c.dy = values<T>(rows * length * width, 3);
    for (Index r = 0; r < rows; ++r) {
      Index const some[] = {length, 0, std::min<Index>(1, length), length / 2};
      c.lengths.push_back(static_cast<std::int32_t>(some[r % 4]));
      c.positions.push_back(77 * r + (r % 2 ? Index{1} << 33 : 0));
      for (Index t = 0; t < length; ++t) c.ids.push_back(t < c.lengths.back() ? c.id(kind, r * length + t) : -7);
      for (Index i = c.lengths.back() * width; i < length * width; ++i)
        c.dy[static_cast<std::size_t>(r * length * width + i)] = std::numeric_limits<T>::quiet_NaN();
    }
    return c;
  }

  [[nodiscard]] bool is_token(Index r, Index t) const { return t < lengths[static_cast<std::size_t>(r)]; }
  [[nodiscard]] std::size_t slot(Index r, Index t) const { return static_cast<std::size_t>(r * length + t); }
  /// What dropout multiplies element c of slot (r, t) by.
  [[nodiscard]] T factor(Index r, Index t, Index c) const {
    if (!mask.active()) return 1;
    bool const kept = mask.keeps(static_cast<std::uint64_t>(positions[static_cast<std::size_t>(r)]),
                                 static_cast<std::uint64_t>(t * width + c));
    return kept ? static_cast<T>(mask.scale()) : T{0};
  }

 private:
  [[nodiscard]] std::int32_t id(Ids kind, Index i) const {
    auto const spread = (i * 2654435761) % 1'000'003;
    switch (kind) {
      case Ids::spread:
        return static_cast<std::int32_t>(spread % vocabulary);
      case Ids::skewed:
        return static_cast<std::int32_t>(spread % vocabulary * (spread % 7) / 7 * (spread % 11) / 11);
      case Ids::all_equal:
        return static_cast<std::int32_t>(vocabulary / 2);
      case Ids::extremes:
        return static_cast<std::int32_t>(i % 2 == 0 ? 0 : vocabulary - 1);
    }
    return 0;
  }
};

/// out = (token + position) * factor takes one rounding each, in the same order everywhere: bits must agree.
template <class T, class Backend>
void check_embedding_forward(Backend& backend, EmbeddingCase<T> const& c) {
  auto const out = backend.forward(c);
  REQUIRE(out.size() == c.ids.size() * static_cast<std::size_t>(c.width));
  bool exact = true;
  for (Index r = 0; r < c.rows; ++r)
    for (Index t = 0; t < c.length; ++t)
      for (Index k = 0; k < c.width; ++k) {
        auto const at = c.slot(r, t) * static_cast<std::size_t>(c.width) + static_cast<std::size_t>(k);
        T expected = 0;
        if (c.is_token(r, t)) {
          T const sum = c.token[static_cast<std::size_t>(c.ids[c.slot(r, t)] * c.width + k)] +
                        c.position[static_cast<std::size_t>(t * c.width + k)];
          expected = sum * c.factor(r, t, k);
        }
        exact = exact && out[at] == expected;
      }
  CHECK(exact);
}

/// The reference sums in double. A gradient of n terms is summed in chunks of 32, then over chunks: no term takes part
/// in more than 32 + n / 32 + 1 additions, and was rounded once by dropout; position sums take n additions. So |error|
/// <= (n' + 2) u sum |terms|, with u half an epsilon, and one more addition when `before` is there.
template <class T, class Backend>
void check_embedding_backward(Backend& backend, EmbeddingCase<T> const& c, Write write) {
  T const before = 0.75;
  auto const got = backend.backward(c, write, before);
  struct Sum {
    double value = 0, magnitude = 0, terms = 0;
  };
  std::vector<Sum> token(c.token.size()), position(c.position.size());
  for (Index r = 0; r < c.rows; ++r)
    for (Index t = 0; t < c.length; ++t)
      for (Index k = 0; c.is_token(r, t) && k < c.width; ++k) {
        auto const at = c.slot(r, t) * static_cast<std::size_t>(c.width) + static_cast<std::size_t>(k);
        double const term = static_cast<double>(c.dy[at]) * static_cast<double>(c.factor(r, t, k));
        for (auto* sum : {&token[static_cast<std::size_t>(c.ids[c.slot(r, t)] * c.width + k)],
                          &position[static_cast<std::size_t>(t * c.width + k)]}) {
          sum->value += term;
          sum->magnitude += std::abs(term);
          sum->terms += 1;
        }
      }
  double const start = write == Write::add ? static_cast<double>(before) : 0;
  double const unit = std::numeric_limits<T>::epsilon() / 2 * (sizeof(T) == 8 ? 2 : 1);  // the reference rounds, too
  auto const agrees = [&](std::vector<T> const& gradient, std::vector<Sum> const& sums, double chunk) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      auto const& s = sums[i];
      double const additions = std::min(s.terms, chunk) + s.terms / chunk + 3;
      double const bound = unit * additions * (s.magnitude + (s.terms > 0 ? start : 0));
      if (!(std::abs(static_cast<double>(gradient[i]) - (start + s.value)) <= bound)) return false;
    }
    return gradient.size() == sums.size();
  };
  CHECK(agrees(got.token, token, 32));
  CHECK(agrees(got.position, position, std::numeric_limits<double>::infinity()));
}

template <class T, class Backend>
void embedding_cases(Backend& backend) {
  for (double dropout : {0.0, 0.3})
    for (Ids kind : {Ids::spread, Ids::skewed, Ids::all_equal, Ids::extremes})
      for (Index rows : {0, 1, 5})
        for (Index length : {0, 1, 2, 31, 32, 33, 70})
          for (Index width : {1, 7, 16, 64, 65, 130}) {
            CAPTURE(dropout);
            CAPTURE(static_cast<int>(kind));
            CAPTURE(rows);
            CAPTURE(length);
            CAPTURE(width);
            auto const c = EmbeddingCase<T>::make(rows, length, width, kind, dropout);
            check_embedding_forward(backend, c);
            check_embedding_backward(backend, c, Write::overwrite);
            check_embedding_backward(backend, c, Write::add);
          }
}

/// Long segments: many chunks for one id, several such ids side by side, and a vocabulary with wide gaps.
template <class T, class Backend>
void embedding_hot_row_cases(Backend& backend) {
  for (Index rows : {64, 65})
    for (Ids kind : {Ids::all_equal, Ids::extremes, Ids::skewed}) {
      auto const c = EmbeddingCase<T>::make(rows, 40, 20, kind, 0.1, 3001);
      check_embedding_forward(backend, c);
      check_embedding_backward(backend, c, Write::overwrite);
      check_embedding_backward(backend, c, Write::add);
    }
}

/// `add` leaves rows of absent ids alone: -0 + 0 would be +0.
template <class T, class Backend>
void embedding_untouched_rows_case(Backend& backend) {
  auto const c = EmbeddingCase<T>::make(5, 9, 8, Ids::extremes);
  auto const got = backend.backward(c, Write::add, T{-0.0});
  Index untouched = 0;
  for (Index v = 1; v + 1 < c.vocabulary; ++v, ++untouched)
    for (Index k = 0; k < c.width; ++k) CHECK(std::signbit(got.token[static_cast<std::size_t>(v * c.width + k)]));
  CHECK(untouched == c.vocabulary - 2);
}

/// A sample gives the same bits alone, in another row and with more padding, dropout included.
template <class T, class Backend>
void embedding_padding_case(Backend& backend) {
  auto const batch = EmbeddingCase<T>::make(4, 37, 24, Ids::spread, 0.2);
  auto alone = EmbeddingCase<T>::make(1, 50, 24, Ids::spread, 0.2);
  auto const row = std::size_t{3}, tokens = static_cast<std::size_t>(batch.lengths[row]);
  REQUIRE(tokens > 1);
  alone.lengths = {batch.lengths[row]};
  alone.positions = {batch.positions[row]};
  std::copy_n(batch.ids.begin() + 3 * 37, tokens, alone.ids.begin());
  std::copy_n(batch.position.begin(), batch.position.size(), alone.position.begin());
  auto const all = backend.forward(batch), one = backend.forward(alone);
  CHECK(std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(tokens * 24), all.begin() + 3 * 37 * 24));
}

}  // namespace lockstep_test
