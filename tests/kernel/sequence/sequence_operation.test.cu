// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence/sequence_operation.cuh>

#include <doctest/doctest.h>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::values;
using lockstep_test::view;

namespace sequence_operation_on_cuda {
namespace {

template <class Rule, class T>
void check(TwinLayout const& twin, Index width) {
  using Host = kernel::SequenceOperation<HostSpace>;
  using Cuda = kernel::SequenceOperation<CudaSpace>;
  using Towards = typename Rule::GradientY;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  auto const rows = twin.rows(), slots = twin.slots();
  auto const x = values<T>(slots * width, 1), by = values<T>(rows * width, 2), dz = values<T>(slots * width, 3);
  auto z = values<T>(slots * width, 4), gradient = values<T>(rows * width, 5);
  OnDevice<T> const device_x(x), device_by(by), device_dz(dz), device_z(z), device_gradient(gradient);
  TensorView<T const, 2, CudaSpace> second{};
  if (Towards::reads_second) second = device_x.view(slots, width);
  for (auto write : {Write::add, Write::overwrite}) {
    Host::run<Rule, T>(host, twin.host(), view(x, slots, width), view(by, rows, width), view(z, slots, width), write);
    Cuda::run<Rule, T>(stream.view(), twin.device(), device_x.view(slots, width), device_by.view(rows, width),
                       device_z.view(slots, width), write);
    CHECK(device_z.values() == z);
    Host::backward<Towards, T>(host, twin.host(), view(dz, slots, width), view(x, slots, width),
                               view(gradient, rows, width), write);
    Cuda::backward<Towards, T>(stream.view(), twin.device(), device_dz.view(slots, width), second,
                               device_gradient.view(rows, width), write);
    CHECK(lockstep_test::same_sums(device_gradient.values(), gradient, static_cast<double>(slots + 1)));
  }
}

}  // namespace

TEST_CASE_TEMPLATE(
    "sequence operations on CUDA have the host's bits, and so have their gradients' sums, padded and ragged", T, float,
    double) {
  if (!lockstep_test::has_gpu("kernel::SequenceOperation<CudaSpace>")) return;
  for (auto kind : {TwinLayout::Kind::padded, TwinLayout::Kind::ragged})
    for (auto const& lengths : lockstep_test::some_lengths)
      for (Index width : {1, 31, 64}) {
        check<kernel::Plus, T>(TwinLayout(kind, lengths), width);
        check<kernel::Times, T>(TwinLayout(kind, lengths), width);
      }
}

}  // namespace sequence_operation_on_cuda
