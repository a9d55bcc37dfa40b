// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/cuda_graph.cuh>

#include <doctest/doctest.h>

#include <stdexcept>

#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

namespace {

/// to += *by + constant.
__global__ void add(double* to, double const* by, double constant) { *to += *by + constant; }

void queue_add(memory::Stream<CudaSpace> stream, double* to, double const* by, double constant) {
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = stream.get();
  memory::check_cuda(cudaLaunchKernelEx(&config, add, to, by, constant), "add");
}

}  // namespace

TEST_CASE("recorded work is not executed, and then as often as requested, with recorded arguments and current memory") {
  if (!lockstep_test::has_gpu("memory::CudaGraph")) return;
  OnDevice<double> const to(std::vector<double>{0}), by(std::vector<double>{10});
  memory::CudaStream const stream;
  double constant = 0.5;
  memory::CudaGraph graph(stream.view(), [&] {
    queue_add(stream.view(), to.view(1).data, by.view(1).data, constant);
    queue_add(stream.view(), to.view(1).data, by.view(1).data, 0);
  });
  constant = 7;
  CHECK(graph);
  CHECK(to.values()[0] == 0);
  graph.launch(stream.view());
  CHECK(to.values()[0] == 20.5);
  queue_add(stream.view(), by.view(1).data, by.view(1).data, 0);  // 20
  auto const moved = std::move(graph);
  moved.launch(stream.view());
  moved.launch(stream.view());
  CHECK(to.values()[0] == 20.5 + 2 * 40.5);
  CHECK_FALSE(memory::CudaGraph());
}

TEST_CASE("branches are recorded with their stream, and replayed in parallel to it") {
  if (!lockstep_test::has_gpu("memory::CudaGraph")) return;
  OnDevice<double> const to(std::vector<double>{0}), by(std::vector<double>{10}), other(std::vector<double>{0});
  memory::CudaStream const stream;
  auto const work = [&](bool joins) {
    queue_add(stream.view(), by.view(1).data, by.view(1).data, 1);  // 21, 43, 87
    auto const branch = stream.view().fork();
    for (int i = 0; i < 3; ++i) queue_add(branch, other.view(1).data, by.view(1).data, 0);
    if (joins) stream.view().join();
    queue_add(stream.view(), to.view(1).data, other.view(1).data, 0);
  };
  memory::CudaGraph const graph(stream.view(), [&] { work(true); });
  CHECK(by.values()[0] == 10);
  for (int i = 0; i < 3; ++i) graph.launch(stream.view());
  CHECK(to.values()[0] == 3 * (21 + (21 + 43) + (21 + 43 + 87)));
  CHECK_THROWS_WITH_AS(static_cast<void>(memory::CudaGraph(stream.view(), [&] { work(false); })),
                       doctest::Contains("cudaStreamEndCapture"), CudaError);
  stream.view().join();  // it is no longer recorded
  work(true);
  CHECK(other.values()[0] == 3 * (21 + 43 + 87 + 175));
}

TEST_CASE("an exception ends the recording, and the stream remains usable") {
  if (!lockstep_test::has_gpu("memory::CudaGraph")) return;
  OnDevice<double> const to(std::vector<double>{0}), by(std::vector<double>{10});
  memory::CudaStream const stream;
  auto const queue = [&] { queue_add(stream.view(), to.view(1).data, by.view(1).data, 0); };
  auto const fail = [&] {
    queue();
    throw std::runtime_error("no");
  };
  CHECK_THROWS_WITH_AS(static_cast<void>(memory::CudaGraph(stream.view(), fail)), "no", std::runtime_error);
  queue();
  CHECK(to.values()[0] == 10);
}

TEST_CASE("recording errors are reported") {
  if (!lockstep_test::has_gpu("memory::CudaGraph")) return;
  OnDevice<double> const to(std::vector<double>{0});
  memory::CudaStream const stream;
  CHECK_THROWS_WITH_AS(static_cast<void>(memory::CudaGraph(stream.view(), [&] { stream.view().synchronize(); })),
                       doctest::Contains("cudaStreamSynchronize: operation not permitted when stream is capturing"),
                       CudaError);
  CHECK_THROWS_WITH_AS(static_cast<void>(memory::CudaGraph(
                           stream.view(), [] { static_cast<void>(memory::CudaResource{}.allocate(8)); })),
                       doctest::Contains("cudaMalloc of 8 bytes"), CudaError);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(memory::CudaGraph(stream.view(), [] { static_cast<void>(cudaDeviceSynchronize()); })),
      doctest::Contains("cudaStreamEndCapture"), CudaError);
  CHECK(cudaPeekAtLastError() == cudaSuccess);  // no error is left for later calls
  stream.view().synchronize();
}
