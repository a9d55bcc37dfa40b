// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/batch_norm.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using kernel::Activation;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
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
                                      Write write, kernel::SequenceLayout<CudaSpace> const& layout = {}) {
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
  Kernel::measure<T>(stream.view(), matrix(x), vector(weight), 1e-5, 0.1, running, statistics, scratch, layout);
  Kernel::forward<T>(stream.view(), matrix(x), statistics, vector(bias), activation, matrix(y), layout);
  Kernel::backward<T>(stream.view(), matrix(dy), matrix(x), statistics, vector(bias), activation, matrix(dx), write,
                      vector(dweight), write, vector(dbias), write, scratch, layout);
  Kernel::recall<T>(stream.view(), running, vector(weight), 1e-5,
                    {vector(recalled_mean), vector(recalled_reciprocal), vector(recalled)});
  std::vector<std::vector<T>> all;
  for (auto const* v :
       {&running_mean, &running_variance, &mean, &reciprocal, &scale, &y, &dx, &dweight, &dbias, &recalled})
    all.push_back(v->values());
  return all;
}

/// What is left where padding, in which each row has to be `expected`, is taken out; in a matrix nothing else either.
template <class T>
std::vector<T> of_tokens(kernel::SequenceLayout<HostSpace> const& layout, Index width, std::vector<T> const& all,
                         T expected) {
  std::vector<T> out;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (layout.is_token(static_cast<Index>(i) / width))
      out.push_back(all[i]);
    else if (all[i] != expected)
      return {};
  return out;
}

/// The matrix of tokens with nan in padding.
template <class T>
std::vector<T> with_padding(kernel::SequenceLayout<HostSpace> const& layout, Index width,
                            std::vector<T> const& tokens) {
  std::vector<T> out;
  auto next = tokens.begin();
  for (Index i = 0; i < layout.slots * width; ++i)
    out.push_back(layout.is_token(i / width) ? *next++ : std::numeric_limits<T>::quiet_NaN());
  return out;
}

template <class T>
struct Padded {
  TwinLayout twin;
  Case<T> padded, tokens;

  Padded(std::vector<std::int32_t> const& lengths, Index width)
      : twin(TwinLayout::Kind::padded, lengths),
        padded{twin.slots(), width},
        tokens{std::accumulate(lengths.begin(), lengths.end(), Index{0}), width} {
    padded.x = with_padding(twin.host(), width, tokens.x);
    padded.dy = with_padding(twin.host(), width, tokens.dy);
  }
};

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

TEST_CASE_TEMPLATE("sequences on CUDA give what the matrix of their tokens gives", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::BatchNorm<CudaSpace>")) return;
  memory::CudaStream const stream;
  std::vector<std::int32_t> many;  // over several chunks, some of which are padding altogether
  for (int i = 0; i < 20; ++i) many.push_back(i % 5 == 4 ? 150 : i * 7 % 40);
  auto cases = lockstep_test::some_lengths;
  cases.insert(cases.end(), {many, std::vector<std::int32_t>(9, 40), {0, 0, 2}});
  for (auto const& lengths : cases)
    for (Index width : {1, 33})
      for (auto activation : {Activation::none, Activation::relu})
        for (auto write : {Write::overwrite, Write::add}) {
          CAPTURE(lengths.size());
          CAPTURE(width);
          Padded<T> const k(lengths, width);
          auto const host = k.twin.host();
          auto got = on_device(stream, k.padded, activation, write, k.twin.device());
          auto expected = on_device(stream, k.tokens, activation, write);
          got[5] = of_tokens(host, width, got[5], T(0));
          got[6] = of_tokens(host, width, got[6], write == Write::add ? T(1) : T(0));
          bool const full = host.slots == k.tokens.rows;  // then rows are added in the same order
          double largest = 1;
          for (T r : expected[3]) largest = std::max(largest, static_cast<double>(r));
          double const unit = static_cast<double>(std::numeric_limits<T>::epsilon()),  // of both as in the first case
              bound = full ? 0 : 2 * unit * 4 * static_cast<double>(k.tokens.rows + 16) * largest * largest;
          for (std::size_t number = 0; number < expected.size(); ++number) {
            CAPTURE(number);
            bool near = got[number].size() == expected[number].size();
            for (std::size_t i = 0; i < expected[number].size() && near; ++i) {
              auto const exact = static_cast<double>(expected[number][i]);
              near = std::abs(static_cast<double>(got[number][i]) - exact) <= bound * std::max(1.0, std::abs(exact));
            }
            CHECK(near);
          }
        }
}

