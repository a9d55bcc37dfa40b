// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <string>

#include <thrust/device_vector.h>

#include <lockstep/kernel/embedding/fused_embedding.cuh>
#include <lockstep/memory/cuda.cuh>

#include <kernel/device_roof.cuh>
#include <kernel/zipf.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr Index vocabulary = 20000, width = 128, rows = 2048, length = 128, slots = rows * length;

/// The first layer of a text classifier, with a batch far larger than the device's caches.
class Layer {
 public:
  using Kernel = kernel::FusedEmbedding<CudaSpace>;
  static constexpr double activation_bytes = double{slots * width} * sizeof(float),
                          table_bytes = double{(vocabulary + length) * width} * sizeof(float);

  explicit Layer(memory::Stream<CudaSpace> stream)
      : stream_(stream),
        ids_(zipf_ids(vocabulary, slots)),
        lengths_(rows, length),
        positions_(rows),
        token_(vocabulary * width, 0.5f),
        position_(length * width, 0.5f),
        out_(slots * width, 0.5f),
        partial_(slots * width),
        scratch_(Kernel::scratch(inputs(), width)),
        plan_memory_(Kernel::plan_elements(slots)) {}

  void forward() { Kernel::forward<float>(stream_, inputs(), {data(out_), {slots, width}}); }
  /// With a finished plan, as in a step, whose forward pass runs concurrently with its construction.
  void backward() {
    auto const in = inputs();
    TensorView<float const, 2, CudaSpace> const dy{data(out_), {slots, width}};
    kernel::EmbeddingGradients<float, CudaSpace> targets;
    targets.position = {data(position_), Write::overwrite};
    Kernel::backward<float>(stream_, in, dy, {}, targets, data(scratch_));
    Kernel::backward_table<float>(stream_, plan_, dy, {data(partial_), {Kernel::partial_rows(slots), width}},
                                  {data(token_), {vocabulary, width}}, Write::overwrite);
  }
  void plan() { Kernel::plan(stream_, inputs(), 0, 0, {data(plan_memory_), {Kernel::plan_elements(slots)}}, plan_); }

 private:
  template <class T>
  [[nodiscard]] static T* data(thrust::device_vector<T>& vector) {
    return vector.data().get();
  }
  [[nodiscard]] kernel::EmbeddingInputs<float, CudaSpace> inputs() {
    kernel::EmbeddingInputs<float, CudaSpace> in;
    in.assembly.count = 1;
    in.assembly.layout = in.assembly.segments[0] =
        kernel::SequenceLayout<CudaSpace>::padded(length, {data(lengths_), {rows}}, {data(positions_), {rows}});
    in.parts[0] = {{data(token_), {vocabulary, width}}, true, data(ids_)};
    in.first_part[1] = 1;
    in.position = {data(position_), {length, width}};
    return in;
  }

  memory::Stream<CudaSpace> stream_;
  thrust::device_vector<std::int32_t> ids_, lengths_;
  thrust::device_vector<Index> positions_;
  thrust::device_vector<float> token_, position_, out_, partial_, scratch_;
  thrust::device_vector<std::int32_t> plan_memory_;
  Kernel::Plan plan_;
};

}  // namespace

void register_benchmarks() {
  // Minimum of transferred bytes: forward writes the activations, backward reads them, and both read or write the
  // tables.
  auto const add_direction = [](std::string const& direction, auto pass) {
    add_device_kernel("cuda/embedding/" + direction + "/ids:zipf/tokens:" + std::to_string(slots),
                      Layer::activation_bytes + Layer::table_bytes,
                      [pass](memory::Stream<CudaSpace> stream) -> DevicePass {
                        auto const layer = std::make_shared<Layer>(stream);
                        layer->plan();
                        return [layer, pass] { pass(*layer); };
                      });
  };
  add_direction("forward", [](Layer& layer) { layer.forward(); });
  add_direction("backward", [](Layer& layer) { layer.backward(); });
  add_direction("plan_and_backward", [](Layer& layer) {
    layer.plan();
    layer.backward();
  });
}
