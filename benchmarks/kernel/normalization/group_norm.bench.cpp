// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <string>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/normalization/group_norm.hpp>

#include <numbers.hpp>
#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

class Layer {
 public:
  using Kernel = kernel::GroupNorm<HostSpace>;

  Layer(ThreadPool& pool, kernel::GroupNormShape const& shape) : stream_(pool), shape_(shape) {
    for (Index i = 0; i < shape.size(); ++i) x_.push_back(static_cast<float>(i * 2654435761 % 1000) / 250 - 2);
    y_ = dx_ = x_;
    weight_.resize(static_cast<std::size_t>(shape.channels), 1.5f);
    bias_ = dweight_ = dbias_ = weight_;
    mean_.resize(static_cast<std::size_t>(shape.rows * shape.channels));
    reciprocal_ = mean_;
    partial_.resize(static_cast<std::size_t>(Kernel::partial_elements(shape)));
  }
  void forward() {
    x_[0] = -x_[0];
    Kernel::forward<float>(stream_, shape_, x_.data(), 1e-5, statistics(), weight_.data(), bias_.data(),
                           kernel::Activation::none, y_.data(), partial_.data());
  }
  void backward() {
    x_[0] = -x_[0];
    Kernel::backward<float>(stream_, shape_, y_.data(), x_.data(), statistics(), weight_.data(), bias_.data(),
                            kernel::Activation::none, dx_.data(), Write::overwrite, dweight_.data(), Write::overwrite,
                            dbias_.data(), Write::overwrite, partial_.data());
  }

 private:
  [[nodiscard]] Kernel::Statistics<float> statistics() { return {mean_.data(), reciprocal_.data()}; }

  memory::Stream<HostSpace> stream_;
  kernel::GroupNormShape shape_;
  Numbers x_, y_, dx_, weight_, bias_, dweight_, dbias_, mean_, reciprocal_, partial_;
};

}  // namespace

void register_benchmarks() {
  static ThreadPool pool(1);
  for (auto const& shape : {kernel::GroupNormShape{2, 9 * 64 * 64, 32, 8}, {32, 128, 64, 8}}) {
    Shared const layer([shape] { return Layer(pool, shape); });
    auto const add_direction = [&](std::string const& direction, auto pass) {
      auto const name = "group_norm/" + direction +
                        parts({{"rows", shape.rows},
                               {"positions", shape.positions},
                               {"channels", shape.channels},
                               {"groups", shape.groups}});
      add_pass(name, layer, pass);
      add_peer(name, "pytorch",
               pytorch_kernel("group_norm_" + direction, {shape.rows, shape.positions, shape.channels, shape.groups}));
    };
    add_direction("forward", [](Layer& norm) { norm.forward(); });
    add_direction("backward", [](Layer& norm) { norm.backward(); });
  }
}
