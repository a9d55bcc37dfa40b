// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence_shift.cuh>

#include <doctest/doctest.h>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::values;
using lockstep_test::view;

namespace shift_on_cuda {
namespace {

template <class T>
void check(TwinLayout const& twin, Index width) {
  using Host = kernel::SequenceShift<HostSpace>;
  using Cuda = kernel::SequenceShift<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  auto const rows = twin.rows(), slots = twin.slots();
  auto const x = values<T>(slots * width, 1), by = values<T>(rows * width, 2), dy = values<T>(slots * width, 3);
  auto y = values<T>(slots * width, 4), gradient = values<T>(rows * width, 5);
  OnDevice<T> const device_x(x), device_by(by), device_dy(dy), device_y(y), device_gradient(gradient);
  Host::run<T>(host, twin.host(), view(x, slots, width), view(by, rows, width), view(y, slots, width));
  Cuda::run<T>(stream.view(), twin.device(), device_x.view(slots, width), device_by.view(rows, width),
               device_y.view(slots, width));
  CHECK(device_y.values() == y);
  for (auto write : {Write::add, Write::overwrite}) {
    Host::backward<T>(host, twin.host(), view(dy, slots, width), view(gradient, rows, width), write);
    Cuda::backward<T>(stream.view(), twin.device(), device_dy.view(slots, width), device_gradient.view(rows, width),
                      write);
    CHECK(lockstep_test::same_sums(device_gradient.values(), gradient, static_cast<double>(slots + 1)));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("numbers added to sequences on CUDA have the host's bits, and their gradients its sums", T, float,
                   double) {
  if (!lockstep_test::has_gpu("kernel::SequenceShift<CudaSpace>")) return;
  for (auto kind : {TwinLayout::Kind::padded, TwinLayout::Kind::ragged})
    for (auto const& lengths : lockstep_test::some_lengths)
      for (Index width : {1, 31, 64}) check<T>(TwinLayout(kind, lengths), width);
}

}  // namespace shift_on_cuda
