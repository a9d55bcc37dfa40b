// SPDX-License-Identifier: Apache-2.0
// GEMMs of linear layers in typical models, with this build's GEMM. bfloat16: ours rounds float factors as bfloat16
// models do, if the processor supports bfloat16; PyTorch's tensors are bfloat16.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/kernel/linear/linear.hpp>
#include <lockstep/memory/buffer.hpp>

#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

using Kernel = kernel::Linear<HostSpace>;

/// x [m, k], weight [n, k], y [m, n] and the GEMMs of a linear layer without bias.
class Layer {
 public:
  Layer(memory::Stream<HostSpace> stream, Index m, Index n, Index k)
      : stream_(stream),
        x_(fill(m, k)),
        weight_(fill(n, k)),
        y_(fill(m, n)),
        partial_(fill(1, Kernel::partial_elements(stream_, m, k, n))) {}

  void forward() { Kernel::forward<float>(stream_, x_, weight_, {}, y_); }
  void input_gradient() { kernel::Gemm<HostSpace>::multiply<float>(stream_, 1, y_, no, weight_, no, 0, x_); }
  void weight_gradient() {
    Kernel::backward<float>(stream_, y_, x_, weight_, {}, {}, Write::overwrite, weight_, Write::overwrite, {},
                            Write::overwrite, partial_.data);
  }

 private:
  using Matrix = TensorView<float, 2, HostSpace>;
  static constexpr auto no = kernel::Transpose::no;

  Matrix fill(Index rows, Index columns) {
    auto& values = memory_.emplace_back(rows * columns);
    std::ranges::fill(values.span(), 1e-3F);
    return {values.data(), {rows, columns}};
  }

  memory::Stream<HostSpace> stream_;
  std::vector<memory::Buffer<float>> memory_;
  Matrix x_, weight_, y_, partial_;
};

}  // namespace

void register_benchmarks() {
  static ThreadPool pool;
  for (auto const& [n, k] :
       {std::pair<Index, Index>{128, 128}, {256, 128}, {128, 256}, {256, 256}, {512, 256}, {256, 512}}) {
    Index const m = 4096;
    for (bool const low : {false, true}) {
      if (low && !multiplies_bfloat16()) continue;
      Shared const layer([=, n = n, k = k] {
        return Layer(memory::Stream<HostSpace>(pool, low ? &kernel::bfloat16_products : nullptr), m, n, k);
      });
      auto const add_product = [&, n = n, k = k](std::string const& product, auto pass) {
        auto const name =
            "gemm/" + product + (low ? "/bfloat16" : "/float32") + parts({{"rows", m}, {"inputs", k}, {"outputs", n}});
        add_pass(name, layer, pass);
        add_peer(name, "pytorch", pytorch_kernel("linear_" + product, {m, n, k, low}));
      };
      add_product("forward", [](Layer& linear) { linear.forward(); });
      add_product("input_gradient", [](Layer& linear) { linear.input_gradient(); });
      add_product("weight_gradient", [](Layer& linear) { linear.weight_gradient(); });
    }
  }
}
