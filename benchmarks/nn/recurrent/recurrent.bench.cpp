// SPDX-License-Identifier: Apache-2.0
// Forward and backward of recurrent layers: batches of time series of equal lengths, and of varying lengths.
#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/core/philox.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/nn/recurrent/recurrent.hpp>

#include <numbers.hpp>
#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

enum class Lengths { equal, varied };

/// A layer, a batch for it, and the gradient of its output.
template <class Layer>
class Trial {
 public:
  Trial(ThreadPool& pool, Layer layer, Index rows, Index length, Lengths lengths)
      : layer_(std::move(layer)), layout_(nn::ParameterLayout::of(layer_)), context_(memory::Stream<HostSpace>(pool)) {
    for (Index r = 0; r < rows; ++r) {
      // Lengths equal the peer's: evenly from an eighth of the longest on.
      auto const least = length / 8;
      auto const own = lengths == Lengths::equal ? length : least + (length - least) * (r * 37 % rows) / (rows - 1);
      offsets_.push_back(offsets_.back() + own);
      longest_ = std::max(longest_, own);
    }
    positions_.assign(static_cast<std::size_t>(rows), 0);
    fill(x_, offsets_.back() * layer_.inputs(), Philox(1));
    fill(dy_, offsets_.back() * layer_.width(), Philox(2));
    values_.resize(static_cast<std::size_t>(layout_.size()));
    gradients_.resize(values_.size());
    nn::initialize(layout_, 1, values_.data());
    context_.parameters().bind(values_.data(), gradients_.data(), layout_.entries().size());
  }

  void step() {
    x_[0] = -x_[0];
    auto const rows = std::ssize(positions_);
    nn::Pass(context_).begin_step();
    nn::Pass(context_).begin_micro_batch(nn::Mode::training, 1);
    nn::Sequence<float, HostSpace> const x{
        context_.input(TensorView<float, 2, HostSpace>{x_.data(), {offsets_.back(), layer_.inputs()}}),
        nn::SequenceLayout<HostSpace>::ragged(offsets_.back(), longest_, {offsets_.data(), {rows + 1}},
                                              {positions_.data(), {rows}})};
    auto const y = layer_.forward(context_, x);
    auto const dy = context_.gradient(y.tokens);
    std::copy(dy_.begin(), dy_.end(), dy.data);
    nn::Pass(context_).backward({});
  }

 private:
  static void fill(Numbers& numbers, Index count, Philox const& random) {
    for (Index i = 0; i < count; ++i) numbers.push_back(uniform(random, static_cast<std::uint64_t>(i)) - 0.5f);
  }

  Layer layer_;
  nn::ParameterLayout layout_;
  nn::Context<float, HostSpace> context_;
  Index longest_ = 0;
  std::vector<Index> offsets_{0}, positions_;
  Numbers x_, dy_, values_, gradients_;
};

struct Size {
  Index rows, length, inputs, width;
};

}  // namespace

void register_benchmarks() {
  static ThreadPool pool(1);
  auto const add_layer = []<class Layer>(std::string const& kind, Size const& s, Lengths lengths,
                                         std::type_identity<Layer>) {
    bool const varied = lengths == Lengths::varied;
    auto const name = kind + "/forward_backward/lengths:" + (varied ? "varied" : "equal") +
                      parts({{"rows", s.rows}, {"length", s.length}, {"inputs", s.inputs}, {"width", s.width}});
    add_pass(name, Shared([=] { return Trial<Layer>(pool, Layer(s.inputs, s.width), s.rows, s.length, lengths); }),
             [](Trial<Layer>& trial) { trial.step(); });
    add_peer(name, "pytorch",
             pytorch_kernel("recurrent", {kind == "lstm", s.rows, s.length, s.inputs, s.width, varied}));
  };
  for (auto const& size : {Size{64, 128, 9, 64}, Size{64, 128, 9, 128}, Size{32, 50, 256, 256}})
    for (auto const lengths : {Lengths::equal, Lengths::varied}) {
      add_layer("lstm", size, lengths, std::type_identity<nn::LSTM>{});
      add_layer("gru", size, lengths, std::type_identity<nn::GRU>{});
    }
}
