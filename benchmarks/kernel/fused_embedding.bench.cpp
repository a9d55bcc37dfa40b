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

constexpr Index vocabulary = 20000, width = 128, rows = 32, length = 128;

/// The first layer of a text classifier: token and position table, one batch of full rows.
class Layer {
 public:
  using Kernel = kernel::FusedEmbedding<HostSpace>;

  explicit Layer(ThreadPool& pool)
      : stream_(pool),
        ids_(zipf_ids(vocabulary, rows * length)),
        lengths_(rows, static_cast<std::int32_t>(length)),
        places_(rows, 0) {}

  void forward() {
    Kernel::forward<float>(stream_, tokens(), {token_.data(), {vocabulary, width}}, {position_.data(), {length, width}},
                           {}, {places_.data(), {rows}}, {out_.data(), {rows * length, width}});
  }
  /// The gradients of both tables, with what has to be known about the batch's ids.
  void backward() {
    Kernel::plan(stream_, tokens(), {scratch_.data(), {rows * length}}, plan_);
    TensorView<float const, 2, HostSpace> const dy{out_.data(), {rows * length, width}};
    Kernel::backward_token<float>(stream_, plan_, dy, {partial_.data(), {Kernel::partial_rows(tokens(), plan_), width}},
                                  {token_.data(), {vocabulary, width}}, Write::overwrite);
    Kernel::backward_position<float>(stream_, tokens(), dy, {position_.data(), {length, width}}, Write::overwrite);
  }

 private:
  Kernel::Tokens tokens() { return {{ids_.data(), {rows, length}}, {lengths_.data(), {rows}}}; }

  static memory::Buffer<float> filled(Index count) {
    memory::Buffer<float> values(count);
    std::ranges::fill(values.span(), 0.5F);
    return values;
  }

  memory::Stream<HostSpace> stream_;
  std::vector<std::int32_t> ids_, lengths_, scratch_ = std::vector<std::int32_t>(rows * length);
  std::vector<Index> places_;
  memory::Buffer<float> token_ = filled(vocabulary * width), position_ = filled(length * width),
                        out_ = filled(rows * length * width), partial_ = filled(rows * length * width);
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
  compare("backward", [&] { layer.backward(); });
}
