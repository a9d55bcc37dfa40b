// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <lockstep/kernel/normalization/layer_norm.hpp>
#include <lockstep/memory/buffer.hpp>

#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

class Layer {
 public:
  using Kernel = kernel::LayerNorm<HostSpace>;

  Layer(ThreadPool& pool, Index rows, Index width)
      : stream_(pool),
        x_{fill(rows * width), {rows, width}},
        y_{fill(rows * width), {rows, width}},
        dx_{fill(rows * width), {rows, width}},
        moments_{fill(2 * rows), {rows, 2}},
        weight_{fill(width), {width}},
        bias_{fill(width), {width}},
        partial_(fill(Kernel::partial_elements(rows, width))) {}

  void forward() { Kernel::forward<float>(stream_, x_, {}, weight_, bias_, 1e-5F, x_, moments_, y_); }
  /// Lower bound of forward: as many bytes read and written.
  void copy() {
    std::copy_n(x_.data, x_.size(), y_.data);
    asm volatile("" ::"r"(y_.data) : "memory");
  }
  void backward() {
    Kernel::backward<float>(stream_, y_, x_, moments_, {}, weight_, dx_, Write::overwrite, {}, Write::overwrite,
                            weight_gradient(), Write::overwrite, bias_gradient(), Write::overwrite, partial_);
  }

 private:
  using Matrix = TensorView<float, 2, HostSpace>;
  using Vector = TensorView<float, 1, HostSpace>;

  float* fill(Index count) {
    auto& values = memory_.emplace_back(count);
    for (Index i = 0; i < count; ++i) values[i] = static_cast<float>(i * 2654435761 % 1000) / 250 - 2;
    return values.data();
  }
  Vector weight_gradient() { return {gradients_.data(), weight_.extent}; }
  Vector bias_gradient() { return {gradients_.data() + weight_.size(), weight_.extent}; }

  memory::Stream<HostSpace> stream_;
  std::vector<memory::Buffer<float>> memory_;
  Matrix x_, y_, dx_, moments_;
  Vector weight_, bias_;
  float* partial_;
  std::vector<float> gradients_ = std::vector<float>(static_cast<std::size_t>(2 * weight_.size()));
};

}  // namespace

void register_benchmarks() {
  static ThreadPool pool;
  for (auto const& [rows, width] : {std::pair<Index, Index>{4096, 128}, {4096, 768}}) {
    Shared const layer([rows = rows, width = width] { return Layer(pool, rows, width); });
    auto const add_direction = [&, rows = rows, width = width](std::string const& direction, auto pass) {
      auto const name = "layer_norm/" + direction + parts({{"rows", rows}, {"width", width}});
      add_pass(name, layer, pass);
      add_peer(name, "pytorch", pytorch_kernel("layer_norm_" + direction, {rows, width}));
      return name;
    };
    auto const forward = add_direction("forward", [](Layer& norm) { norm.forward(); });
    add_pass(forward + "/peer:roof", layer, [](Layer& norm) { norm.copy(); });
    add_direction("backward", [](Layer& norm) { norm.backward(); });
  }
}
