// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/batch_norm.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/values.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using kernel::Activation;
using lockstep_test::OnDevice;
using lockstep_test::values;

namespace batch_norm_on_cuda {
namespace {

template <class T>
struct Case {
  Index rows, width;
  std::vector<T> x = values<T>(rows * width, 1), weight = values<T>(width, 2), bias = values<T>(width, 3),
                 dy = values<T>(rows * width, 4);
};

template <class T>
struct Results {
  std::vector<T> running_mean, running_variance, mean, reciprocal, scale, y, dx, dweight, dbias, recalled;

  Results(Case<T> const& c, Write write)
      : running_mean(c.weight.size(), T(0.5)),
        running_variance(c.weight.size(), T(2)),
        mean(c.weight.size()),
        reciprocal(mean),
        scale(mean),
        y(c.x.size()),
        dx(c.x.size(), write == Write::add ? T(1) : std::numeric_limits<T>::quiet_NaN()),
        dweight(c.weight.size(), write == Write::add ? T(1) : std::numeric_limits<T>::quiet_NaN()),
        dbias(dweight),
        recalled(mean) {}
  template <class F>
  void each(F&& f) {
    f("running mean", running_mean), f("running variance", running_variance), f("mean", mean);
    f("reciprocal", reciprocal), f("scale", scale), f("y", y), f("dx", dx), f("dweight", dweight), f("dbias", dbias);
    f("recalled", recalled);
  }
};

/// The definition in double, one channel after the other.
Results<double> reference(Case<double> const& c, Activation activation, Write write) {
  Results<double> r(c, write);
  auto const n = static_cast<double>(c.rows);
  for (Index column = 0; column < c.width; ++column) {
    auto const k = static_cast<std::size_t>(column);
    auto const at = [&](Index row) { return static_cast<std::size_t>(row * c.width + column); };
    double sum = 0, squares = 0, g = 0, gz = 0;
    for (Index row = 0; row < c.rows; ++row) sum += c.x[at(row)];
    double const mean = c.rows > 0 ? sum / n : 0;
    for (Index row = 0; row < c.rows; ++row) squares += (c.x[at(row)] - mean) * (c.x[at(row)] - mean);
    double const reciprocal = 1 / std::sqrt((c.rows > 0 ? squares / n : 0) + 1e-5);
    r.mean[k] = mean, r.reciprocal[k] = reciprocal, r.scale[k] = reciprocal * c.weight[k];
    if (c.rows > 1) {
      r.running_mean[k] = 0.9 * r.running_mean[k] + 0.1 * mean;
      r.running_variance[k] = 0.9 * r.running_variance[k] + 0.1 * squares / (n - 1);
    }
    auto const passed = [&](Index row) {
      r.y[at(row)] = (c.x[at(row)] - mean) * r.scale[k] + c.bias[k];
      bool const passes = activation == Activation::none || r.y[at(row)] > 0;
      if (!passes) r.y[at(row)] = 0;
      return passes ? c.dy[at(row)] : 0;
    };
    for (Index row = 0; row < c.rows; ++row) {
      g += passed(row);
      gz += passed(row) * (c.x[at(row)] - mean) * reciprocal;
    }
    auto const put = [&](double& to, double value) { to = write == Write::add ? to + value : value; };
    put(r.dbias[k], g), put(r.dweight[k], gz);
    for (Index row = 0; row < c.rows; ++row)
      put(r.dx[at(row)], r.scale[k] * (passed(row) - g / n - (c.x[at(row)] - mean) * reciprocal * gz / n));
    r.recalled[k] = c.weight[k] / std::sqrt(r.running_variance[k] + 1e-5);
  }
  return r;
}

template <class T>
std::vector<std::vector<T>> on_device(memory::CudaStream const& stream, Case<T> const& c, Activation activation,
                                      Write write) {
  using Kernel = kernel::BatchNorm<CudaSpace>;
  Results<T> start(c, write);
  OnDevice<T> const running_mean(start.running_mean), running_variance(start.running_variance), mean(start.mean),
      reciprocal(start.mean), scale(start.mean), y(start.y), dx(start.dx), dweight(start.dweight), dbias(start.dbias),
      recalled(start.mean), recalled_mean(start.mean), recalled_reciprocal(start.mean), x(c.x), weight(c.weight),
      bias(c.bias), dy(c.dy),
      partial(std::vector<T>(static_cast<std::size_t>(Kernel::partial_elements(c.rows, c.width))));
  auto const matrix = [&](OnDevice<T> const& m) { return m.view(c.rows, c.width); };
  auto const vector = [&](OnDevice<T> const& v) { return v.view(c.width); };
  auto* const scratch = partial.view(0).data;
  typename Kernel::template Statistics<T> const statistics{vector(mean), vector(reciprocal), vector(scale)};
  typename Kernel::template Running<T> const running{vector(running_mean), vector(running_variance)};
  Kernel::measure<T>(stream.view(), matrix(x), vector(weight), 1e-5, 0.1, running, statistics, scratch);
  Kernel::forward<T>(stream.view(), matrix(x), statistics, vector(bias), activation, matrix(y));
  Kernel::backward<T>(stream.view(), matrix(dy), matrix(x), statistics, vector(bias), activation, matrix(dx), write,
                      vector(dweight), write, vector(dbias), write, scratch);
  Kernel::recall<T>(stream.view(), running, vector(weight), 1e-5,
                    {vector(recalled_mean), vector(recalled_reciprocal), vector(recalled)});
  std::vector<std::vector<T>> all;
  for (auto const* v :
       {&running_mean, &running_variance, &mean, &reciprocal, &scale, &y, &dx, &dweight, &dbias, &recalled})
    all.push_back(v->values());
  return all;
}

}  // namespace

TEST_CASE_TEMPLATE("batch norm on CUDA is the host's, but for roundings", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::BatchNorm<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (Index rows : {0, 1, 2, 31, 64, 65, 600, 2113})
    for (Index width : {1, 33})
      for (auto activation : {Activation::none, Activation::relu})
        for (auto write : {Write::overwrite, Write::add}) {
          CAPTURE(rows);
          CAPTURE(width);
          auto const got = on_device(stream, Case<T>{rows, width}, activation, write);
          auto exact = reference({rows, width}, activation, write);
          // Sums of at most `rows` terms up to 1 (the squares and z up to 4), rounded as often, scaled by reciprocals
          // of deviations (1 / 0.3 for more than a few rows, at most 317 for one), which in dx enter squared. An
          // element that rounds over the activation's edge would differ by dy: none of these does.
          double const reciprocal = *std::max_element(exact.reciprocal.begin(), exact.reciprocal.end());
          double const unit = static_cast<double>(std::numeric_limits<T>::epsilon());
          double const bound = unit * 4 * static_cast<double>(rows + 16) * std::max(1.0, reciprocal * reciprocal);
          std::size_t number = 0;
          exact.each([&](char const* name, std::vector<double> const& expected) {
            CAPTURE(name);
            auto const& values_there = got[number++];
            bool near = values_there.size() == expected.size();
            for (std::size_t i = 0; i < expected.size() && near; ++i) {
              auto const error = std::abs(static_cast<double>(values_there[i]) - expected[i]);
              near = error <= bound * std::max(1.0, std::abs(expected[i]));
            }
            CHECK(near);
          });
        }
}

}  // namespace batch_norm_on_cuda
