// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/linear/linear.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/tensor_core.cuh>

#include "linear_case.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::LinearCase;
using lockstep_test::OnDevice;
using lockstep_test::view;

namespace linear_on_cuda {
namespace {

template <class T>
typename LinearCase<T>::Results on_device(memory::CudaStream const& stream, LinearCase<T> const& c, Write write,
                                          bool with_factor) {
  auto const start = c.before(write);
  using Kernel = kernel::Linear<CudaSpace>;
  OnDevice<T> const x(c.x), weight(c.weight), bias(c.bias), dy(c.dy), factor(c.factor), y(start.y), dx(start.dx),
      dweight(start.dweight), dbias(start.dbias),
      partial(std::vector<T>(
          static_cast<std::size_t>(Kernel::partial_elements(stream.view(), c.rows, c.inputs, c.outputs))));
  auto const input = x.view(c.rows, c.inputs);
  Kernel::forward<T>(stream.view(), input, weight.view(c.outputs, c.inputs), bias.view(c.outputs),
                     y.view(c.rows, c.outputs));
  Kernel::backward<T>(stream.view(), dy.view(c.rows, c.outputs), input, weight.view(c.outputs, c.inputs),
                      {with_factor ? factor.view(c.rows, c.inputs) : decltype(input){}}, dx.view(c.rows, c.inputs),
                      with_factor ? Write::overwrite : write, dweight.view(c.outputs, c.inputs), write,
                      dbias.view(c.outputs), write, partial.view(0).data);
  return {y.values(), dx.values(), dweight.values(), dbias.values()};
}

/// Every element is within terms * epsilon of the sum of its terms' magnitudes: as many roundings, each of at most half
/// an epsilon of that sum, and as many again in the double reference.
template <class T>
bool agrees(std::vector<T> const& got, std::vector<double> const& exact, std::vector<double> const& magnitude,
            Index terms) {
  double const unit =
      sizeof(T) == 2 ? 0x1p-7 : static_cast<double>(std::numeric_limits<Accumulate<T>>::epsilon());  // bfloat16's
  for (std::size_t i = 0; i < exact.size(); ++i)
    if (!(std::abs(static_cast<double>(static_cast<Accumulate<T>>(got[i])) - exact[i]) <=
          static_cast<double>(terms + 3) * unit * std::abs(magnitude[i])))
      return false;
  return got.size() == exact.size();
}

LinearCase<double> with_magnitudes(LinearCase<double> c) {
  for (auto* v : {&c.x, &c.weight, &c.bias, &c.dy, &c.factor})
    for (auto& e : *v) e = std::abs(e);
  return c;
}

}  // namespace

TEST_CASE_TEMPLATE("linear on CUDA equals the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Linear<CudaSpace>")) return;
  memory::CudaStream const stream;
  struct Shape {
    Index rows, inputs, outputs;
  };
  for (auto [rows, inputs, outputs] : {Shape{0, 3, 4}, Shape{1, 1, 1}, Shape{33, 31, 32}, Shape{32, 65, 4},
                                       Shape{256, 9, 33}, Shape{257, 8, 31}, Shape{600, 5, 1}})
    for (auto write : {Write::overwrite, Write::add})
      for (bool with_factor : {false, true}) {
        LinearCase<T> const c{rows, inputs, outputs};
        CAPTURE(c.rows);
        LinearCase<double> const wide{rows, inputs, outputs};
        auto const got = on_device(stream, c, write, with_factor);
        auto const exact = wide.on_host(write, with_factor);
        auto const magnitude = with_magnitudes(wide).on_host(write, with_factor);
        CHECK(agrees(got.y, exact.y, magnitude.y, inputs + 1));
        CHECK(agrees(got.dx, exact.dx, magnitude.dx, outputs + 1));
        CHECK(agrees(got.dweight, exact.dweight, magnitude.dweight, rows + 1));
        CHECK(agrees(got.dbias, exact.dbias, magnitude.dbias, rows + 1));
        CHECK(on_device(stream, c, write, with_factor).dbias == got.dbias);
        OnDevice<T> const dx(c.before(write).dx), dy(c.dy), x(c.x), weight(c.weight);
        if (with_factor) continue;
        kernel::Linear<CudaSpace>::backward<T>(stream.view(), dy.view(rows, outputs), x.view(rows, inputs),
                                               weight.view(outputs, inputs), {}, dx.view(rows, inputs), write,
                                               {nullptr, {outputs, inputs}}, Write::overwrite, {}, Write::overwrite,
                                               nullptr);
        CHECK(dx.values() == got.dx);  // without gradients of parameters
      }
}

