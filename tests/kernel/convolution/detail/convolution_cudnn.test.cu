// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution/detail/convolution_cudnn.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <lockstep/memory/cuda_graph.cuh>

#include "kernel/convolution/cuda_convolution.cuh"

using namespace lockstep;
using kernel::ConvolutionShape;
using kernel::detail::CudnnConvolution;
using lockstep_test::OnDevice;
using lockstep_test::values;

TEST_CASE("convolutions by cuDNN equal the host's within rounding") {
  if (!lockstep_test::has_gpu("convolutions by cuDNN")) return;
  cuda_convolution::check_beside_host<float>();
}

TEST_CASE("cuDNN serves float; double uses im2col GEMMs") {
  using Cuda = kernel::Convolution<CudaSpace>;
  static_assert(std::is_same_v<Cuda::Plans<float>, CudnnConvolution>);
  static_assert(std::is_same_v<Cuda::Plans<double>, kernel::detail::UnplannedConvolution>);
}

TEST_CASE("an error names the call, the shape and cuDNN's reason") {
  ConvolutionShape const s{.rows = 0, .inputs = 3, .outputs = 4, .extent = {1, 5, 6}, .kernel = {1, 3, 2}};
  kernel::detail::CudnnPlan const plan(nullptr, s, kernel::detail::ConvolutionPass::forward);
  CHECK_NOTHROW(plan.check(CUDNN_STATUS_SUCCESS, "cudnnConvolutionForward"));
  CHECK_THROWS_WITH_AS(plan.check(CUDNN_STATUS_NOT_SUPPORTED, "cudnnConvolutionForward"),
                       "Convolution: cudnnConvolutionForward refuses 0 samples, 3 to 4 channels in 1 groups, extent "
                       "[1, 5, 6], kernel [1, 3, 2], stride [1, 1, 1], padding [0, 0, 0], dilation [1, 1, 1] "
                       "(CUDNN_STATUS_NOT_SUPPORTED); built without lockstep::cudnn it is computed without cuDNN",
                       CudaError);
}

TEST_CASE("missing cuDNN libraries are reported with a remedy") {
  CHECK_NOTHROW(kernel::detail::check_cudnn(CUDNN_STATUS_SUCCESS, "cudnnCreate"));
  CHECK_THROWS_WITH_AS(kernel::detail::check_cudnn(CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, "cudnnCreate"),
                       doctest::Contains("; libcudnn.so.9 needs the libraries libcudnn_*.so.9 of its own version"),
                       CudaError);
}

TEST_CASE("a pass that cuDNN refuses at execution has no algorithm from then on") {
  ConvolutionShape const s{.rows = 0, .inputs = 3, .outputs = 4, .extent = {1, 5, 6}, .kernel = {1, 3, 2}};
  kernel::detail::CudnnPlan plan(nullptr, s, kernel::detail::ConvolutionPass::forward);
  CHECK(plan.runs(CUDNN_STATUS_SUCCESS, "cudnnConvolutionForward"));
  CHECK_FALSE(plan.runs(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "cudnnConvolutionForward"));
  CHECK_FALSE(plan.has_algorithm());
  CHECK_THROWS_AS(static_cast<void>(plan.runs(CUDNN_STATUS_BAD_PARAM, "cudnnConvolutionForward")), CudaError);
}

TEST_CASE("a planned pass can be recorded, and gives equal bits again") {
  if (!lockstep_test::has_gpu("convolutions by cuDNN")) return;
  memory::CudaStream const stream;
  CudnnConvolution plans;
  CudnnConvolution::Scratch scratch;
  ConvolutionShape const s{.rows = 3, .inputs = 4, .outputs = 2, .extent = {1, 5, 6}, .kernel = {1, 3, 2}};
  auto const in = s.rows * s.input_size(), out = s.rows * s.output_size(), taps = s.weight_size();
  OnDevice<float> const x(values<float>(in, 1)), weight(values<float>(taps, 2)), dy(values<float>(out, 3));
  OnDevice<float> const y(values<float>(out, 4)), dx(values<float>(in, 5)), dweight(values<float>(taps, 6));
  auto const step = [&] {
    auto const view = stream.view();
    return plans.forward(view, s, x.view(in).data, weight.view(taps).data, nullptr, y.view(out).data, scratch) &&
           plans.backward_data(view, s, dy.view(out).data, weight.view(taps).data, dx.view(in).data, Write::overwrite,
                               scratch) &&
           plans.backward_weight(view, s, dy.view(out).data, x.view(in).data, dweight.view(taps).data, Write::overwrite,
                                 scratch);
  };
  REQUIRE(step());
  REQUIRE(step());  // scratch is one chunk now
  auto const first_y = y.values(), first_dx = dx.values(), first_dweight = dweight.values();
  auto const moves = stream.view().memory_version();
  memory::CudaGraph const graph(stream.view(), [&] { REQUIRE(step()); });
  for (auto const* written : {&y, &dx, &dweight}) {
    auto const view = written->view(static_cast<Index>(written->values().size()));
    memory::check_cuda(
        cudaMemsetAsync(view.data, 0xff, static_cast<std::size_t>(view.size()) * sizeof(float), stream.view().get()),
        "memset");
  }
  graph.launch(stream.view());
  CHECK(y.values() == first_y);
  CHECK(dx.values() == first_dx);
  CHECK(dweight.values() == first_dweight);
  CHECK(stream.view().memory_version() == moves);
}

