// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence/strided_rows.cuh>

#include "memory/device.hpp"
#include "strided_rows_cases.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

namespace {
template <class T>
struct CudaBackend {
  using Kernel = kernel::StridedRows<CudaSpace>;
  memory::CudaStream stream;

  std::vector<T> forward(std::vector<T> const& x, Index rows, Index width, Index stride, Index first) {
    OnDevice<T> const from(x), to(std::vector<T>(static_cast<std::size_t>(rows * width)));
    Kernel::forward<T>(stream.view(), from.view(rows * stride, width), stride, first, to.view(rows, width));
    return to.values();
  }
  std::vector<T> backward(std::vector<T> const& dy, Index rows, Index width, Index stride, Index first,
                          std::vector<T> const& dx, Write write) {
    OnDevice<T> const from(dy), to(dx);
    Kernel::backward<T>(stream.view(), from.view(rows, width), stride, first, to.view(rows * stride, width), write);
    return to.values();
  }
};
}  // namespace

TEST_CASE_TEMPLATE("every n-th row on CUDA, and its gradient", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::StridedRows<CudaSpace>")) return;
  CudaBackend<T> backend;
  lockstep_test::strided_rows_cases<T>(backend);
}