TEST_CASE_TEMPLATE("layers of one input on CUDA, with parameters at equal distances or not", T, float, double,
                   bfloat16) {
  if (!lockstep_test::has_gpu("kernel::Linear<CudaSpace>")) return;
  using Kernel = kernel::Linear<CudaSpace>;
  using Sum = Accumulate<T>;  // type of the parameters' gradients
  auto const rounded = [](std::vector<double>& exact) {
    std::vector<T> out;
    for (auto& e : exact) e = static_cast<double>(static_cast<Sum>(out.emplace_back(static_cast<Sum>(e))));
    return out;
  };
  memory::CudaStream const stream;
  constexpr std::size_t layers = 3;
  for (Index const rows : {0, 1, 33, 300})
    for (auto write : {Write::overwrite, Write::add})
      for (Index const gap : {0, 16, 40})  // between the second layer and the third; 16 as between the others
        for (bool const with_bias : {true, false}) {
          CAPTURE(rows);
          CAPTURE(gap);
          Index const inputs = 8, outputs = 20, weights = inputs * outputs, stride = weights + 16 + outputs + 28;
          auto const place = [&](std::size_t i) { return static_cast<Index>(i) * stride + (i == 2 ? gap - 16 : 0); };
          std::vector<LinearCase<double>> cases;
          std::vector<T> parameters(static_cast<std::size_t>(4 * stride));
          std::vector<Sum> const unset(parameters.size(), write == Write::add ? Sum(1) : Sum(-7));
          std::vector<T> dy, inputs_rounded;
          for (std::size_t i = 0; i < layers; ++i) {
            auto& c = cases.emplace_back(LinearCase<double>{rows, inputs, outputs});
            c.weight = lockstep_test::values<double>(weights, 20 + i);
            c.bias = with_bias ? lockstep_test::values<double>(outputs, 30 + i)
                               : std::vector<double>(static_cast<std::size_t>(outputs));
            c.dy = lockstep_test::values<double>(rows * outputs, 40 + i);
            std::ranges::copy(rounded(c.weight), parameters.begin() + place(i));
            std::ranges::copy(rounded(c.bias), parameters.begin() + place(i) + weights + 16);
            std::ranges::copy(rounded(c.dy), std::back_inserter(dy));
            inputs_rounded = rounded(c.x);
          }
          OnDevice<T> const x(inputs_rounded), there(parameters), device_dy(dy), y(dy),
              dx(std::vector<T>(inputs_rounded.size(), write == Write::add ? T(1.0F) : T(-7.0F)));
          OnDevice<Sum> const gradients(unset),
              partial(std::vector<Sum>(
                  layers * static_cast<std::size_t>(Kernel::partial_elements(stream.view(), rows, inputs, outputs))));
          auto const each = [&](auto const& f) { return std::array{f(0), f(1), f(2)}; };
          auto const at = [&](auto const& v, std::size_t i, Index offset) {
            return v.view(0).data + place(i) + offset;
          };
          Kernel::forward_each<T, layers>(
              stream.view(), x.view(rows, inputs), each([&](std::size_t i) {
                return TensorView<T const, 2, CudaSpace>{at(there, i, 0), {outputs, inputs}};
              }),
              each([&](std::size_t i) {
                return TensorView<T const, 1, CudaSpace>{with_bias ? at(there, i, weights + 16) : nullptr, {outputs}};
              }),
              y.view(3 * rows, outputs));
          Kernel::backward_each<T, layers>(
              stream.view(), device_dy.view(3 * rows, outputs), x.view(rows, inputs), each([&](std::size_t i) {
                return TensorView<T const, 2, CudaSpace>{at(there, i, 0), {outputs, inputs}};
              }),
              dx.view(rows, inputs), write, each([&](std::size_t i) {
                return TensorView<Sum, 2, CudaSpace>{at(gradients, i, 0), {outputs, inputs}};
              }),
              std::array{write, write, write}, each([&](std::size_t i) {
                return TensorView<Sum, 1, CudaSpace>{with_bias ? at(gradients, i, weights + 16) : nullptr, {outputs}};
              }),
              std::array{write, write, write}, partial.view(0).data);
          auto const all_y = y.values();
          auto const all_gradients = gradients.values();
          auto const got_dx = dx.values();
          std::vector<double> exact_dx(got_dx.size(), write == Write::add ? 1 : 0), magnitude_dx = exact_dx;
          auto const part = []<class E>(std::vector<E> const& v, Index first, std::size_t count) {
            return std::vector<E>(v.begin() + first, v.begin() + first + static_cast<Index>(count));
          };
          auto untouched = unset;
          for (std::size_t i = 0; i < layers; ++i) {
            auto const exact = cases[i].on_host(write, false),
                       magnitude = with_magnitudes(cases[i]).on_host(write, false);
            auto const plain = cases[i].on_host(Write::overwrite, false),
                       plain_magnitude = with_magnitudes(cases[i]).on_host(Write::overwrite, false);
            CHECK(agrees(part(all_y, static_cast<Index>(i) * rows * outputs, exact.y.size()), exact.y, magnitude.y,
                         inputs + 1));
            CHECK(agrees(part(all_gradients, place(i), exact.dweight.size()), exact.dweight, magnitude.dweight,
                         rows + 1));
            if (with_bias)
              CHECK(agrees(part(all_gradients, place(i) + weights + 16, exact.dbias.size()), exact.dbias,
                           magnitude.dbias, rows + 1));
            std::copy_n(all_gradients.begin() + place(i), weights, untouched.begin() + place(i));
            if (with_bias)
              std::copy_n(all_gradients.begin() + place(i) + weights + 16, outputs,
                          untouched.begin() + place(i) + weights + 16);
            for (std::size_t e = 0; e < exact_dx.size(); ++e)
              exact_dx[e] += plain.dx[e], magnitude_dx[e] += plain_magnitude.dx[e];
          }
          CHECK(untouched == all_gradients);
          CHECK(agrees(got_dx, exact_dx, magnitude_dx, 3 * outputs + 3));
        }
}

