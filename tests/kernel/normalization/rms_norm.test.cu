// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/rms_norm.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/device_layout.hpp"
#include "rms_norm_case.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::RMSNormCase;
using lockstep_test::TwinLayout;

namespace rms_norm_on_cuda {
namespace {

template <class T>
typename RMSNormCase<T>::Results on_device(memory::CudaStream const& stream, RMSNormCase<T> const& c,
                                           kernel::RowDropout<CudaSpace> dropout, Write write) {
  using Kernel = kernel::RMSNorm<CudaSpace>;
  auto r = c.before(write);
  OnDevice<T> const x(c.x), added(c.added), weight(c.weight), beside(c.beside), dy(c.dy), sum(r.sum),
      reciprocals(r.reciprocals), y(r.y), dx(r.dx), dadded(r.dadded), dweight(r.dweight),
      partial(std::vector<T>(static_cast<std::size_t>(Kernel::partial_elements(c.rows, c.width))));
  auto const shaped = [&](auto& v) { return v.view(c.rows, c.width); };
  kernel::Residual<T, CudaSpace> residual{};
  if (c.joins) residual = {shaped(added), dropout};
  Kernel::forward<T>(stream.view(), shaped(x), residual, weight.view(c.width), T(c.epsilon), shaped(sum),
                     reciprocals.view(c.rows), shaped(y));
  Kernel::backward<T>(stream.view(), shaped(dy), shaped(sum), reciprocals.view(c.rows),
                      c.joins ? shaped(beside) : TensorView<T, 2, CudaSpace>{}, dropout, weight.view(c.width),
                      shaped(dx), write, c.joins ? shaped(dadded) : TensorView<T, 2, CudaSpace>{}, write,
                      dweight.view(c.width), write, partial.view(0).data);
  r.sum = sum.values(), r.reciprocals = reciprocals.values(), r.y = y.values(), r.dx = dx.values();
  r.dadded = dadded.values(), r.dweight = dweight.values();
  return r;
}

/// The largest error, in units of epsilon; NaN equals NaN.
template <class T>
double worst(std::vector<T> const& got, std::vector<double> const& exact) {
  double most = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (std::isnan(exact[i]) && std::isnan(got[i])) continue;
    double const error = std::abs(static_cast<double>(got[i]) - exact[i]);
    if (!(error <= most)) most = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return most / static_cast<double>(std::numeric_limits<T>::epsilon());
}

}  // namespace

TEST_CASE_TEMPLATE("RMS norm on CUDA equals the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::RMSNorm<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (auto const& lengths : {std::vector<std::int32_t>{}, {1}, {3, 0, 5, 1}, {200, 100}})
    for (Index width : {1, 31, 33})
      for (bool joins : {false, true})
        for (auto write : {Write::overwrite, Write::add}) {
          TwinLayout const twin(joins ? TwinLayout::Kind::ragged : TwinLayout::Kind::padded, lengths);
          auto const mask = kernel::DropoutMask::of(9, joins ? 0.4 : 0);
          CAPTURE(twin.slots());
          CAPTURE(width);
          CAPTURE(joins);
          RMSNormCase<T> const c{twin.slots(), width, joins};
          auto const got = on_device(stream, c, {mask, twin.device()}, write);
          auto const exact = RMSNormCase<double>{twin.slots(), width, joins}.on_host(write, 1, {mask, twin.host()});
          // A root rounds once per term and is used as its reciprocal, at most 1 / |x|, and 316 for a row of zeros: all
          // of a row's results have its (width + 8) roundings, times the reciprocal once more in gradients.
          double reciprocal = 1;
          for (double r : exact.reciprocals) reciprocal = std::max(reciprocal, r);
          double const roundings = static_cast<double>(width + 8) * reciprocal;
          CHECK(worst(got.sum, exact.sum) <= 2);
          CHECK(worst(got.reciprocals, exact.reciprocals) <= roundings * reciprocal);
          CHECK(worst(got.y, exact.y) <= roundings);
          CHECK(worst(got.dx, exact.dx) <= roundings * reciprocal * 4);
          CHECK(worst(got.dadded, exact.dadded) <= roundings * reciprocal * 8);
          CHECK(worst(got.dweight, exact.dweight) <= static_cast<double>(c.rows + 1) * roundings);
          CHECK(on_device(stream, c, {mask, twin.device()}, write).dweight == got.dweight);
        }
}

}  // namespace rms_norm_on_cuda
