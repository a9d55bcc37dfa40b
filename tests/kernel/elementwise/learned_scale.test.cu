// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/elementwise/learned_scale.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

namespace learned_scale_on_cuda {
namespace {

template <class T>
void check(T s, Index size) {
  using Host = kernel::LearnedScale<HostSpace>;
  using Cuda = kernel::LearnedScale<CudaSpace>;
  kernel::LearnedFactor const factor{8, std::log(8.0)};
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  auto const x = values<T>(size, 1), dy = values<T>(size, 2);
  auto y = values<T>(size, 3);
  std::vector<T> const at{s};
  std::vector<T> ds{3};
  std::vector<double> partial(static_cast<std::size_t>(Host::chunks(size)));
  OnDevice<T> const device_s(at), device_x(x), device_dy(dy), device_y(y), device_ds(ds);
  OnDevice<double> const device_partial(partial);
  for (auto write : {Write::add, Write::overwrite}) {
    Host::run<T>(host, factor, at.data(), view(x, size), view(y, size), write);
    Cuda::run<T>(stream.view(), factor, device_s.view(1).data, device_x.view(size), device_y.view(size), write);
    CHECK(device_y.values() == y);
    Host::factor_backward<T>(host, factor, at.data(), view(dy, size), view(x, size), ds.data(), write, partial.data());
    Cuda::factor_backward<T>(stream.view(), factor, device_s.view(1).data, device_dy.view(size), device_x.view(size),
                             device_ds.view(1).data, write, device_partial.view(Cuda::chunks(size)).data);
    CHECK(lockstep_test::same_sums(device_ds.values(), ds, static_cast<double>(8 * size + 3)));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("products with a learned factor on CUDA have the host's bits, and so has its gradient's sum", T,
                   float, double) {
  if (!lockstep_test::has_gpu("kernel::LearnedScale<CudaSpace>")) return;
  for (T s : {T(0), T(3)})  // their exponentials are exact
    for (Index size : {0, 1, 257, 8192, 20000}) check<T>(s, size);
}

}  // namespace learned_scale_on_cuda
