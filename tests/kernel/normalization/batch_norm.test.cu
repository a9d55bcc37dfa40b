// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/batch_norm.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "batch_norm_case.hpp"
#include "kernel/device_layout.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using kernel::Activation;
using lockstep_test::batch_norm_defined;
using lockstep_test::BatchNormCase;
using lockstep_test::BatchNormResults;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;

namespace batch_norm_on_cuda {
namespace {

template <class T>
BatchNormResults<T> on_device(memory::CudaStream const& stream, BatchNormCase<T> const& c, Activation activation,
                              Write write, kernel::SequenceLayout<CudaSpace> const& layout = {}) {
  using Kernel = kernel::BatchNorm<CudaSpace>;
  auto r = c.before(write);
  OnDevice<T> const running_mean(r.running_mean), running_variance(r.running_variance), mean(r.mean),
      reciprocal(r.mean), scale(r.mean), y(r.y), dx(r.dx), dweight(r.dweight), dbias(r.dbias), recalled(r.mean),
      recalled_mean(r.mean), recalled_reciprocal(r.mean), x(c.x), weight(c.weight), bias(c.bias), dy(c.dy),
      partial(std::vector<T>(static_cast<std::size_t>(Kernel::partial_elements(c.rows, c.width))));
  auto const matrix = [&](OnDevice<T> const& m) { return m.view(c.rows, c.width); };
  auto const vector = [&](OnDevice<T> const& v) { return v.view(c.width); };
  auto* const scratch = partial.view(0).data;
  typename Kernel::template Statistics<T> const statistics{vector(mean), vector(reciprocal), vector(scale)};
  typename Kernel::template Running<T> const running{vector(running_mean), vector(running_variance)};
  Kernel::measure<T>(stream.view(), matrix(x), vector(weight), c.epsilon, c.momentum, running, statistics, scratch,
                     layout);
  Kernel::forward<T>(stream.view(), matrix(x), statistics, vector(bias), activation, matrix(y), layout);
  Kernel::backward<T>(stream.view(), matrix(dy), matrix(x), statistics, vector(bias), activation, matrix(dx), write,
                      vector(dweight), write, vector(dbias), write, scratch, layout);
  Kernel::use_running_averages<T>(stream.view(), running, vector(weight), c.epsilon,
                                  {vector(recalled_mean), vector(recalled_reciprocal), vector(recalled)});
  r.running_mean = running_mean.values(), r.running_variance = running_variance.values(), r.mean = mean.values();
  r.reciprocal = reciprocal.values(), r.scale = scale.values(), r.y = y.values(), r.dx = dx.values();
  r.dweight = dweight.values(), r.dbias = dbias.values(), r.recalled = recalled.values();
  return r;
}

template <class T>
struct Padded : TwinLayout, lockstep_test::BatchNormSequences<T> {
  Padded(std::vector<std::int32_t> const& lengths, Index width)
      : TwinLayout(Kind::padded, lengths), lockstep_test::BatchNormSequences<T>(host(), width) {}
};

}  // namespace

TEST_CASE_TEMPLATE("batch norm on CUDA equals the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::BatchNorm<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (Index rows : {0, 1, 2, 31, 64, 65, 600, 2113})
    for (Index width : {1, 33})
      for (auto activation : {Activation::none, Activation::relu})
        for (auto write : {Write::overwrite, Write::add}) {
          CAPTURE(rows);
          CAPTURE(width);
          auto const got = on_device(stream, BatchNormCase<T>{rows, width}, activation, write);
          auto const exact = batch_norm_defined({rows, width}, activation, write);
          // Sums of at most `rows` terms up to 1 (the squares and z up to 4), rounded as often, scaled by reciprocals
          // of deviations (1 / 0.3 for more than a few rows, at most 32 for one), which dx contains squared. An element
          // that rounds across the activation's edge would differ by dy: none of these does.
          double const reciprocal = *std::max_element(exact.reciprocal.begin(), exact.reciprocal.end());
          double const unit = static_cast<double>(std::numeric_limits<T>::epsilon());
          double const bound = unit * 4 * static_cast<double>(rows + 16) * std::max(1.0, reciprocal * reciprocal);
          got.each(exact, [&](char const* name, auto const& values_there, auto const& expected) {
            CAPTURE(name);
            bool near = values_there.size() == expected.size();
            for (std::size_t i = 0; i < expected.size() && near; ++i) {
              auto const error = std::abs(static_cast<double>(values_there[i]) - expected[i]);
              near = error <= bound * std::max(1.0, std::abs(expected[i]));
            }
            CHECK(near);
          });
        }
}

TEST_CASE_TEMPLATE("sequences on CUDA give the results of the matrix of their tokens", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::BatchNorm<CudaSpace>")) return;
  memory::CudaStream const stream;
  std::vector<std::int32_t> many;  // over several chunks, some of which are entirely padding
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
          auto got = on_device(stream, k.padded, activation, write, k.device());
          auto expected = on_device(stream, k.tokens, activation, write);
          got.y = k.of_tokens(got.y, 0);
          got.dx = k.of_tokens(got.dx, write == Write::add ? 1 : 0);
          bool const full = k.padded.rows == k.tokens.rows;  // then rows are added in equal order
          double largest = 1;
          for (T r : expected.reciprocal) largest = std::max(largest, static_cast<double>(r));
          double const unit = static_cast<double>(std::numeric_limits<T>::epsilon()),  // for both as in the first case
              bound = full ? 0 : 2 * unit * 4 * static_cast<double>(k.tokens.rows + 16) * largest * largest;
          got.each(expected, [&](char const* name, auto const& padded, auto const& tokens) {
            CAPTURE(name);
            bool near = padded.size() == tokens.size();
            for (std::size_t i = 0; i < tokens.size() && near; ++i) {
              auto const exact = static_cast<double>(tokens[i]);
              near = std::abs(static_cast<double>(padded[i]) - exact) <= bound * std::max(1.0, std::abs(exact));
            }
            CHECK(near);
          });
        }
}

