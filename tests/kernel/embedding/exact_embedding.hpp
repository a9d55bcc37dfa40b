// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "fused_embedding_case.hpp"

/// An EmbeddingCase's output and gradients from the definition, in double, with bounds on the error of T.
namespace lockstep_test {

/// A token by its definition, in double, and the size of its rounding errors: `value` is within error * u of T's
/// result, where u is half an epsilon of T.
struct Exact {
  double value = 0, error = 0;
};

/// A token before dropout, and the values that its norm's backward needs.
template <class T>
struct ExactToken {
  std::vector<Exact> y;
  std::vector<double> normalized, size;  // size: of the terms of `normalized`
  double reciprocal = 1, condition = 1;  // condition: how much the variance loses to cancellation

  ExactToken(EmbeddingCase<T> const& c, Index row, Index t) {
    auto const& k = c.kind;
    auto const at = c.token(row, t);
    auto const w = static_cast<std::size_t>(k.width);
    std::vector<double> x(w), magnitude(w);
    auto const add = [&](std::vector<T> const& rows, Index index, double factor) {
      for (std::size_t i = 0; i < w; ++i) {
        double const term = factor * static_cast<double>(rows[static_cast<std::size_t>(index) * w + i]);
        x[i] += term;
        magnitude[i] += std::abs(term);
      }
    };
    auto const& parts = c.segments[static_cast<std::size_t>(at.segment)].parts;
    for (auto const& part : parts)
      add(part.rows, !part.is_table ? at.entry : part.ids[static_cast<std::size_t>(at.entry)],
          static_cast<double>(static_cast<T>(k.scale)));
    if (k.positions) add(c.position, k.position_unit == PositionUnit::tokens ? t : at.step, 1);
    if (k.types) add(c.type, at.segment, 1);
    double const additions = static_cast<double>(parts.size()) + 3;
    normalized = x;
    size = magnitude;
    if (k.norm != Norm::none) normalize(k, x, magnitude);
    for (std::size_t i = 0; i < w; ++i) {
      double const weight = k.norm == Norm::none ? 1 : static_cast<double>(c.weight[i]);
      double const bias = k.norm == Norm::layer ? static_cast<double>(c.bias[i]) : 0;
      double const rounding = k.norm == Norm::none ? additions : (additions + static_cast<double>(w) + 8) * condition;
      y.push_back({weight * normalized[i] + bias, rounding * (std::abs(weight) * size[i] + std::abs(bias))});
    }
  }

 private:
  void normalize(EmbeddingKind const& k, std::vector<double> const& x, std::vector<double> const& magnitude) {
    auto const w = static_cast<double>(k.width);
    double mean = 0, mean_size = 0, square = 0, square_size = 0;
    for (std::size_t i = 0; k.norm == Norm::layer && i < x.size(); ++i) {
      mean += x[i] / w;
      mean_size += magnitude[i] / w;
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      square += (x[i] - mean) * (x[i] - mean) / w;
      square_size += (magnitude[i] + mean_size) * (magnitude[i] + mean_size) / w;
    }
    double const epsilon = static_cast<double>(static_cast<T>(1e-5));
    reciprocal = 1 / std::sqrt(square + epsilon);
    condition = 1 + square_size / (square + epsilon);
    for (std::size_t i = 0; i < x.size(); ++i) {
      normalized[i] = (x[i] - mean) * reciprocal;
      size[i] = (magnitude[i] + mean_size) * reciprocal;
    }
  }
};

template <class T>
double half_epsilon() {
  return std::numeric_limits<T>::epsilon() / 2 * (sizeof(T) == 8 ? 2 : 1);  // in double the reference rounds, too
}

/// The gradients from the definition. The error of one token's gradient d is the formula's, evaluated with magnitudes.
/// A sum of n of them has at most 32 + n / 32 additions per level of a table's plan, 64 * 8 within a task and one per
/// task elsewhere, each with one rounding of the sum of magnitudes.
template <class T>
class ExactGradients {
 public:
  std::vector<std::vector<Exact>> all;

