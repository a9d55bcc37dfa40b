// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/normalization/batch_norm.hpp>

#include <numbers.hpp>
#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

/// Images of `side` x `side` positions.
struct Size {
  Index rows, side, channels;

  [[nodiscard]] Index positions() const noexcept { return rows * side * side; }
};

class Layer {
 public:
  using Kernel = kernel::BatchNorm<HostSpace>;

  Layer(ThreadPool& pool, Size const& size) : stream_(pool), extent_{size.positions(), size.channels} {
    for (Index i = 0; i < extent_[0] * extent_[1]; ++i)
      x_.push_back(static_cast<float>(i * 2654435761 % 1000) / 250 - 2);
    y_ = dx_ = x_;
    weight_.resize(static_cast<std::size_t>(size.channels), 1.5f);
    bias_ = dweight_ = dbias_ = mean_ = reciprocal_ = scale_ = average_ = variance_ = weight_;
    partial_.resize(static_cast<std::size_t>(Kernel::partial_elements(extent_[0], extent_[1])));
  }
  void forward() {
    x_[0] = -x_[0];
    Kernel::measure<float>(stream_, matrix(x_), vector(weight_), 1e-5, 0.1, {vector(average_), vector(variance_)},
                           statistics(), partial_.data());
    Kernel::forward<float>(stream_, matrix(x_), statistics(), vector(bias_), kernel::Activation::none, matrix(y_));
  }
  void backward() {
    x_[0] = -x_[0];
    Kernel::backward<float>(stream_, matrix(y_), matrix(x_), statistics(), vector(bias_), kernel::Activation::none,
                            matrix(dx_), Write::overwrite, vector(dweight_), Write::overwrite, vector(dbias_),
                            Write::overwrite, partial_.data());
  }

 private:
  [[nodiscard]] TensorView<float, 2, HostSpace> matrix(Numbers& of) const { return {of.data(), extent_}; }
  [[nodiscard]] TensorView<float, 1, HostSpace> vector(Numbers& of) const { return {of.data(), {extent_[1]}}; }
  [[nodiscard]] Kernel::Statistics<float> statistics() { return {vector(mean_), vector(reciprocal_), vector(scale_)}; }

  memory::Stream<HostSpace> stream_;
  Extents<2> extent_;
  Numbers x_, y_, dx_, weight_, bias_, dweight_, dbias_, mean_, reciprocal_, scale_, average_, variance_, partial_;
};

}  // namespace

void register_benchmarks() {
  static ThreadPool pool(1);
  for (auto const& size : {Size{2, 192, 32}, {8, 28, 128}, {32, 7, 512}}) {
    Shared const layer([size] { return Layer(pool, size); });
    auto const add_direction = [&](std::string const& direction, auto pass) {
      auto const name =
          "batch_norm/" + direction + parts({{"rows", size.rows}, {"side", size.side}, {"channels", size.channels}});
      add_pass(name, layer, pass);
      add_peer(name, "pytorch", pytorch_kernel("batch_norm_" + direction, {size.rows, size.side, size.channels}));
    };
    add_direction("forward", [](Layer& norm) { norm.forward(); });
    add_direction("backward", [](Layer& norm) { norm.backward(); });
  }
}