TEST_CASE("tokens on several replicas count as one on CUDA, whatever their padding") {
  if (!lockstep_test::has_gpu("kernel::BatchNorm<CudaSpace>")) return;
  using Kernel = kernel::BatchNorm<CudaSpace>;
  memory::CudaStream const stream;
  Index const width = 33, each = Kernel::moment_elements(width);
  Padded<double> const first({5, 0, 70}, width), second({9, 40}, width);
  Case<double> all{first.tokens.rows + second.tokens.rows, width};
  all.x = first.tokens.x, all.dy = first.tokens.dy;
  all.x.insert(all.x.end(), second.tokens.x.begin(), second.tokens.x.end());
  all.dy.insert(all.dy.end(), second.tokens.dy.begin(), second.tokens.dy.end());
  auto const whole = reference(all, Activation::none, Write::overwrite);
  Results<double> const start(all, Write::overwrite);
  OnDevice<double> const running_mean(start.running_mean), running_variance(start.running_variance), mean(start.mean),
      reciprocal(start.mean), scale(start.mean), dweight(start.mean), dbias(start.mean), weight(all.weight),
      bias(all.bias), means(std::vector<double>(2 * all.bias.size())), sums(std::vector<double>(4 * all.bias.size())),
      moments(std::vector<double>(static_cast<std::size_t>(2 * each))),
      partial(std::vector<double>(static_cast<std::size_t>(Kernel::partial_elements(300, width))));
  auto const vector = [&](OnDevice<double> const& v) { return v.view(width); };
  auto* const scratch = partial.view(0).data;
  Kernel::Statistics<double> const s{vector(mean), vector(reciprocal), vector(scale)};
  for (auto const* k : {&first, &second}) {
    OnDevice<double> const x(k->padded.x);
    Kernel::moments<double>(stream.view(), x.view(k->padded.rows, width), scratch,
                            moments.view(0).data + (k == &first ? 0 : each), k->twin.device());
    stream.view().synchronize();
  }
  Kernel::measure_all<double>(stream.view(), 2, moments.view(0).data, vector(weight), 1e-5, 0.1,
                              {vector(running_mean), vector(running_variance)}, s);
  for (auto const* k : {&first, &second}) {
    OnDevice<double> const x(k->padded.x), dy(k->padded.dy);
    Kernel::sums<double>(stream.view(), dy.view(k->padded.rows, width), x.view(k->padded.rows, width), s, vector(bias),
                         Activation::none, vector(dweight), Write::add, vector(dbias), Write::add, scratch,
                         sums.view(0).data + (k == &first ? 0 : 2 * width), k->twin.device());
    stream.view().synchronize();
  }
  Kernel::means<double>(stream.view(), 2, width, sums.view(0).data, moments.view(0).data, means.view(0).data);
  std::vector<double> dx_of_all;
  for (auto const* k : {&first, &second}) {
    OnDevice<double> const x(k->padded.x), dy(k->padded.dy), dx(k->padded.x);
    Kernel::input_gradient<double>(stream.view(), dy.view(k->padded.rows, width), x.view(k->padded.rows, width), s,
                                   vector(bias), Activation::none, means.view(0).data, dx.view(k->padded.rows, width),
                                   Write::overwrite, k->twin.device());
    auto const here = of_tokens(k->twin.host(), width, dx.values(), 0.0);
    dx_of_all.insert(dx_of_all.end(), here.begin(), here.end());
  }
  double const largest = *std::max_element(whole.reciprocal.begin(), whole.reciprocal.end()),  // as in the first case
      bound = 0x1p-52 * 4 * static_cast<double>(all.rows + 16) * std::max(1.0, largest * largest);
  auto const near = [&](std::vector<double> const& got, std::vector<double> const& expected) {
    for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i)
      if (!(std::abs(got[i] - expected[i]) <= bound * std::max(1.0, std::abs(expected[i])))) return false;
    return got.size() == expected.size();
  };
  CHECK(near(scale.values(), whole.scale));
  CHECK(near(running_mean.values(), whole.running_mean));
  CHECK(near(running_variance.values(), whole.running_variance));
  CHECK(near(dweight.values(), whole.dweight));
  CHECK(near(dbias.values(), whole.dbias));
  CHECK(near(dx_of_all, whole.dx));
}

}  // namespace batch_norm_on_cuda
