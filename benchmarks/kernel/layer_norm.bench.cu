// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <lockstep/kernel/layer_norm.cuh>

#include <kernel/device_roof.cuh>

using namespace lockstep;
using namespace lockstep_bench;

int main() {
  if (!DeviceRoof::there("cuda/kernel/layer_norm")) return 0;
  DeviceRoof roof("cuda/kernel/layer_norm");
  using Kernel = kernel::LayerNorm<CudaSpace>;
  for (Index width : {Index{128}, Index{256}, Index{768}}) {
    Index const rows = (Index{1} << 27) / width;
    auto const x = roof.buffer<float>(rows * width), y = roof.buffer<float>(rows * width),
               dx = roof.buffer<float>(rows * width), vectors = roof.buffer<float>(4 * width),
               moments = roof.buffer<float>(2 * rows),
               partial = roof.buffer<float>(Kernel::partial_elements(rows, width));
    auto const matrix = [&](auto const& buffer) {
      return TensorView<float, 2, CudaSpace>{buffer.data(), {rows, width}};
    };
    auto const vector = [&](Index number) {
      return TensorView<float, 1, CudaSpace>{vectors.data() + number * width, {width}};
    };
    TensorView<float, 2, CudaSpace> const statistics{moments.data(), {rows, 2}};
    auto const bytes = static_cast<double>(rows * width) * sizeof(float);
    auto const sizes = std::to_string(rows) + " x " + std::to_string(width);
    roof.compare("layer norm forward, float32, " + sizes, 2 * bytes, [&] {
      Kernel::forward<float>(roof.stream(), matrix(x), {}, vector(0), vector(1), 1e-5f, matrix(x), statistics,
                             matrix(y));
    });
    roof.compare("layer norm backward, float32, " + sizes, 3 * bytes, [&] {
      Kernel::backward<float>(roof.stream(), matrix(y), matrix(x), statistics, {}, vector(0), matrix(dx),
                              Write::overwrite, {}, Write::overwrite, vector(2), Write::overwrite, vector(3),
                              Write::overwrite, partial.data());
    });
  }
}