TEST_CASE("the input gradient of layers of one input on CUDA is rounded once if their weights are at equal distances") {
  if (!lockstep_test::has_gpu("kernel::Linear<CudaSpace>") || !kernel::detail::has_tensor_cores()) return;
  using Kernel = kernel::Linear<CudaSpace>;
  using T = bfloat16;
  memory::CudaStream const stream;
  constexpr Index rows = 70, inputs = 40, outputs = 24, layers = 3, weights = inputs * outputs;
  auto const rounded = [](std::vector<float> const& from) { return std::vector<T>(from.begin(), from.end()); };
  auto const x = rounded(lockstep_test::values<float>(rows * inputs, 1)),
             dy = rounded(lockstep_test::values<float>(layers * rows * outputs, 2)),
             weight = rounded(lockstep_test::values<float>(layers * weights + 8, 3));
  OnDevice<T> const device_x(x), device_dy(dy), device_weight(weight);
  OnDevice<float> const gradients(std::vector<float>(layers * weights));
  auto const each = [](auto const& f) { return std::array{f(0), f(1), f(2)}; };
  for (auto write : {Write::overwrite, Write::add})
    for (Index const gap : {0, 8}) {  // between the second layer and the third
      CAPTURE(gap);
      OnDevice<T> const dx(x);
      auto const place = [&](int i) { return i * weights + (i == 2 ? gap : 0); };
      Kernel::backward_each<T, layers>(
          stream.view(), device_dy.view(layers * rows, outputs), device_x.view(rows, inputs), each([&](int i) {
            return TensorView<T const, 2, CudaSpace>{device_weight.view(0).data + place(i), {outputs, inputs}};
          }),
          dx.view(rows, inputs), write, each([&](int i) {
            return TensorView<float, 2, CudaSpace>{gradients.view(0).data + i * weights, {outputs, inputs}};
          }),
          std::array{Write::overwrite, Write::overwrite, Write::overwrite}, each([](int) {
            return TensorView<float, 1, CudaSpace>{nullptr, {outputs}};
          }),
          std::array{Write::overwrite, Write::overwrite, Write::overwrite}, nullptr);
      auto const got = dx.values();
      bool once = true;
      for (Index row = 0; row < rows; ++row)
        for (Index column = 0; column < inputs; ++column) {
          auto const number = [](std::vector<T> const& from, Index at) {
            return static_cast<double>(static_cast<float>(from[static_cast<std::size_t>(at)]));
          };
          auto const at = row * inputs + column;
          double exact = write == Write::add ? number(x, at) : 0, magnitude = std::abs(exact);
          for (int i = 0; i < layers; ++i)
            for (Index k = 0; k < outputs; ++k) {
              auto const term =
                  number(dy, (i * rows + row) * outputs + k) * number(weight, place(i) + k * inputs + column);
              exact += term;
              magnitude += std::abs(term);
            }
          // Half a unit of bfloat16 for the result, and 2^-22 of the terms for each of the sum's roundings or cuts.
          auto const bound = 0x1p-8 * std::abs(exact) + 2 * (layers * outputs + 1) * 0x1p-22 * magnitude;
          once = once && std::abs(number(got, at) - exact) <= bound;
        }
      CHECK(once == (gap == 0));
    }
}

