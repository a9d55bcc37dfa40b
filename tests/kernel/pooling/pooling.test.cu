// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/pooling/pooling.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <lockstep/core/bfloat16.hpp>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::values;
using lockstep_test::view;

namespace {

/// Padding would make any sum wrong.
template <class T>
void poison_padding(TwinLayout const& twin, Index width, std::vector<T>& x) {
  for (Index slot = 0; slot < twin.slots(); ++slot)
    for (Index c = 0; !twin.host().is_token(slot) && c < width; ++c)
      x[static_cast<std::size_t>(slot * width + c)] = std::numeric_limits<T>::quiet_NaN();
}

template <class T, class Check>
void for_cases(Check const& check) {
  for (auto kind : {TwinLayout::Kind::padded, TwinLayout::Kind::ragged})
    for (auto const& lengths : lockstep_test::some_lengths)
      for (Index width : {1, 31, 33, 64}) {
        TwinLayout const twin(kind, lengths);
        auto x = values<T>(twin.slots() * width, 1);
        poison_padding(twin, width, x);
        check(twin, width, x);
      }
}

/// So many ragged slots of this width that a warp writes several, of one sequence or of two.
TwinLayout many_slots() { return {TwinLayout::Kind::ragged, {8193, 0, 7, 8190}}; }
constexpr Index width_of_many_slots = 68;

}  // namespace

TEST_CASE_TEMPLATE("pooling on CUDA equals the host's, padded and ragged", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Pooling<CudaSpace>")) return;
  using Host = kernel::Pooling<HostSpace>;
  using Cuda = kernel::Pooling<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for_cases<T>([&](TwinLayout const& twin, Index width, std::vector<T> const& x) {
    auto const rows = twin.rows(), slots = twin.slots();
    std::vector<T> y(static_cast<std::size_t>(rows * width), T{-7});
    OnDevice<T> const device_x(x), device_y(y);
    for (auto reduction : {kernel::TokenReduction::mean, kernel::TokenReduction::sum}) {
      Host::reduce<T>(host, twin.host(), reduction, view(x, slots, width), view(y, rows, width));
      Cuda::reduce<T>(stream.view(), twin.device(), reduction, device_x.view(slots, width), device_y.view(rows, width));
      auto const terms = static_cast<double>(slots);  // of the sum; a mean is smaller by as much
      CHECK(lockstep_test::same_sums(device_y.values(), y,
                                     reduction == kernel::TokenReduction::sum ? terms : std::sqrt(terms)));
    }
    for (auto which : {kernel::PooledToken::first, kernel::PooledToken::last}) {
      Host::token<T>(host, twin.host(), which, view(x, slots, width), view(y, rows, width));
      Cuda::token<T>(stream.view(), twin.device(), which, device_x.view(slots, width), device_y.view(rows, width));
      CHECK(device_y.values() == y);
    }
  });
}

TEST_CASE_TEMPLATE("maxima and their gradients on CUDA have the host's bits, padded and ragged", T, float, double,
                   bfloat16) {
  if (!lockstep_test::has_gpu("kernel::Pooling<CudaSpace>")) return;
  using Real = Accumulate<T>;
  using Host = kernel::Pooling<HostSpace>;
  using Cuda = kernel::Pooling<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  auto const halves = [](std::vector<Real> x) {  // many equal values, exact in 16 bits
    for (auto& each : x) each = std::round(2 * each) / 2;
    return x;
  };
  auto const stored = [](std::vector<Real> const& x) {
    std::vector<T> out;
    for (Real each : x) out.push_back(static_cast<T>(each));
    return out;
  };
  for_cases<Real>([&](TwinLayout const& twin, Index width, std::vector<Real> x) {
    auto const rows = twin.rows(), slots = twin.slots();
    x = halves(std::move(x));
    if (slots > 40) x[static_cast<std::size_t>(12 * width)] = x.front() = std::numeric_limits<Real>::quiet_NaN();
    std::vector<Real> y(static_cast<std::size_t>(rows * width), Real{-7});
    std::vector<std::int32_t> argmax(y.size(), -7);
    OnDevice<T> const device_x(stored(x)), device_y(stored(y));
    OnDevice<std::int32_t> const device_argmax(argmax);
    Host::max<Real>(host, twin.host(), view(std::as_const(x), slots, width), view(y, rows, width),
                    view(argmax, rows, width));
    Cuda::max<T>(stream.view(), twin.device(), device_x.view(slots, width), device_y.view(rows, width),
                 device_argmax.view(rows, width));
    CHECK(device_argmax.values() == argmax);
    auto const got = device_y.values();
    for (std::size_t i = 0; i < y.size(); ++i)
      CHECK((static_cast<Real>(got[i]) == y[i] || (std::isnan(static_cast<Real>(got[i])) && std::isnan(y[i]))));
    auto const dy = halves(values<Real>(rows * width, 2));
    OnDevice<T> const device_dy(stored(dy));
    for (auto write : {Write::overwrite, Write::add}) {
      auto dx = halves(values<Real>(slots * width, 3));
      OnDevice<T> const device_dx(stored(dx));
      Host::max_backward<Real>(host, twin.host(), view(dy, rows, width), view(std::as_const(argmax), rows, width),
                               view(dx, slots, width), write);
      Cuda::max_backward<T>(stream.view(), twin.device(), device_dy.view(rows, width), device_argmax.view(rows, width),
                            device_dx.view(slots, width), write);
      CHECK(device_dx.values() == stored(dx));
    }
  });
}

TEST_CASE_TEMPLATE("pooling's gradients on CUDA have the host's bits, padded and ragged", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Pooling<CudaSpace>")) return;
  using Host = kernel::Pooling<HostSpace>;
  using Cuda = kernel::Pooling<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  auto const check = [&](TwinLayout const& twin, Index width, Write write) {
    auto const rows = twin.rows(), slots = twin.slots();
    auto const dy = values<T>(rows * width, 2);
    auto dx = values<T>(slots * width, 3);
    OnDevice<T> const device_dy(dy), device_dx(dx);
    for (auto reduction : {kernel::TokenReduction::mean, kernel::TokenReduction::sum}) {
      Host::reduce_backward<T>(host, twin.host(), reduction, view(dy, rows, width), view(dx, slots, width), write);
      Cuda::reduce_backward<T>(stream.view(), twin.device(), reduction, device_dy.view(rows, width),
                               device_dx.view(slots, width), write);
      CHECK(device_dx.values() == dx);
    }
    for (auto which : {kernel::PooledToken::first, kernel::PooledToken::last}) {
      Host::token_backward<T>(host, twin.host(), which, view(dy, rows, width), view(dx, slots, width), write);
      Cuda::token_backward<T>(stream.view(), twin.device(), which, device_dy.view(rows, width),
                              device_dx.view(slots, width), write);
      CHECK(device_dx.values() == dx);
    }
  };
  for (auto write : {Write::overwrite, Write::add}) {
    for_cases<T>([&](TwinLayout const& twin, Index width, std::vector<T> const&) { check(twin, width, write); });
    check(many_slots(), width_of_many_slots, write);
  }
}
