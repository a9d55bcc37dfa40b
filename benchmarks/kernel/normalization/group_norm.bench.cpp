// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/normalization/group_norm.hpp>

#include <python_peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>

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
    Kernel::measure<float>(stream_, shape_, x_.data(), 1e-5, statistics(), partial_.data());
    Kernel::forward<float>(stream_, shape_, x_.data(), statistics(), weight_.data(), bias_.data(),
                           kernel::Activation::none, y_.data());
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
  std::vector<float> x_, y_, dx_, weight_, bias_, dweight_, dbias_, mean_, reciprocal_, partial_;
};

}  // namespace

int main() {
  Ratios ratios("kernel/normalization/group_norm");
  ThreadPool pool(1);
  for (auto const& shape : {kernel::GroupNormShape{2, 9 * 64 * 64, 32, 8}, {32, 128, 64, 8}}) {
    Layer layer(pool, shape);
    auto const number = [](Index n) { return std::to_string(n); };
    auto const compare = [&](std::string const& direction, auto pass) {
      if (auto peer = python_peer("kernels.py", {"group_norm_" + direction, number(shape.rows), number(shape.positions),
                                                 number(shape.channels), number(shape.groups)}))
        ratios.compare(
            "group norm " + direction + ", " + number(shape.rows) + " x " + number(shape.positions) + " x " +
                number(shape.channels) + " in " + number(shape.groups) + " groups, 1 thread",
            "pytorch", [&](double duration) { return rate(duration, Time::processor, pass); }, std::ref(*peer));
    };
    compare("forward", [&] { layer.forward(); });
    compare("backward", [&] { layer.backward(); });
  }
}
