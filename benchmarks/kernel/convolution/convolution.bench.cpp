// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/convolution/convolution.hpp>

#include <numbers.hpp>
#include <python_peer.hpp>
#include <suite.hpp>

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
      Numbers all;
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
  static TensorView<float const, 1, HostSpace> view(Numbers const& v) { return {v.data(), {std::ssize(v)}}; }
  static TensorView<float, 1, HostSpace> mutable_view(Numbers& v) { return {v.data(), {std::ssize(v)}}; }

  memory::Stream<HostSpace> stream_;
  kernel::ConvolutionShape shape_;
  Numbers x_, weight_, bias_, dy_, y_, dx_, dweight_, dbias_;
  Plans plans_;
  Kernel::Scratch scratch_;
};

struct Case {
  char const* name;
  kernel::ConvolutionShape shape;
};

}  // namespace

void register_benchmarks() {
  static ThreadPool pool(1);
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
  for (auto const& [name, shape] :
       {Case{"3x3/8x28x28x128", square(8, 28, 128, 1)}, Case{"3x3/groups:32/8x28x28x128", square(8, 28, 128, 32)},
        Case{"3x3/depthwise/8x56x56x128", square(8, 56, 128, 128)},
        Case{"31/depthwise/16x400x256", series(256, 31, 1, 256)},
        Case{"3/dilation:8/16x400x128", series(128, 3, 8, 1)}}) {
    for (std::string const direction : {"forward", "backward"}) {
      auto const full = "convolution/" + direction + "/" + name;
      auto const add_engine = [&, shape = shape]<class Plans>(std::string const& engine, std::type_identity<Plans>) {
        Shared const layer([shape] { return Layer<Plans>(pool, shape); });
        add_pass(full + "/engine:" + engine, layer, [forward = direction == "forward"](Layer<Plans>& convolution) {
          forward ? convolution.forward() : convolution.backward();
        });
      };
      add_engine("portable", std::type_identity<Kernel::Plans<float, kernel::detail::PortableConvolution<float>>>());
#if defined(LOCKSTEP_ONEDNN)
      add_engine("onednn", std::type_identity<Kernel::Plans<float>>());
#endif
      add_peer(full, "pytorch",
               pytorch_kernel("convolution_" + direction,
                              {shape.rows, shape.extent[1], shape.extent[2], shape.inputs, shape.kernel[1],
                               shape.kernel[2], shape.dilation[2], shape.groups}));
    }
  }
}
