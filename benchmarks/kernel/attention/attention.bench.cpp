// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/kernel/attention/attention.hpp>
#include <lockstep/memory/buffer.hpp>

#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr Index rows = 32, heads = 4, length = 128, head_width = 32;

/// Attention over a batch of full rows, without dropout.
class Layer {
 public:
  explicit Layer(ThreadPool& pool)
      : stream_(pool), lengths_(rows, static_cast<std::int32_t>(length)), places_(rows, 0) {}

  void forward() { Kernel::forward<float>(stream_, inputs(), matrix(out_), log_sums(), scratch()); }
  void backward() {
    Kernel::backward<float>(
        stream_, inputs(), matrix(out_), log_sums(), matrix(dout_),
        {{dquery_.data(), Write::overwrite}, {dkey_.data(), Write::overwrite}, {dvalue_.data(), Write::overwrite}},
        scratch());
  }

 private:
  using Kernel = kernel::Attention<HostSpace>;
  using Floats = memory::Buffer<float>;

  static Floats filled() {
    Floats values(rows * length * heads * head_width);
    for (Index i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 2654435761 % 1000) / 250 - 2;
    return values;
  }
  static TensorView<float, 2, HostSpace> matrix(Floats& values) {
    return {values.data(), {rows * length, heads * head_width}};
  }
  TensorView<float, 2, HostSpace> log_sums() { return {log_sums_.data(), {rows * heads, length}}; }
  TensorView<float, 1, HostSpace> scratch() { return {scratch_.data(), {scratch_.size()}}; }
  Kernel::Inputs<float> inputs() {
    auto const layout =
        kernel::SequenceLayout<HostSpace>::padded(length, {lengths_.data(), {rows}}, {places_.data(), {rows}});
    return {.query = matrix(query_),
            .key = matrix(key_),
            .value = matrix(value_),
            .queries = layout,
            .keys = layout,
            .heads = heads,
            .scale = 1 / std::sqrt(static_cast<double>(head_width)),
            .bias = {},
            .mask = {}};
  }

  memory::Stream<HostSpace> stream_;
  std::vector<std::int32_t> lengths_;
  std::vector<Index> places_;
  Floats query_ = filled(), key_ = filled(), value_ = filled(), out_ = filled(), dout_ = filled(), dquery_ = filled(),
         dkey_ = filled(), dvalue_ = filled(), log_sums_ = Floats(rows * heads * length),
         scratch_ = Floats(Kernel::scratch<float>(stream_, inputs()));
};

}  // namespace

void register_benchmarks() {
  static ThreadPool pool;
  Shared const layer([] { return Layer(pool); });
  auto const add_direction = [&](std::string const& direction, auto pass) {
    auto const name =
        "attention/" + direction + parts({{"rows", rows}, {"length", length}, {"heads", heads}, {"width", head_width}});
    add_pass(name, layer, pass);
    add_peer(name, "pytorch", pytorch_kernel("attention_" + direction, {rows, heads, length, head_width}));
  };
  add_direction("forward", [](Layer& attention) { attention.forward(); });
  add_direction("forward_backward", [](Layer& attention) {
    attention.forward();
    attention.backward();
  });
}
