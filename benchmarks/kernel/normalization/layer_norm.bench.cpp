// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <lockstep/kernel/normalization/layer_norm.hpp>
#include <lockstep/memory/buffer.hpp>

#include <python_peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>

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

int main() {
  Ratios ratios("kernel/normalization/layer_norm");
  ThreadPool pool;
  for (auto const& [rows, width] : {std::pair<Index, Index>{4096, 128}, {4096, 768}}) {
    Layer layer(pool, rows, width);
    auto const sizes = std::to_string(rows) + " x " + std::to_string(width);
    auto const compare = [&, rows = rows, width = width](std::string const& direction, auto pass) {
      if (auto peer =
              python_peer("kernels.py", {"layer_norm_" + direction, std::to_string(rows), std::to_string(width)}))
        ratios.compare(
            "layer norm " + direction + ", float32, " + sizes + ", 1 thread", "pytorch",
            [&](double duration) { return rate(duration, Time::processor, pass); }, std::ref(*peer));
    };
    compare("forward", [&] { layer.forward(); });
    ratios.compare(
        "layer norm forward, float32, " + sizes + ", 1 thread", "roof",
        [&](double duration) { return rate(duration, Time::processor, [&] { layer.forward(); }); },
        [&](double duration) { return rate(duration, Time::processor, [&] { layer.copy(); }); });
    compare("backward", [&] { layer.backward(); });
  }
}
