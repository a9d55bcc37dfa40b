// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/kernel/embedding/fused_embedding.cuh>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>

#include <kernel/zipf.hpp>
#include <ratios.hpp>

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

  void forward() { Kernel::forward<float>(stream_.view(), inputs(), {out_.data(), {slots, width}}); }
  /// With a finished plan, as in a step, whose forward pass runs concurrently with its construction.
  void backward() {
    auto const in = inputs();
    TensorView<float const, 2, CudaSpace> const dy{out_.data(), {slots, width}};
    kernel::EmbeddingGradients<float, CudaSpace> targets;
    targets.position = {position_.data(), Write::overwrite};
    Kernel::backward<float>(stream_.view(), in, dy, {}, targets, scratch_.data());
    Kernel::backward_table<float>(stream_.view(), plan_, dy, {partial_.data(), {Kernel::partial_rows(slots), width}},
                                  {token_.data(), {vocabulary, width}}, Write::overwrite);
  }
  void plan() { Kernel::plan(stream_.view(), inputs(), 0, 0, {plan_memory_.data(), {plan_memory_.size()}}, plan_); }
  /// Limit of the device's memory: reads and writes the activations once.
  void copy() {
    memory::check_cuda(cudaMemcpyAsync(copy_.data(), out_.data(), static_cast<std::size_t>(activation_bytes),
                                       cudaMemcpyDeviceToDevice, stream_.view().get()),
                       "cudaMemcpyAsync");
  }
  /// Seconds of one call.
  double seconds(std::function<void()> const& call) {
    constexpr int calls = 20;
    stream_.view().synchronize();
    auto const began = Clock::seconds();
    for (int i = 0; i < calls; ++i) call();
    stream_.view().synchronize();
    return (Clock::seconds() - began) / calls;
  }

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

  memory::CudaStream stream_;
  OnDevice<std::int32_t> ids_ = on_device(zipf_ids(vocabulary, slots)),
                         lengths_ = on_device(std::vector<std::int32_t>(rows, static_cast<std::int32_t>(length)));
  OnDevice<Index> places_ = on_device(std::vector<Index>(rows));
  OnDevice<float> token_ = on_device(std::vector<float>(vocabulary * width, 0.5f)),
                  position_ = on_device(std::vector<float>(length * width, 0.5f)),
                  out_ = on_device(std::vector<float>(slots * width, 0.5f)),
                  copy_ = on_device(std::vector<float>(slots * width)),
                  partial_ = on_device(std::vector<float>(slots * width)),
                  scratch_{Kernel::scratch(inputs(), width), memory::CudaResource{}};
  OnDevice<std::int32_t> plan_memory_{Kernel::plan_elements(slots), memory::CudaResource{}};
  Kernel::Plan plan_;
};

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: cuda/kernel/embedding/fused_embedding: no GPU answers");
    return 0;
  }
  Ratios ratios("cuda/kernel/embedding/fused_embedding");
  Layer layer;
  // Minimum of transferred bytes: forward writes the activations, backward reads them, and both read or write the
  // tables.
  auto const compare = [&](std::string const& direction, std::function<void()> const& pass) {
    auto const copy = [&] { layer.copy(); };
    layer.seconds(pass);
    layer.seconds(copy);
    std::vector<double> shares;
    for (int round = 0; round < 9; ++round) {
      auto const ours = (Layer::activation_bytes + Layer::table_bytes) / layer.seconds(pass);
      auto const roof = 2 * Layer::activation_bytes / layer.seconds(copy);
      shares.push_back(ours / roof);
    }
    ratios.report("embedding " + direction + ", float32, V=20000, D=128, zipf, 262144 tokens", "roof",
                  Spread::of(shares), "9 rounds, bytes per second over those of a copy");
  };
  compare("forward", [&] { layer.forward(); });
  layer.plan();
  compare("backward", [&] { layer.backward(); });
  compare("plan and backward", [&] { layer.plan(), layer.backward(); });
}
