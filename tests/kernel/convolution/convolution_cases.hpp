// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/convolution/convolution.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

/// Cases that every backend must satisfy: one function, which each backend's test calls.
namespace convolution_cases {
using namespace lockstep;
using kernel::ConvolutionShape;
using Kernel = kernel::Convolution<HostSpace>;
using lockstep_test::view;

/// One to three dimensions; odd sizes, one position, a kernel as large as the input, strides with a remainder, padding
/// larger than the input or on one side only, channels near a vector's length, samples near the number of tiles,
/// dilation, and channels in groups, down to one channel each.
inline std::vector<ConvolutionShape> shapes() {
  return {
      {.rows = 1},
      {.rows = 3, .inputs = 2, .outputs = 3, .extent = {1, 1, 9}, .kernel = {1, 1, 3}},
      {.rows = 17, .inputs = 9, .outputs = 33, .extent = {1, 1, 31}, .kernel = {1, 1, 5}, .padding = {0, 0, 2}},
      {.rows = 2, .inputs = 16, .outputs = 16, .extent = {1, 1, 8}, .kernel = {1, 1, 8}},
      {.rows = 2,
       .inputs = 3,
       .outputs = 8,
       .extent = {1, 11, 13},
       .kernel = {1, 3, 3},
       .stride = {1, 2, 2},
       .padding = {0, 1, 1}},
      {.rows = 33, .inputs = 1, .outputs = 17, .extent = {1, 5, 4}, .kernel = {1, 3, 2}},
      {.rows = 2,
       .inputs = 1,
       .outputs = 16,
       .extent = {5, 12, 12},
       .kernel = {3, 3, 3},
       .stride = {1, 2, 2},
       .padding = {1, 1, 1}},
      {.rows = 3,
       .inputs = 16,
       .outputs = 32,
       .extent = {4, 7, 9},
       .kernel = {3, 3, 3},
       .stride = {2, 2, 2},
       .padding = {1, 1, 1}},
      {.rows = 18,
       .inputs = 5,
       .outputs = 7,
       .extent = {2, 3, 3},
       .kernel = {2, 1, 3},
       .stride = {1, 3, 1},
       .padding = {1, 0, 2}},
      {.rows = 17, .inputs = 64, .outputs = 130, .extent = {1, 1, 32}},  // a weight larger than one task accumulates
      {.rows = 2,
       .inputs = 1,
       .outputs = 2,
       .extent = {1, 1, 50000},
       .kernel = {1, 1, 3}},  // positions of several blocks
      {.rows = 1, .inputs = 31, .outputs = 1, .extent = {2, 2, 2}, .kernel = {3, 3, 3}, .padding = {2, 1, 3}},
      // Dilated kernels, with all padding before, and padding beyond both ends.
      {.rows = 3,
       .inputs = 5,
       .outputs = 4,
       .extent = {1, 1, 13},
       .kernel = {1, 1, 3},
       .padding = {0, 0, 8},
       .padding_after = {0, 0, 0},
       .dilation = {1, 1, 4}},
      {.rows = 2,
       .inputs = 3,
       .outputs = 2,
       .extent = {3, 7, 6},
       .kernel = {2, 3, 3},
       .stride = {1, 2, 3},
       .padding = {1, 2, 3},
       .padding_after = {0, 3, 1},
       .dilation = {3, 2, 2}},
      // Groups with several channels, and with several outputs per input.
      {.rows = 2,
       .inputs = 6,
       .outputs = 9,
       .extent = {1, 5, 6},
       .kernel = {1, 3, 2},
       .stride = {1, 1, 2},
       .padding = {0, 1, 0},
       .groups = 3},
      {.rows = 17,
       .inputs = 4,
       .outputs = 8,
       .extent = {1, 1, 9},
       .kernel = {1, 1, 3},
       .padding = {0, 0, 2},
       .dilation = {1, 1, 2},
       .groups = 4},
      // Groups of few channels, as many in as out: two to eight, strided, dilated, with more taps than one loop
      // handles.
      {.rows = 17,
       .inputs = 6,
       .outputs = 6,
       .extent = {1, 1, 9},
       .kernel = {1, 1, 3},
       .stride = {1, 1, 2},
       .padding = {0, 0, 1},
       .groups = 3},
      {.rows = 2,
       .inputs = 9,
       .outputs = 9,
       .extent = {3, 5, 7},
       .kernel = {2, 3, 2},
       .padding = {1, 2, 1},
       .dilation = {1, 2, 1},
       .groups = 3},
      {.rows = 3,
       .inputs = 36,
       .outputs = 36,
       .extent = {1, 6, 7},
       .kernel = {1, 3, 3},
       .padding = {0, 1, 1},
       .groups = 9},
      {.rows = 2,
       .inputs = 16,
       .outputs = 16,
       .extent = {1, 8, 9},
       .kernel = {1, 6, 7},
       .stride = {1, 2, 1},
       .padding = {0, 3, 3},
       .groups = 2},
      // Depthwise: near a vector's length, strided, with more taps than one loop handles.
      {.rows = 3,
       .inputs = 2,
       .outputs = 2,
       .extent = {1, 1, 3},
       .kernel = {1, 1, 3},
       .padding = {0, 0, 1},
       .groups = 2},
      {.rows = 18,
       .inputs = 33,
       .outputs = 33,
       .extent = {1, 6, 11},
       .kernel = {1, 3, 3},
       .padding = {0, 1, 1},
       .groups = 33},
      {.rows = 2,
       .inputs = 16,
       .outputs = 16,
       .extent = {3, 8, 19},
       .kernel = {2, 3, 4},
       .stride = {2, 3, 3},
       .padding = {1, 0, 2},
       .padding_after = {1, 1, 4},
       .dilation = {1, 1, 2},
       .groups = 16},
      {.rows = 2,
       .inputs = 17,
       .outputs = 17,
       .extent = {1, 9, 9},
       .kernel = {1, 7, 7},
       .stride = {1, 1, 2},
       .padding = {0, 3, 3},
       .groups = 17},
      {.rows = 1,
       .inputs = 8,
       .outputs = 8,
       .extent = {1, 1, 40},
       .kernel = {1, 1, 2},
       .stride = {1, 1, 5},
       .padding = {0, 0, 6},
       .padding_after = {0, 0, 0},
       .dilation = {1, 1, 3},
       .groups = 8},
  };
}

/// The definition: calls f(x element, weight element, y element) for every product.
template <class F>
void for_products(ConvolutionShape const& s, F&& f) {
  auto const out = s.result();
  for (Index r = 0; r < s.rows; ++r)
    for (Index position = 0; position < s.output_positions(); ++position) {
      Extents<3> const p{position / (out[1] * out[2]), position / out[2] % out[1], position % out[2]};
      for (Index tap = 0; tap < s.taps(); ++tap) {
        Extents<3> const k{tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]};
        Index from = 0;
        bool inside = true;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          Index const at = p[axis] * s.stride[axis] + k[axis] * s.dilation[axis] - s.padding[axis];
          inside = inside && at >= 0 && at < s.extent[axis];
          from = from * s.extent[axis] + at;
        }
        if (!inside) continue;
        for (Index o = 0; o < s.outputs; ++o)
          for (Index i = 0; i < s.group_inputs(); ++i)
            f((r * s.input_positions() + from) * s.inputs + o / s.group_outputs() * s.group_inputs() + i,
              (o * s.group_inputs() + i) * s.taps() + tap, (r * s.output_positions() + position) * s.outputs + o);
      }
    }
}

