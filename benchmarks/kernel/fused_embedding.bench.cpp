// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <lockstep/kernel/fused_embedding.hpp>
#include <lockstep/memory/buffer.hpp>

#include <kernel/zipf.hpp>
#include <python_peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr Index vocabulary = 20000, width = 128, rows = 32, length = 128, slots = rows * length;

/// The first layer of a text classifier: token and position table, one batch of full rows.
class Layer {
 public:
  using Kernel = kernel::FusedEmbedding<HostSpace>;

  explicit Layer(ThreadPool& pool)
      : stream_(pool),
        ids_(zipf_ids(vocabulary, rows * length)),
        lengths_(rows, static_cast<std::int32_t>(length)),
        places_(rows, 0) {}

  void forward() { Kernel::forward<float>(stream_, inputs(), {out_.data(), {slots, width}}); }
  /// The gradients of both tables, with what has to be known about the batch's ids.
  void backward(Write write) {
    auto const in = inputs();
    TensorView<float const, 2, HostSpace> const dy{out_.data(), {slots, width}};
    kernel::EmbeddingGradients<float, HostSpace> targets;
    targets.position = {position_.data(), write};
    Kernel::backward<float>(stream_, in, dy, {}, targets, memory_.data());
    Kernel::plan(stream_, in, 0, 0, {list_.data(), {slots}}, plan_);
    Kernel::backward_table<float>(stream_, plan_, dy, {memory_.data(), {Kernel::partial_rows(slots), width}},
                                  {token_.data(), {vocabulary, width}}, write);
  }

 private:
  [[nodiscard]] kernel::EmbeddingInputs<float, HostSpace> inputs() const {
    kernel::EmbeddingInputs<float, HostSpace> in;
    in.assembly.count = 1;
    in.assembly.layout = in.assembly.segments[0] =
        kernel::SequenceLayout<HostSpace>::padded(length, {lengths_.data(), {rows}}, {places_.data(), {rows}});
    in.parts[0] = {{token_.data(), {vocabulary, width}}, true, ids_.data()};
    in.first_part[1] = 1;
    in.position = {position_.data(), {length, width}};
    return in;
  }

  static memory::Buffer<float> filled(Index count) {
    memory::Buffer<float> values(count);
    std::ranges::fill(values.span(), 0.5F);
    return values;
  }

  memory::Stream<HostSpace> stream_;
  std::vector<std::int32_t> ids_, lengths_, list_ = std::vector<std::int32_t>(slots);
  std::vector<Index> places_;
  memory::Buffer<float> token_ = filled(vocabulary * width), position_ = filled(length * width),
                        out_ = filled(rows * length * width), memory_ = filled(slots * width);
  Kernel::Plan plan_;
};

}  // namespace

int main() {
  Ratios ratios("kernel/fused_embedding");
  ThreadPool pool;
  Layer layer(pool);
  std::vector<std::string> const sizes{std::to_string(vocabulary), std::to_string(width), std::to_string(rows),
                                       std::to_string(length)};
  auto const compare = [&](std::string const& direction, auto pass) {
    std::vector<std::string> arguments{"embedding_" + direction};
    arguments.insert(arguments.end(), sizes.begin(), sizes.end());
    if (auto peer = python_peer("kernels.py", arguments))
      ratios.compare(
          "embedding " + direction + ", float32, V=20000, D=128, zipf, 1 thread", "pytorch",
          [&](double duration) { return rate(duration, Time::processor, pass); }, std::ref(*peer));
  };
  compare("forward", [&] { layer.forward(); });
  compare("backward", [&] { layer.backward(Write::overwrite); });
}
