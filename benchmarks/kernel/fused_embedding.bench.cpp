// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/kernel/fused_embedding.hpp>

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
    plan_.build(ids_);
    partial_.resize(static_cast<std::size_t>(plan_.chunks() * width));
    TensorView<float const, 2, HostSpace> const dy{out_.data(), {rows * length, width}};
    Kernel::backward_token<float>(stream_, plan_, dy, {partial_.data(), {plan_.chunks(), width}},
                                  {token_.data(), {vocabulary, width}}, Write::overwrite);
    Kernel::backward_position<float>(stream_, tokens(), dy, {position_.data(), {length, width}}, Write::overwrite);
  }

 private:
  Kernel::Tokens tokens() { return {{ids_.data(), {rows, length}}, {lengths_.data(), {rows}}}; }

  memory::Stream<HostSpace> stream_;
  std::vector<std::int32_t> ids_, lengths_;
  std::vector<Index> places_;
  std::vector<float> token_ = std::vector<float>(vocabulary * width, 0.5F),
                     position_ = std::vector<float>(length * width, 0.5F),
                     out_ = std::vector<float>(rows * length * width, 0.5F), partial_;
  SegmentPlan plan_;
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
