// SPDX-License-Identifier: Apache-2.0
// The loss of a batch of sequences of logits against shorter ones of labels, and its gradient.
#include <cstdint>
#include <vector>

#include <lockstep/core/philox.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/loss/ctc.hpp>

#include <numbers.hpp>
#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

struct Size {
  Index rows, tokens, labels, classes;
};

class Trial {
 public:
  Trial(ThreadPool& pool, Size const& size) : stream_(pool), size_(size) {
    Index const slots = size.rows * size.tokens;
    for (Index i = 0; i < slots * size.classes; ++i)
      logits_.push_back(4 * uniform(Philox(1), static_cast<std::uint64_t>(i)) - 2);
    for (Index row = 0; row < size.rows; ++row)
      for (Index i = 0; i < size.labels; ++i)
        labels_.push_back(static_cast<std::int32_t>(1 + (row * 31 + i * 7) % (size.classes - 1)));
    gradient_.resize(logits_.size());
    memory_.resize(static_cast<std::size_t>(Kernel::memory_elements(slots, size.rows, size.labels, size.classes)));
    sums_.resize(static_cast<std::size_t>(size.rows));
    weights_ = sums_;
    positions_.resize(sums_.size());
  }
  void step() {
    logits_[0] = -logits_[0];
    auto const layout = [&](Index length) {
      return kernel::SequenceLayout<HostSpace>::padded(length, {}, {positions_.data(), {size_.rows}});
    };
    Extents<2> const extent{size_.rows * size_.tokens, size_.classes};
    Kernel::forward_backward<float, std::int32_t>(
        stream_, layout(size_.tokens), layout(size_.labels), {}, {logits_.data(), extent},
        {labels_.data(), {std::ssize(labels_)}}, {sums_.data(), {size_.rows}}, {weights_.data(), {size_.rows}},
        {gradient_.data(), extent}, Write::overwrite, {memory_.data(), {std::ssize(memory_)}});
  }

 private:
  using Kernel = kernel::Ctc<HostSpace>;
  memory::Stream<HostSpace> stream_;
  Size size_;
  Numbers logits_, gradient_, memory_;
  std::vector<std::int32_t> labels_;
  std::vector<double> sums_, weights_;
  std::vector<Index> positions_;
};

}  // namespace

void register_benchmarks() {
  static ThreadPool pool(1);
  for (auto const& size : {Size{32, 150, 12, 1200}, Size{16, 400, 60, 32}}) {
    auto const name =
        "ctc/forward_backward" +
        parts({{"rows", size.rows}, {"tokens", size.tokens}, {"labels", size.labels}, {"classes", size.classes}});
    add_pass(name, Shared([size] { return Trial(pool, size); }), [](Trial& trial) { trial.step(); });
    add_peer(name, "pytorch", pytorch_kernel("ctc", {size.rows, size.tokens, size.labels, size.classes}));
  }
}