/// Sums of terms in double, and of their magnitudes.
struct Reference {
  std::vector<double> sum, magnitude;
  explicit Reference(Index size) : sum(static_cast<std::size_t>(size)), magnitude(static_cast<std::size_t>(size)) {}
  void add(Index at, double term) {
    sum[static_cast<std::size_t>(at)] += term;
    magnitude[static_cast<std::size_t>(at)] += std::abs(term);
  }
  /// A sum of n products, in any order, with or without fused multiply-adds, has at most n + 1 roundings of at most
  /// epsilon / 2 times the sum of the magnitudes; the first order is doubled for the rest.
  template <class T>
  void check(std::vector<T> const& got, Index terms) const {
    double worst = 0;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      double const bound =
          static_cast<double>(terms + 2) * static_cast<double>(std::numeric_limits<T>::epsilon()) * magnitude[i];
      double const error = std::abs(static_cast<double>(got[i]) - sum[i]);
      if (!(error <= bound)) worst = std::max(worst, std::isnan(error) ? 1e300 : error / std::max(bound, 1e-300));
    }
    CHECK(worst == 0);
  }
};

template <class T>
struct Data {
  std::vector<T> x, weight, bias, dy;
  explicit Data(ConvolutionShape const& s)
      : x(lockstep_test::values<T>(s.rows * s.input_size(), 1)),
        weight(lockstep_test::values<T>(s.weight_size(), 2)),
        bias(lockstep_test::values<T>(s.outputs, 3)),
        dy(lockstep_test::values<T>(s.rows * s.output_size(), 4)) {}
};
template <class T>
struct Results {
  std::vector<T> y, dx, dweight, dbias;
  friend bool operator==(Results const&, Results const&) = default;
};

