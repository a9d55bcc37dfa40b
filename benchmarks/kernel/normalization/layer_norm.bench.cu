// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/elementwise/channel_bias.cuh>
#include <lockstep/kernel/normalization/layer_norm.cuh>

#include <kernel/device_roof.cuh>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// Memory of norms of rows and sums of columns of one matrix.
template <class T>
struct Operands {
  using Kernel = kernel::LayerNorm<CudaSpace>;
  using Bias = kernel::ChannelBias<CudaSpace>;

  Operands(Index row_count, Index row_width) : rows(row_count), width(row_width) {}

  [[nodiscard]] TensorView<T, 2, CudaSpace> matrix(DeviceBuffer<T>& buffer) const {
    return {buffer.data(), {rows, width}};
  }
  [[nodiscard]] TensorView<float, 1, CudaSpace> vector(Index number) {
    return {vectors.data() + number * width, {width}};
  }
  [[nodiscard]] TensorView<float, 2, CudaSpace> statistics() { return {moments.data(), {rows, 2}}; }

  Index rows, width;
  DeviceBuffer<T> x{rows * width, memory::CudaResource{}}, y{rows * width, memory::CudaResource{}},
      dx{rows * width, memory::CudaResource{}};
  DeviceBuffer<float> vectors{4 * width, memory::CudaResource{}}, moments{2 * rows, memory::CudaResource{}},
      partial{Kernel::partial_elements(rows, width), memory::CudaResource{}},
      bias_partial{Bias::partial_elements(rows, width), memory::CudaResource{}};
};

template <class T>
void add_norms(std::string const& type, Index rows, Index width) {
  using Stream = memory::Stream<CudaSpace>;
  using Kernel = typename Operands<T>::Kernel;
  using Bias = typename Operands<T>::Bias;
  auto const bytes = static_cast<double>(rows * width) * sizeof(T);
  auto const add_one = [&](std::string const& what, double passes, auto run) {
    add_device_kernel("cuda/" + what + "/" + type + parts({{"rows", rows}, {"width", width}}), passes * bytes,
                      [=](Stream stream) -> DevicePass {
                        return [=, o = std::make_shared<Operands<T>>(rows, width)] { run(stream, *o); };
                      });
  };
  add_one("layer_norm/forward", 2, [](Stream stream, Operands<T>& o) {
    Kernel::template forward<T>(stream, o.matrix(o.x), {}, o.vector(0), o.vector(1), 1e-5f, o.matrix(o.x),
                                o.statistics(), o.matrix(o.y));
  });
  add_one("layer_norm/forward_of_a_sum", 4, [](Stream stream, Operands<T>& o) {
    Kernel::template forward<T>(stream, o.matrix(o.x), {o.matrix(o.y), {}}, o.vector(0), o.vector(1), 1e-5f,
                                o.matrix(o.dx), o.statistics(), o.matrix(o.y));
  });
  add_one("layer_norm/backward", 3, [](Stream stream, Operands<T>& o) {
    Kernel::template backward<T>(stream, o.matrix(o.y), o.matrix(o.x), o.statistics(), {}, o.vector(0), o.matrix(o.dx),
                                 Write::overwrite, {}, Write::overwrite, o.vector(2), Write::overwrite, o.vector(3),
                                 Write::overwrite, o.partial.data());
  });
  add_one("bias_gradient", 1, [](Stream stream, Operands<T>& o) {
    Bias::template backward<T>(stream, o.matrix(o.y), o.vector(2), Write::overwrite, o.bias_partial.data());
  });
}

}  // namespace

void register_benchmarks() {
  auto const add_both = [](Index rows, Index width) {
    add_norms<float>("float32", rows, width);
    add_norms<bfloat16>("bfloat16", rows, width);
  };
  for (Index const width : {64, 128, 256, 768, 1024, 4096}) add_both((Index{1} << 27) / width, width);
  for (Index const width : {128, 768, 3072}) add_both(4096, width);  // the activations of one step
  add_both(2000, 768);
}