TEST_CASE("tokens on several replicas count as one batch on CUDA, whatever their padding") {
  if (!lockstep_test::has_gpu("kernel::BatchNorm<CudaSpace>")) return;
  using Kernel = kernel::BatchNorm<CudaSpace>;
  memory::CudaStream const stream;
  Index const width = 33, each = Kernel::moment_elements(width);
  Padded<double> const first({5, 0, 70}, width), second({9, 40}, width);
  BatchNormCase<double> all{first.tokens.rows + second.tokens.rows, width};
  all.x = first.tokens.x, all.dy = first.tokens.dy;
  all.x.insert(all.x.end(), second.tokens.x.begin(), second.tokens.x.end());
  all.dy.insert(all.dy.end(), second.tokens.dy.begin(), second.tokens.dy.end());
  auto const whole = batch_norm_defined(all, Activation::none, Write::overwrite);
  std::vector<double> const zeros(all.bias.size());
  OnDevice<double> const running_mean(all.running_mean), running_variance(all.running_variance), mean(zeros),
      reciprocal(zeros), scale(zeros), dweight(zeros), dbias(zeros), weight(all.weight), bias(all.bias),
      means(std::vector<double>(2 * all.bias.size())), sums(std::vector<double>(4 * all.bias.size())),
      moments(std::vector<double>(static_cast<std::size_t>(2 * each))),
      partial(std::vector<double>(static_cast<std::size_t>(Kernel::partial_elements(300, width))));
  auto const vector = [&](OnDevice<double> const& v) { return v.view(width); };
  auto* const scratch = partial.view(0).data;
  Kernel::Statistics<double> const s{vector(mean), vector(reciprocal), vector(scale)};
  for (auto const* k : {&first, &second}) {
    OnDevice<double> const x(k->padded.x);
    Kernel::moments<double>(stream.view(), x.view(k->padded.rows, width), scratch,
                            moments.view(0).data + (k == &first ? 0 : each), k->device());
    stream.view().synchronize();
  }
  Kernel::measure_merged<double>(stream.view(), 2, moments.view(0).data, vector(weight), all.epsilon, all.momentum,
                                 {vector(running_mean), vector(running_variance)}, s);
  for (auto const* k : {&first, &second}) {
    OnDevice<double> const x(k->padded.x), dy(k->padded.dy);
    Kernel::sums<double>(stream.view(), dy.view(k->padded.rows, width), x.view(k->padded.rows, width), s, vector(bias),
                         Activation::none, vector(dweight), Write::add, vector(dbias), Write::add, scratch,
                         sums.view(0).data + (k == &first ? 0 : 2 * width), k->device());
    stream.view().synchronize();
  }
  Kernel::means<double>(stream.view(), 2, width, sums.view(0).data, moments.view(0).data, means.view(0).data);
  std::vector<double> dx_of_all;
  for (auto const* k : {&first, &second}) {
    OnDevice<double> const x(k->padded.x), dy(k->padded.dy), dx(k->padded.x);
    Kernel::input_gradient<double>(stream.view(), dy.view(k->padded.rows, width), x.view(k->padded.rows, width), s,
                                   vector(bias), Activation::none, means.view(0).data, dx.view(k->padded.rows, width),
                                   Write::overwrite, k->device());
    auto const here = k->of_tokens(dx.values(), 0);
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
