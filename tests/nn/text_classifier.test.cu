// SPDX-License-Identifier: Apache-2.0
// A complete model in both spaces, which shows that its layers work together on a device, too.
#include <lockstep/cuda.cuh>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/transformer/transformer_encoder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/device_layout.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

namespace {

template <class Space>
struct PaddedColumn {
  TensorView<std::int32_t const, 2, Space> values;
  TensorView<std::int32_t const, 1, Space> lengths;
};

/// Four articles of up to 9 tokens, in one space.
template <class Space>
struct Batch {
  PaddedColumn<Space> tokens;
  TensorView<std::int32_t const, 1, Space> labels;
  TensorView<Index const, 1, Space> positions;
};

class Articles {
 public:
  [[nodiscard]] Batch<HostSpace> on_host() const {
    return {{{ids_.data(), {rows, length}}, {lengths_.data(), {rows}}},
            {labels_.data(), {rows}},
            {positions_.data(), {rows}}};
  }
  [[nodiscard]] Batch<CudaSpace> on_device() const {
    return {{device_ids_.view(rows, length), device_lengths_.view(rows)},
            device_labels_.view(rows),
            device_positions_.view(rows)};
  }

 private:
  static constexpr Index rows = 4, length = 9;
  std::vector<std::int32_t> lengths_{9, 0, 1, 5}, labels_{2, 0, 1, 2}, ids_ = [this] {
    std::vector<std::int32_t> ids;
    for (Index i = 0; i < rows * length; ++i) {
      bool const token = i % length < lengths_[static_cast<std::size_t>(i / length)];
      ids.push_back(token ? static_cast<std::int32_t>(1 + 7 * i % 19) : 0);
    }
    return ids;
  }();
  std::vector<Index> positions_{3, Index{1} << 40, 7, 0};
  OnDevice<std::int32_t> device_lengths_{lengths_}, device_labels_{labels_}, device_ids_{ids_};
  OnDevice<Index> device_positions_{positions_};
};

class Classifier {
 public:
  void visit(auto&& each) {
    each("embedding", embedding_);
    each("encoder", encoder_);
    each("head", head_);
  }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, Batch<typename Context::Space> const& batch) const {
    auto const x = encoder_.forward(context, embedding_.forward(context, batch.tokens, batch.positions));
    auto const logits = head_.forward(context, nn::mean_pool(context, x));
    auto const main = nn::cross_entropy(context, logits, batch.labels, {.label_smoothing = 0.1});
    return main.with_auxiliary(nn::cross_entropy(context, logits, batch.labels, {.factor = 0.5}));
  }

 private:
  nn::FusedEmbedding embedding_{{.vocabulary = 20, .length = 9, .width = 16, .dropout = 0.1}};
  nn::TransformerEncoder encoder_{{.layers = 2, .width = 16, .heads = 2, .feed_forward = 24, .dropout = 0.1}};
  nn::Linear head_{16, 3};
};

template <class T>
struct Outcome {
  double sum = 0, weight = 0;
  std::vector<T> gradients;
  bool operator==(Outcome const&) const = default;
};

/// Two micro-batches of one step; the arena is zero between parameters.
class Twin {
 public:
  Twin() : values_(static_cast<std::size_t>(layout_.size())) { nn::initialize(layout_, 5, values_.data()); }

  [[nodiscard]] Outcome<double> on_host() const {
    ThreadPool pool(1);
    nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
    std::vector<double> const values(values_.begin(), values_.end());
    Outcome<double> outcome{0, 0, std::vector<double>(values.size())};
    context.parameters().bind(values.data(), outcome.gradients.data(), layout_.entries().size());
    run(context, articles_.on_host(), [&](nn::Loss<HostSpace> const& loss) {
      outcome.sum += loss.sum;
      outcome.weight += loss.weight;
    });
    return outcome;
  }
  template <class T>
  [[nodiscard]] Outcome<T> on_device() const {
    memory::CudaStream const stream;
    nn::Context<T, CudaSpace> context{stream.view()};
    OnDevice<T> const values(std::vector<T>(values_.begin(), values_.end())), gradients(std::vector<T>(values_.size()));
    OnDevice<double> const totals(std::vector<double>{0, 0});
    context.parameters().bind(values.view(layout_.size()).data, gradients.view(layout_.size()).data,
                              layout_.entries().size());
    run(context, articles_.on_device(), [&](nn::Loss<CudaSpace> const& loss) {
      kernel::BinaryOperation<CudaSpace>::forward<kernel::Plus, double>(stream.view(), totals.view(2),
                                                                        {loss.totals, {2}}, totals.view(2));
    });
    return {totals.values()[0], totals.values()[1], gradients.values()};
  }

 private:
  template <class Context, class Add>
  void run(Context& context, Batch<typename Context::Space> const& batch, Add const& add) const {
    nn::Pass(context).begin_step();
    for (std::uint64_t key : {1u, 2u}) {
      nn::Pass(context).begin_micro_batch(nn::Mode::training, key);
      add(model_.forward(context, batch));
      nn::Pass(context).backward({});
    }
  }

  Classifier model_;
  nn::ParameterLayout layout_ = nn::ParameterLayout::of(model_);
  std::vector<float> values_;
  Articles articles_;
};

}  // namespace

TEST_CASE_TEMPLATE("a text classifier on CUDA has the host's loss and gradients within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("a text classifier")) return;
  Twin const twin;
  auto const host = twin.on_host();
  auto const device = twin.on_device<T>();
  REQUIRE(device.gradients.size() == host.gradients.size());
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < host.gradients.size(); ++i) {
    largest = std::max(largest, std::abs(host.gradients[i]));
    auto const error = std::abs(static_cast<double>(device.gradients[i]) - host.gradients[i]);
    worst = error <= worst ? worst : error;
  }
  // Some 40 operations in sequence; each result is a sum of up to 24 terms and rounds as often. With random signs, that
  // is the square root of 40 * 24 halves of a unit of the largest, and three times that to be safe.
  double const unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  CHECK(largest > 0.1);
  CHECK(worst <= 50 * unit * largest);
  CHECK(device.weight == host.weight);
  CHECK(std::abs(device.sum - host.sum) <= 50 * unit * host.sum);
}

TEST_CASE("a text classifier on CUDA gives equal bits on repetition") {
  if (!lockstep_test::has_gpu("a text classifier")) return;
  Twin const twin;
  auto const once = twin.on_device<float>();
  CHECK(twin.on_device<float>() == once);
}
