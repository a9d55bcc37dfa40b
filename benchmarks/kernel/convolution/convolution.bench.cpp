// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/convolution/convolution.hpp>

#include <python_peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

using Kernel = kernel::Convolution<HostSpace>;

/// All three passes of a convolution by one backend.
template <class Plans>
class Layer {
 public:
  Layer(ThreadPool& pool, kernel::ConvolutionShape const& shape) : stream_(pool), shape_(shape) {
    auto const numbers = [](Index count) {
      std::vector<float> all;
      for (Index i = 0; i < count; ++i) all.push_back(static_cast<float>(i * 2654435761 % 1000) / 250 - 2);
      return all;
    };
    x_ = numbers(shape.rows * shape.input_size());
    weight_ = numbers(shape.weight_size());
    dy_ = numbers(shape.rows * shape.output_size());
    bias_ = numbers(shape.outputs);
    dx_ = x_;
    dweight_ = weight_;
    y_ = dy_;
    dbias_ = bias_;
  }
  void forward() {
    x_[0] = -x_[0];
    Kernel::forward<float>(stream_, shape_, view(x_), view(weight_), view(bias_), mutable_view(y_), plans_, scratch_);
  }
  void backward() {
    x_[0] = -x_[0];
    Kernel::backward_data<float>(stream_, shape_, view(dy_), view(weight_), mutable_view(dx_), Write::overwrite, plans_,
                                 scratch_);
    Kernel::backward_weight<float>(stream_, shape_, view(dy_), view(x_), mutable_view(dweight_), Write::overwrite,
                                   mutable_view(dbias_), Write::overwrite, plans_, scratch_);
  }

 private:
  static TensorView<float const, 1, HostSpace> view(std::vector<float> const& v) { return {v.data(), {std::ssize(v)}}; }
  static TensorView<float, 1, HostSpace> mutable_view(std::vector<float>& v) { return {v.data(), {std::ssize(v)}}; }

  memory::Stream<HostSpace> stream_;
  kernel::ConvolutionShape shape_;
  std::vector<float> x_, weight_, bias_, dy_, y_, dx_, dweight_, dbias_;
  Plans plans_;
  Kernel::Scratch scratch_;
};

struct Case {
  char const* name;
  kernel::ConvolutionShape shape;
};

}  // namespace

int main() {
  Ratios ratios("kernel/convolution/convolution");
  ThreadPool pool(1);
  auto const square = [](Index rows, Index side, Index channels, Index groups) {
    return kernel::ConvolutionShape{.rows = rows,
                                    .inputs = channels,
                                    .outputs = channels,
                                    .extent = {1, side, side},
                                    .kernel = {1, 3, 3},
                                    .padding = {0, 1, 1},
                                    .groups = groups};
  };
  auto const series = [](Index channels, Index kernel, Index dilation, Index groups) {
    auto const padding = dilation * (kernel - 1) / 2;
    return kernel::ConvolutionShape{.rows = 16,
                                    .inputs = channels,
                                    .outputs = channels,
                                    .extent = {1, 1, 400},
                                    .kernel = {1, 1, kernel},
                                    .padding = {0, 0, padding},
                                    .dilation = {1, 1, dilation},
                                    .groups = groups};
  };
  for (auto const& [name, shape] : {Case{"3x3, 8 x 28 x 28 x 128", square(8, 28, 128, 1)},
                                    Case{"3x3 in 32 groups, 8 x 28 x 28 x 128", square(8, 28, 128, 32)},
                                    Case{"3x3 depthwise, 8 x 56 x 56 x 128", square(8, 56, 128, 128)},
                                    Case{"31 depthwise, 16 x 400 x 256", series(256, 31, 1, 256)},
                                    Case{"3 dilated by 8, 16 x 400 x 128", series(128, 3, 8, 1)}}) {
    auto const number = [](Index n) { return std::to_string(n); };
    auto const compare = [&](std::string const& engine, std::string const& direction, auto pass) {
      if (auto peer =
              python_peer("kernels.py", {"convolution_" + direction, number(shape.rows), number(shape.extent[1]),
                                         number(shape.extent[2]), number(shape.inputs), number(shape.kernel[1]),
                                         number(shape.kernel[2]), number(shape.dilation[2]), number(shape.groups)}))
        ratios.compare(
            "convolution " + direction + ", " + name + ", " + engine + ", 1 thread", "pytorch",
            [&](double duration) { return rate(duration, Time::processor, pass); }, std::ref(*peer));
    };
    Layer<Kernel::Plans<float, kernel::detail::PortableConvolution<float>>> portable(pool, shape);
    compare("portable", "forward", [&] { portable.forward(); });
    compare("portable", "backward", [&] { portable.backward(); });
#if defined(LOCKSTEP_ONEDNN)
    Layer<Kernel::Plans<float>> library(pool, shape);
    compare("oneDNN", "forward", [&] { library.forward(); });
    compare("oneDNN", "backward", [&] { library.backward(); });
#endif
  }
}
