// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/elementwise/channel_bias.cuh>
#include <lockstep/kernel/normalization/layer_norm.cuh>

#include <kernel/device_roof.cuh>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// Norms of rows and sums of columns of one matrix.
template <class T>
void compare(DeviceRoof& roof, std::string const& type, Index rows, Index width) {
  using Kernel = kernel::LayerNorm<CudaSpace>;
  using Bias = kernel::ChannelBias<CudaSpace>;
  auto const x = roof.buffer<T>(rows * width), y = roof.buffer<T>(rows * width), dx = roof.buffer<T>(rows * width);
  auto const vectors = roof.buffer<float>(4 * width), moments = roof.buffer<float>(2 * rows),
             partial = roof.buffer<float>(Kernel::partial_elements(rows, width)),
             bias_partial = roof.buffer<float>(Bias::partial_elements(rows, width));
  auto const matrix = [&](auto const& buffer) { return TensorView<T, 2, CudaSpace>{buffer.data(), {rows, width}}; };
  auto const vector = [&](Index number) {
    return TensorView<float, 1, CudaSpace>{vectors.data() + number * width, {width}};
  };
  TensorView<float, 2, CudaSpace> const statistics{moments.data(), {rows, 2}};
  auto const bytes = static_cast<double>(rows * width) * sizeof(T);
  auto const sizes = type + ", " + std::to_string(rows) + " x " + std::to_string(width);
  roof.compare("layer norm forward, " + sizes, 2 * bytes, [&] {
    Kernel::forward<T>(roof.stream(), matrix(x), {}, vector(0), vector(1), 1e-5f, matrix(x), statistics, matrix(y));
  });
  roof.compare("layer norm of a sum forward, " + sizes, 4 * bytes, [&] {
    Kernel::forward<T>(roof.stream(), matrix(x), {matrix(y), {}}, vector(0), vector(1), 1e-5f, matrix(dx), statistics,
                       matrix(y));
  });
  roof.compare("layer norm backward, " + sizes, 3 * bytes, [&] {
    Kernel::backward<T>(roof.stream(), matrix(y), matrix(x), statistics, {}, vector(0), matrix(dx), Write::overwrite,
                        {}, Write::overwrite, vector(2), Write::overwrite, vector(3), Write::overwrite, partial.data());
  });
  roof.compare("bias gradient, " + sizes, bytes,
               [&] { Bias::backward<T>(roof.stream(), matrix(y), vector(2), Write::overwrite, bias_partial.data()); });
}

}  // namespace

int main() {
  if (!DeviceRoof::there("cuda/kernel/normalization/layer_norm")) return 0;
  DeviceRoof roof("cuda/kernel/normalization/layer_norm");
  auto const both = [&](Index rows, Index width) {
    compare<float>(roof, "float32", rows, width);
    compare<bfloat16>(roof, "bfloat16", rows, width);
  };
  for (Index width : {64, 128, 256, 768, 1024, 4096}) both((Index{1} << 27) / width, width);
  for (Index width : {128, 768, 3072}) both(4096, width);  // the activations of one step
  both(2000, 768);
}
