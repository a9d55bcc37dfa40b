// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <lockstep/kernel/normalization/group_norm.hpp>

#include "kernel/values.hpp"

namespace lockstep_test {

/// Samples, and their normalization and its gradients by definition, in double.
template <class T>
struct GroupNormCase {
  lockstep::kernel::GroupNormShape shape;
  lockstep::kernel::Activation activation;
  lockstep::Write write;
  std::vector<T> x = values<T>(shape.size(), 1), dy = values<T>(shape.size(), 2), weight = values<T>(shape.channels, 3),
                 bias = values<T>(shape.channels, 4), before = values<T>(shape.size(), 5);
  std::vector<double> y{}, dx{}, dweight{}, dbias{};

  void define() {
    using lockstep::Index;
    auto const& s = shape;
    y.assign(x.size(), 0), dx = y;
    dweight.assign(weight.size(), 0), dbias = dweight;
    auto const n = static_cast<double>(s.group_size());
    for (Index row = 0; row < s.rows; ++row)
      for (Index group = 0; group < s.groups; ++group) {
        auto const each = [&](auto const& f) {
          for (Index p = 0; p < s.positions; ++p)
            for (Index c = group * s.group_channels(); c < (group + 1) * s.group_channels(); ++c)
              f(static_cast<std::size_t>((row * s.positions + p) * s.channels + c), static_cast<std::size_t>(c));
        };
        double mean = 0, variance = 0, of_g = 0, of_gz = 0;
        each([&](std::size_t i, std::size_t) { mean += static_cast<double>(x[i]) / n; });
        each([&](std::size_t i, std::size_t) { variance += std::pow(static_cast<double>(x[i]) - mean, 2) / n; });
        double const by = 1 / std::sqrt(variance + 1e-5);
        auto const z = [&](std::size_t i) { return (static_cast<double>(x[i]) - mean) * by; };
        auto const g = [&](std::size_t i, std::size_t c) {
          bool const passes = activation == lockstep::kernel::Activation::none ||
                              z(i) * static_cast<double>(weight[c]) + static_cast<double>(bias[c]) > 0;
          return passes ? static_cast<double>(dy[i]) : 0;
        };
        each([&](std::size_t i, std::size_t c) {
          y[i] = z(i) * static_cast<double>(weight[c]) + static_cast<double>(bias[c]);
          if (activation == lockstep::kernel::Activation::relu && y[i] < 0) y[i] = 0;
          dbias[c] += g(i, c), dweight[c] += g(i, c) * z(i);
          of_g += g(i, c) * static_cast<double>(weight[c]) / n;
          of_gz += g(i, c) * static_cast<double>(weight[c]) * z(i) / n;
        });
        each([&](std::size_t i, std::size_t c) {
          dx[i] = by * (static_cast<double>(weight[c]) * g(i, c) - of_g - z(i) * of_gz);
          if (write == lockstep::Write::add) dx[i] += static_cast<double>(before[i]);
        });
      }
    if (write == lockstep::Write::add)
      for (std::size_t c = 0; c < weight.size(); ++c) dweight[c] += 1, dbias[c] += 1;
  }
  /// The parameters' gradients before backward.
  [[nodiscard]] std::vector<T> gradient_before() const {
    return std::vector<T>(weight.size(), write == lockstep::Write::add ? T(1) : std::numeric_limits<T>::quiet_NaN());
  }
  /// Returns the distance of numbers from the definition's, in roundings of sums over this many terms.
  [[nodiscard]] double off(std::vector<T> const& found, std::vector<double> const& wanted) const {
    double most = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      auto const difference = std::abs(static_cast<double>(found[i]) - wanted[i]);
      if (!(difference <= most)) most = difference;  // NaN is far off
    }
    auto const terms = static_cast<double>(1 + shape.rows * shape.group_size());
    return most / (static_cast<double>(std::numeric_limits<T>::epsilon()) * terms);
  }

  [[nodiscard]] static std::vector<GroupNormCase> some() {
    using lockstep::kernel::Activation;
    std::vector<GroupNormCase> all;
    for (auto const& shape : {lockstep::kernel::GroupNormShape{0, 3, 4, 2},
                              {2, 0, 4, 2},
                              {1, 1, 1, 1},
                              {3, 5, 6, 2},
                              {2, 7, 33, 33},
                              {2, 40, 64, 8},
                              {2, 700, 70, 7}})
      for (auto const activation : {Activation::none, Activation::relu})
        for (auto const write : {lockstep::Write::overwrite, lockstep::Write::add}) {
          all.push_back({shape, activation, write});
          all.back().define();
        }
    return all;
  }
};

}  // namespace lockstep_test