/// All three passes; with `add` into ones.
template <class T, class Plans>
Results<T> run(ConvolutionShape const& s, Data<T> const& d, Plans& plans, int threads, Write write = Write::overwrite) {
  ThreadPool pool(threads);
  memory::Stream<HostSpace> const stream(pool);
  Kernel::Scratch scratch[3];  // so that no pass finds another's results
  T const before = write == Write::add ? T(1) : std::numeric_limits<T>::quiet_NaN();
  Results<T> r{std::vector<T>(d.dy.size(), std::numeric_limits<T>::quiet_NaN()), std::vector<T>(d.x.size(), before),
               std::vector<T>(d.weight.size(), before), std::vector<T>(d.bias.size(), before)};
  TensorView<T const, 1, HostSpace> const x = view(d.x, d.x.size()), weight = view(d.weight, d.weight.size()),
                                          bias = view(d.bias, d.bias.size()), dy = view(d.dy, d.dy.size());
  Kernel::forward<T>(stream, s, x, weight, bias, view(r.y, r.y.size()), plans, scratch[0]);
  Kernel::backward_data<T>(stream, s, dy, weight, view(r.dx, r.dx.size()), write, plans, scratch[1]);
  Kernel::backward_weight<T>(stream, s, dy, x, view(r.dweight, r.dweight.size()), write, view(r.dbias, r.dbias.size()),
                             write, plans, scratch[2]);
  return r;
}

template <class T, class Plans>
void check_definition() {
  Plans plans;
  for (auto const& s : shapes()) {
    CAPTURE(to_string(s.extent));
    CAPTURE(to_string(s.kernel));
    CAPTURE(s.rows);
    Data<T> const d(s);
    for (auto write : {Write::overwrite, Write::add}) {
      auto const got = run(s, d, plans, 2, write);
      double const before = write == Write::add ? 1 : 0;
      Reference y(s.rows * s.output_size()), dx(s.rows * s.input_size()), dweight(s.weight_size()), dbias(s.outputs);
      auto const at = [](std::vector<T> const& v, Index i) {
        return static_cast<double>(v[static_cast<std::size_t>(i)]);
      };
      for (Index i = 0; i < s.rows * s.output_size(); ++i) {
        y.add(i, at(d.bias, i % s.outputs));
        dbias.add(i % s.outputs, at(d.dy, i));
      }
      for (auto* sums : {&dx, &dweight, &dbias})
        for (std::size_t i = 0; i < sums->sum.size(); ++i) sums->add(static_cast<Index>(i), before);
      for_products(s, [&](Index x, Index w, Index to) {
        y.add(to, at(d.x, x) * at(d.weight, w));
        dx.add(x, at(d.dy, to) * at(d.weight, w));
        dweight.add(w, at(d.dy, to) * at(d.x, x));
      });
      y.check(got.y, s.taps() * s.group_inputs() + 1);
      dx.check(got.dx, s.taps() * s.group_outputs() + 1);
      dweight.check(got.dweight, s.rows * s.output_positions() + 1);
      dbias.check(got.dbias, s.rows * s.output_positions() + 1);
    }
  }
}

template <class T, class Plans>
void check_bits() {
  for (auto const& s : shapes()) {
    CAPTURE(to_string(s.extent));
    Data<T> const d(s);
    Plans plans;
    auto const one = run(s, d, plans, 1);
    for (int threads : {1, 2, 4}) CHECK(run(s, d, plans, threads) == one);
  }
}

}  // namespace convolution_cases