  explicit ExactGradients(EmbeddingCase<T> const& c) : case_(c) {
    auto const like = [&](std::vector<T> const& v) { all.emplace_back(v.size()); };
    for (auto const& segment : c.segments)
      for (auto const& part : segment.parts) like(part.rows);
    auto const next = [&](bool there, std::vector<T> const& v) {
      if (there) like(v);
      return there ? all.size() - 1 : 0;
    };
    position_ = next(c.kind.positions, c.position);
    type_ = next(c.kind.types, c.type);
    weight_ = next(c.kind.norm != Norm::none, c.weight);
    bias_ = next(c.kind.norm == Norm::layer, c.bias);
    for (Index r = 0; r < c.kind.rows; ++r)
      for (Index t = 0; t < c.tokens(r); ++t) add_token(r, t);
  }

 private:
  void add(std::size_t which, Index row, std::vector<Exact> const& d, double factor) {
    for (std::size_t i = 0; i < d.size(); ++i) {
      auto& to = all[which][static_cast<std::size_t>(row) * d.size() + i];
      to.value += factor * d[i].value;
      to.error += std::abs(factor) * d[i].error;
    }
  }
  void add_token(Index row, Index t) {
    auto const& k = case_.kind;
    auto const w = static_cast<std::size_t>(k.width);
    std::vector<Exact> d(w);
    for (std::size_t i = 0; i < w; ++i) {
      double const dy = static_cast<double>(case_.dy[static_cast<std::size_t>(case_.start(row) + t) * w + i]) *
                        static_cast<double>(case_.factor(row, t, static_cast<Index>(i)));
      d[i] = {dy, std::abs(dy)};
    }
    if (k.norm != Norm::none) differentiate(row, t, d);
    auto const at = case_.token(row, t);
    std::size_t which = 0;
    for (int s = 0; s < at.segment; ++s) which += case_.segments[static_cast<std::size_t>(s)].parts.size();
    for (auto const& part : case_.segments[static_cast<std::size_t>(at.segment)].parts)
      add(which++, !part.is_table ? at.entry : part.ids[static_cast<std::size_t>(at.entry)], d,
          static_cast<double>(static_cast<T>(k.scale)));
    if (k.positions) add(position_, k.position_unit == PositionUnit::tokens ? t : at.step, d, 1);
    if (k.types) add(type_, at.segment, d, 1);
  }
  void differentiate(Index row, Index t, std::vector<Exact>& d) {
    ExactToken<T> const x(case_, row, t);
    bool const layer = case_.kind.norm == Norm::layer;
    double const w = static_cast<double>(d.size()), rounding = (w + 8) * x.condition;
    Exact mean, projection;
    for (std::size_t i = 0; i < d.size(); ++i) {
      all[weight_][i].value += d[i].value * x.normalized[i];
      all[weight_][i].error += rounding * d[i].error * x.size[i];
      if (layer) {
        all[bias_][i].value += d[i].value;
        all[bias_][i].error += d[i].error;
      }
      double const g = d[i].value * static_cast<double>(case_.weight[i]);
      if (layer) mean = {mean.value + g / w, mean.error + std::abs(g) / w};
      projection = {projection.value + g * x.normalized[i] / w, projection.error + std::abs(g) * x.size[i] / w};
    }
    for (std::size_t i = 0; i < d.size(); ++i) {
      double const g = d[i].value * static_cast<double>(case_.weight[i]);
      d[i] = {x.reciprocal * (g - mean.value - x.normalized[i] * projection.value),
              rounding * x.reciprocal * (std::abs(g) + mean.error + x.size[i] * projection.error)};
    }
  }

  EmbeddingCase<T> const& case_;
  std::size_t position_, type_, weight_, bias_;
};

}  // namespace lockstep_test
