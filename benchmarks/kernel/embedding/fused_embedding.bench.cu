// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <lockstep/kernel/embedding/fused_embedding.cuh>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>

#include <kernel/device_roof.cuh>
#include <kernel/zipf.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr Index vocabulary = 20000, width = 128, rows = 2048, length = 128, slots = rows * length;

template <class T>
using OnDevice = memory::Buffer<T, CudaSpace>;

template <class T>
OnDevice<T> on_device(std::vector<T> const& values) {
  memory::CudaResource resource;
  OnDevice<T> out(static_cast<Index>(values.size()), resource);
  memory::check_cuda(cudaMemcpy(out.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
                     "cudaMemcpy");
  return out;
}

/// The first layer of a text classifier, with a batch far larger than the device's caches.
class Layer {
 public:
  using Kernel = kernel::FusedEmbedding<CudaSpace>;
  static constexpr double activation_bytes = double{slots * width} * sizeof(float),
                          table_bytes = double{(vocabulary + length) * width} * sizeof(float);

  explicit Layer(memory::Stream<CudaSpace> stream) : stream_(stream) {}

  void forward() { Kernel::forward<float>(stream_, inputs(), {out_.data(), {slots, width}}); }
  /// With a finished plan, as in a step, whose forward pass runs concurrently with its construction.
  void backward() {
    auto const in = inputs();
    TensorView<float const, 2, CudaSpace> const dy{out_.data(), {slots, width}};
    kernel::EmbeddingGradients<float, CudaSpace> targets;
    targets.position = {position_.data(), Write::overwrite};
    Kernel::backward<float>(stream_, in, dy, {}, targets, scratch_.data());
    Kernel::backward_table<float>(stream_, plan_, dy, {partial_.data(), {Kernel::partial_rows(slots), width}},
                                  {token_.data(), {vocabulary, width}}, Write::overwrite);
  }
  void plan() { Kernel::plan(stream_, inputs(), 0, 0, {plan_memory_.data(), {plan_memory_.size()}}, plan_); }

 private:
  [[nodiscard]] kernel::EmbeddingInputs<float, CudaSpace> inputs() const {
    kernel::EmbeddingInputs<float, CudaSpace> in;
    in.assembly.count = 1;
    in.assembly.layout = in.assembly.segments[0] =
        kernel::SequenceLayout<CudaSpace>::padded(length, {lengths_.data(), {rows}}, {places_.data(), {rows}});
    in.parts[0] = {{token_.data(), {vocabulary, width}}, true, ids_.data()};
    in.first_part[1] = 1;
    in.position = {position_.data(), {length, width}};
    return in;
  }

  memory::Stream<CudaSpace> stream_;
  OnDevice<std::int32_t> ids_ = on_device(zipf_ids(vocabulary, slots)),
                         lengths_ = on_device(std::vector<std::int32_t>(rows, static_cast<std::int32_t>(length)));
  OnDevice<Index> places_ = on_device(std::vector<Index>(rows));
  OnDevice<float> token_ = on_device(std::vector<float>(vocabulary * width, 0.5f)),
                  position_ = on_device(std::vector<float>(length * width, 0.5f)),
                  out_ = on_device(std::vector<float>(slots * width, 0.5f)),
                  partial_ = on_device(std::vector<float>(slots * width)),
                  scratch_{Kernel::scratch(inputs(), width), memory::CudaResource{}};
  OnDevice<std::int32_t> plan_memory_{Kernel::plan_elements(slots), memory::CudaResource{}};
  Kernel::Plan plan_;
};

}  // namespace

void lockstep_bench::register_benchmarks() {
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