TEST_CASE("gelu's output, recomputed on CUDA, gives the bits of the saved one") {
  if (!lockstep_test::has_gpu("kernel::Linear<CudaSpace>")) return;
  using Kernel = kernel::Linear<CudaSpace>;
  memory::CudaStream const stream;
  for (Index rows : {0, 1, 33, 300})
    for (auto write : {Write::overwrite, Write::add}) {
      LinearCase<float> const c{rows, 9, 12};
      auto const start = c.before(write);
      std::vector<float> const unset(static_cast<std::size_t>(rows * c.inputs));
      OnDevice<float> const below(c.dy), to_h(c.weight), weight(c.weight), x(unset), slope(unset), y(unset), h(unset),
          dh(unset), again(unset), dweight(start.dweight), dbias(start.dbias), dweight_again(start.dweight),
          dbias_again(start.dbias),
          partial(std::vector<float>(
              static_cast<std::size_t>(Kernel::partial_elements(stream.view(), rows, c.inputs, c.outputs))));
      CHECK(Kernel::recomputed_elements(stream.view(), rows, c.inputs) == rows * c.inputs);
      auto const dy = below.view(rows, c.outputs);
      auto const as_x = [&](OnDevice<float> const& v) { return v.view(rows, c.inputs); };
      auto const to = to_h.view(c.inputs, c.outputs), from = weight.view(c.outputs, c.inputs);
      Kernel::forward<float>(stream.view(), dy, to, {}, kernel::Activation::gelu, {}, as_x(x), as_x(slope));
      Kernel::forward_gelu<float>(stream.view(), dy, to, {}, as_x(h), as_x(y));
      CHECK(x.values() == y.values());
      Kernel::backward<float>(stream.view(), dy, as_x(x), from, {as_x(slope)}, as_x(dh), Write::overwrite,
                              dweight.view(c.outputs, c.inputs), write, dbias.view(c.outputs), write,
                              partial.view(0).data);
      Kernel::backward_through_gelu<float>(stream.view(), dy, as_x(h), from, dweight_again.view(c.outputs, c.inputs),
                                           write, dbias_again.view(c.outputs), write, partial.view(0).data,
                                           again.view(0).data);
      CHECK(h.values() == dh.values());
      CHECK(dweight_again.values() == dweight.values());
      CHECK(dbias_again.values() == dbias.values());
    }
}