TEST_CASE("plans of the least recently used shapes are replaced") {
  if (!lockstep_test::has_gpu("convolutions by cuDNN")) return;
  memory::CudaStream const stream;
  CudnnConvolution plans;
  CudnnConvolution::Scratch scratch;
  std::vector<float> const weight{2, -1, 3, 5}, bias{7};
  OnDevice<float> const device_weight(weight), device_bias(bias);
  for (Index rows = 1; rows <= 40; ++rows) {
    ConvolutionShape const s{.rows = rows, .inputs = 2, .outputs = 1, .extent = {1, 1, 3}, .kernel = {1, 1, 2}};
    auto const x = values<float>(rows * 6, 1);
    OnDevice<float> const device_x(x), device_y(std::vector<float>(static_cast<std::size_t>(rows) * 2));
    REQUIRE(plans.forward(stream.view(), s, device_x.view(rows * 6).data, device_weight.view(4).data,
                          device_bias.view(1).data, device_y.view(rows * 2).data, scratch));
    auto const y = device_y.values();
    for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r)
      for (std::size_t p = 0; p < 2; ++p) {
        auto const* const at = x.data() + r * 6 + p * 2;
        double const expected = 7 + 2. * at[0] - 1. * at[2] + 3. * at[1] + 5. * at[3];
        CHECK(std::abs(y[r * 2 + p] - expected) <= 1e-5);  // sums of five numbers below 8, rounded to float
      }
  }
}

TEST_CASE("unsupported and unnecessary cases of cuDNN use im2col GEMMs") {
  if (!lockstep_test::has_gpu("convolutions by cuDNN")) return;
  memory::CudaStream const stream;
  CudnnConvolution plans;
  CudnnConvolution::Scratch scratch;
  for (Index rows : {Index{0}, Index{1} << 31}) {
    ConvolutionShape const s{.rows = rows};
    CHECK_FALSE(plans.forward(stream.view(), s, nullptr, nullptr, nullptr, nullptr, scratch));
    CHECK_FALSE(plans.backward_data(stream.view(), s, nullptr, nullptr, nullptr, Write::overwrite, scratch));
    CHECK_FALSE(plans.backward_weight(stream.view(), s, nullptr, nullptr, nullptr, Write::overwrite, scratch));
  }
  ConvolutionShape const far{.rows = 1, .stride = {1, 1, Index{1} << 32}, .padding = {0, 0, Index{1} << 31}};
  CHECK_FALSE(plans.forward(stream.view(), far, nullptr, nullptr, nullptr, nullptr, scratch));
  ConvolutionShape const uneven{
      .rows = 1, .extent = {1, 1, 8}, .kernel = {1, 1, 3}, .padding = {0, 0, 2}, .padding_after = {0, 0, 0}};
  CHECK_FALSE(plans.forward(stream.view(), uneven, nullptr, nullptr, nullptr, nullptr, scratch));
  CHECK(scratch.allocations() == 0);
}

TEST_CASE("cuDNN gets groups and dilation") {
  if (!lockstep_test::has_gpu("convolutions by cuDNN")) return;
  memory::CudaStream const stream;
  CudnnConvolution plans;
  CudnnConvolution::Scratch scratch;
  ConvolutionShape const s{.rows = 1,
                           .inputs = 2,
                           .outputs = 2,
                           .extent = {1, 1, 3},
                           .kernel = {1, 1, 2},
                           .dilation = {1, 1, 2},
                           .groups = 2};
  OnDevice<float> const x(std::vector<float>{1, 2, 3, 4, 5, 6}), weight(std::vector<float>{10, 100, 1, -1}),
      y(std::vector<float>(2));
  REQUIRE(plans.forward(stream.view(), s, x.view(6).data, weight.view(4).data, nullptr, y.view(2).data, scratch));
  CHECK(y.values() == std::vector<float>{1 * 10 + 5 * 100, 2 * 1 - 6 * 1});
}
