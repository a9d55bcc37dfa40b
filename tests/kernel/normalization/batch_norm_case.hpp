// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <lockstep/kernel/normalization/batch_norm.hpp>

#include "kernel/values.hpp"

namespace lockstep_test {

/// All results for one case.
template <class T>
struct BatchNormResults {
  std::vector<T> running_mean, running_variance, mean, reciprocal, scale, y, dx, dweight, dbias;
  std::vector<T> recalled;  // the scale in evaluation

  /// Calls f(name, its own, other's) for each.
  template <class U>
  void each(BatchNormResults<U> const& other, auto&& f) const {
    f("running mean", running_mean, other.running_mean);
    f("running variance", running_variance, other.running_variance);
    f("mean", mean, other.mean), f("reciprocal", reciprocal, other.reciprocal), f("scale", scale, other.scale);
    f("y", y, other.y), f("dx", dx, other.dx), f("dweight", dweight, other.dweight), f("dbias", dbias, other.dbias);
    f("recalled", recalled, other.recalled);
  }
};

/// The biases are such that no value is near the rectifier's edge, which a rounding could cross.
template <class T>
struct BatchNormCase {
  static constexpr double epsilon = 1e-3, momentum = 0.25;
  lockstep::Index rows, width;
  lockstep::kernel::SequenceLayout<lockstep::HostSpace> layout{};
  std::vector<T> x = values<T>(rows * width, 1), weight = values<T>(width, 2), bias = values<T>(width, 16),
                 dy = values<T>(rows * width, 4), running_mean = values<T>(width, 5), running_variance = [this] {
                   std::vector<T> out;
                   for (lockstep::Index c = 0; c < width; ++c) out.push_back(static_cast<T>(1 + c % 4));
                   return out;
                 }();

  /// Overwritten memory contains no earlier results.
  [[nodiscard]] BatchNormResults<T> before(lockstep::Write write) const {
    auto const none = std::numeric_limits<T>::quiet_NaN(), start = write == lockstep::Write::add ? T(1) : none;
    std::vector<T> const nothing(weight.size(), none), sums(weight.size(), start);
    return {running_mean,
            running_variance,
            nothing,
            nothing,
            nothing,
            std::vector<T>(x.size(), none),
            std::vector<T>(x.size(), start),
            sums,
            sums,
            nothing};
  }
};

/// The definition in double, channel by channel.
inline BatchNormResults<double> batch_norm_defined(BatchNormCase<double> const& c,
                                                   lockstep::kernel::Activation activation, lockstep::Write write) {
  using lockstep::Index;
  auto r = c.before(write);
  auto const n = static_cast<double>(c.rows);
  for (Index column = 0; column < c.width; ++column) {
    auto const k = static_cast<std::size_t>(column);
    auto const at = [&](Index row) { return static_cast<std::size_t>(row * c.width + column); };
    double sum = 0, squares = 0, g = 0, gz = 0;
    for (Index row = 0; row < c.rows; ++row) sum += c.x[at(row)];
    double const mean = c.rows > 0 ? sum / n : 0;
    for (Index row = 0; row < c.rows; ++row) squares += (c.x[at(row)] - mean) * (c.x[at(row)] - mean);
    double const reciprocal = 1 / std::sqrt((c.rows > 0 ? squares / n : 0) + c.epsilon);
    r.mean[k] = mean, r.reciprocal[k] = reciprocal, r.scale[k] = reciprocal * c.weight[k];
    if (c.rows > 1) {
      r.running_mean[k] += c.momentum * (mean - r.running_mean[k]);
      r.running_variance[k] += c.momentum * (squares / (n - 1) - r.running_variance[k]);
    }
    r.recalled[k] = c.weight[k] / std::sqrt(r.running_variance[k] + c.epsilon);
    auto const passed = [&](Index row) {
      r.y[at(row)] = (c.x[at(row)] - mean) * r.scale[k] + c.bias[k];
      bool const passes = activation == lockstep::kernel::Activation::none || r.y[at(row)] > 0;
      if (!passes) r.y[at(row)] = 0;
      return passes ? c.dy[at(row)] : 0;
    };
    for (Index row = 0; row < c.rows; ++row) {
      g += passed(row);
      gz += passed(row) * (c.x[at(row)] - mean) * reciprocal;
    }
    auto const put = [&](double& to, double value) { to = write == lockstep::Write::add ? to + value : value; };
    put(r.dbias[k], g), put(r.dweight[k], gz);
    for (Index row = 0; row < c.rows; ++row)
      put(r.dx[at(row)], r.scale[k] * (passed(row) - g / n - (c.x[at(row)] - mean) * reciprocal * gz / n));
  }
  return r;
}

/// Sequences with NaN in their padding; and their tokens alone, as a matrix.
template <class T>
struct BatchNormSequences {
  BatchNormCase<T> padded, tokens;

  BatchNormSequences(lockstep::kernel::SequenceLayout<lockstep::HostSpace> const& layout, lockstep::Index width)
      : padded{layout.slots, width, layout}, tokens{0, width} {
    for (lockstep::Index slot = 0; slot < layout.slots; ++slot) tokens.rows += layout.is_token(slot);
    tokens = {tokens.rows, width};
    put(tokens.x, padded.x);
    put(tokens.dy, padded.dy);
  }
  /// The tokens' values; padding contains only `expected`.
  [[nodiscard]] std::vector<T> of_tokens(std::vector<T> const& all, T expected) const {
    std::vector<T> out;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (padded.layout.is_token(static_cast<lockstep::Index>(i) / padded.width))
        out.push_back(all[i]);
      else if (all[i] != expected)
        return {};
    return out;
  }

 private:
  void put(std::vector<T> const& from, std::vector<T>& to) const {
    auto next = from.begin();
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = padded.layout.is_token(static_cast<lockstep::Index>(i) / padded.width)
                  ? *next++
                  : std::numeric_limits<T>::quiet_NaN();
  }
};

}  // namespace lockstep_test