TEST_CASE_TEMPLATE("the activation and its dropout on CUDA equal the host's", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Linear<CudaSpace>")) return;
  memory::CudaStream const stream;
  ThreadPool pool(1);
  double const unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  for (auto activation : {kernel::Activation::none, kernel::Activation::gelu, kernel::Activation::gelu_tanh,
                          kernel::Activation::silu, kernel::Activation::relu})
    for (Index outputs : {1, 8, 13, 64, 520, 1037}) {
      LinearCase<T> const c{70, 12, outputs};
      std::vector<Index> const positions{5, Index{1} << 40};
      OnDevice<Index> const device_positions(positions);
      OnDevice<T> const x(c.x), weight(c.weight), bias(c.bias);
      for (double probability : {0.0, 0.25})
        for (bool with_slope : {false, true}) {
          auto const mask = kernel::DropoutMask::of(77, probability);
          std::vector<T> y(c.dy.size()), slope(with_slope ? c.dy.size() : 0);
          OnDevice<T> const device_y(y), device_slope(slope);
          auto const rows_of = [&](auto const& v) {
            return with_slope ? v.view(70, outputs) : decltype(v.view(70, outputs)){};
          };
          kernel::Linear<CudaSpace>::forward<T>(
              stream.view(), x.view(70, 12), weight.view(outputs, 12), bias.view(outputs), activation,
              {mask, kernel::SequenceLayout<CudaSpace>::padded(35, {}, device_positions.view(2))},
              device_y.view(70, outputs), rows_of(device_slope));
          kernel::Linear<HostSpace>::forward<T>(
              memory::Stream<HostSpace>(pool), view(c.x, 70, 12), view(c.weight, outputs, 12), view(c.bias, outputs),
              activation, {mask, kernel::SequenceLayout<HostSpace>::padded(35, {}, view(positions, 2))},
              view(y, 70, outputs), with_slope ? view(slope, 70, outputs) : TensorView<T, 2, HostSpace>{});
          auto const got = device_y.values(), got_slope = device_slope.values();
          // |h| < 13 in sums of 13 terms, each rounded 13 times on either side; gelu and its slope have slopes of at
          // most 1.13 and 0.8, its approximation and silu of no more, and add the roundings of their own test. Dropped
          // elements agree exactly.
          double const bound = unit * (13 * 13 + 13 * 13) * 2;
          auto const near = [&](std::vector<T> const& a, std::vector<T> const& b) {
            for (std::size_t i = 0; i < a.size(); ++i) {
              if (!(std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) <= bound)) return false;
              if (probability > 0 && kernel::keeps_slope(activation) && (a[i] == 0) != (b[i] == 0)) return false;
            }
            return a.size() == b.size();
          };
          CHECK(near(got, y));
          CHECK(near(got_slope, slope));
        }
    }
}

TEST_CASE_TEMPLATE("backward through a rectifier on CUDA", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Linear<CudaSpace>")) return;
  memory::CudaStream const stream;
  LinearCase<T> c{33, 9, 20};
  for (auto i = 0U; i < c.x.size(); i += 3) c.x[i] = i % 2 == 0 ? T(0) : -c.x[i];
  OnDevice<T> const x(c.x), weight(c.weight), dy(c.dy), plain(c.x), dx(c.x), dweight(c.weight);
  auto const backward = [&](kernel::ActivationSlope<T, CudaSpace> slope, OnDevice<T> const& to) {
    kernel::Linear<CudaSpace>::backward<T>(stream.view(), dy.view(33, 20), x.view(33, 9), weight.view(20, 9), slope,
                                           to.view(33, 9), Write::overwrite, dweight.view(20, 9), Write::overwrite, {},
                                           Write::overwrite, nullptr);
    return to.values();
  };
  auto const without = backward({}, plain), got = backward({.positive = T(1.25)}, dx);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == (c.x[i] <= 0 ? T(0) : without[i] * T(1.25)));
}

}  // namespace linear_on_cuda
