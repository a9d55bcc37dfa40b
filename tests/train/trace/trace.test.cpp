// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trace/trace.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/autograd/recompute.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/module/frozen.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/transformer/transformer_encoder.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trace/detail/named_spans.hpp>
#include <lockstep/train/trace/layer_times.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "train/text_classifier.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

/// A user's own operation, without code for traces: y = 2 x.
template <class Context>
auto double_it(Context& context, nn::VariableOf<Context, 2> x) {
  auto y = context.template variable<2>(x.value.extent);
  for (Index i = 0; i < x.value.size(); ++i) y.value.data[i] = 2 * x.value.data[i];
  context.on_backward(y, std::tuple{}, [x, y](Context& c) {
    if (auto const dx = c.gradient(x))
      for (Index i = 0; i < x.value.size(); ++i)
        dx.data[i] = (dx.write == Write::add ? dx.data[i] : 0) + 2 * y.gradient().data[i];
  });
  return y;
}

class Classifier {
 public:
  void visit(auto&& each) {
    each("embedding", embedding_);
    each("encoder", encoder_);
    each("last", last_);
    each("head", head_);
  }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto x = encoder_.forward(context, embedding_.forward(context, batch[&Text::tokens], batch.positions()));
    auto const pooled = double_it(context, nn::mean_pool(context, last_.forward(context, x)));
    return nn::cross_entropy(context, head_.forward(context, pooled), batch[&Text::label]);
  }

 private:
  static constexpr nn::TransformerEncoderLayer::Options sizes{.width = 16, .heads = 2, .feed_forward = 32};
  nn::FusedEmbedding embedding_{{.vocabulary = 50, .length = 24, .width = 16, .dropout = 0.1}};
  nn::TransformerEncoder encoder_{{.layers = 2, .width = 16, .heads = 2, .feed_forward = 32, .dropout = 0.1}};
  nn::Recompute<nn::TransformerEncoderLayer> last_{nn::TransformerEncoderLayer(sizes)};
  nn::Linear head_{16, 3};
};

/// A block without parameters below one with parameters.
class Partly {
 public:
  void visit(auto&& each) { each("embedding", embedding_), each("below", below_), each("head", head_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const x = below_.forward(context, embedding_.forward(context, batch[&Text::tokens], batch.positions()));
    return nn::cross_entropy(context, head_.forward(context, nn::mean_pool(context, x)), batch[&Text::label]);
  }

 private:
  nn::FusedEmbedding embedding_{{.vocabulary = 50, .length = 24, .width = 16}};
  nn::Frozen<nn::TransformerEncoder> below_{
      nn::TransformerEncoder({.layers = 2, .width = 16, .heads = 2, .feed_forward = 32})};
  nn::Linear head_{16, 3};
};

struct Fitted {
  std::vector<float> values;
  nn::ParameterLayout layout;
};
template <class Model = Classifier, class Policy>
Fitted fit(Policy policy, train::Trace* trace, int accumulation = 1, Index most_steps = 0) {
  data::DataLoader loader{data::InMemoryDataset{uneven_texts()},
                          data::ShuffledSampler{.seed = 3},
                          data::PadCollate{},
                          {.batch_size = 4, .workers = 1}};
  Trainer trainer{Model{}, optim::AdamW{}, std::move(policy)};
  trainer.fit(loader, {.epochs = 2, .max_steps = most_steps, .accumulation = accumulation, .trace = trace});
  return {std::vector<float>(trainer.values().begin(), trainer.values().end()), trainer.layout()};
}

using Kind = Span::Kind;

std::vector<Span> named(Timeline const& timeline, std::string_view name) {
  std::vector<Span> out;
  for (auto const& span : timeline)
    if (name == span.name) out.push_back(span);
  return out;
}
bool holds(Span const& outer, Span const& inner) { return outer.begin <= inner.begin && inner.end <= outer.end; }
bool any_holds(std::vector<Span> const& outer, Span const& inner) {
  return std::ranges::any_of(outer, [&](Span const& span) { return holds(span, inner); });
}

/// Every operation is in a phase of the device, every phase in a step, and the phases of a step do not overlap.
void check_nesting(train::Trace const& trace) {
  auto const steps = named(trace.training(), "step");
  REQUIRE(static_cast<Index>(steps.size()) == trace.steps());
  for (Index i = 0; i < trace.steps(); ++i) CHECK(steps[static_cast<std::size_t>(i)].number == trace.first_step() + i);
  for (auto const& span : trace.training()) {
    CHECK(span.begin <= span.end);
    if (span.kind == Kind::phase) CHECK_MESSAGE(any_holds(steps, span), span.name);
  }
  for (int d = 0; d < trace.devices(); ++d) {
    auto const& device = trace.device(d);
    auto const forward = named(device, "forward"), backward = named(device, "backward");
    CHECK(!forward.empty());
    CHECK(forward.size() <= backward.size());  // summing shards counts as backward, too
    for (auto const& span : device) {
      CHECK(span.begin <= span.end);
      if (span.kind == Kind::phase) CHECK_MESSAGE(any_holds(steps, span), span.name);
      if (span.kind == Kind::forward) CHECK(any_holds(forward, span));
      if (span.kind == Kind::backward || span.kind == Kind::recompute) CHECK(any_holds(backward, span));
    }
  }
  CHECK(trace.left_out() == 0);
}

std::set<std::string> layers_of(train::Trace const& trace, nn::ParameterLayout const& layout, Kind kind) {
  std::set<std::string> out;
  auto const& spans = trace.device(0);
  auto const names = train::detail::named_spans(spans, layout);
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (spans[i].kind == kind && !names[i].operation.empty()) out.insert(names[i].layer + "|" + names[i].operation);
  return out;
}

}  // namespace

TEST_CASE("the steps after the first ten are recorded, or the last ones of a shorter run") {
  train::Trace const trace;
  CHECK(trace.empty());
  CHECK(trace.plan(0, 100) == 11);
  CHECK(trace.plan(50, 100) == 61);  // a resumed run
  CHECK(trace.plan(0, 15) == 6);
  CHECK(trace.plan(0, 10) == 1);
  CHECK(trace.plan(0, 3) == 1);
  CHECK(train::Trace({.warm_up = 0, .steps = 2}).plan(0, 3) == 1);
}

TEST_CASE("on one device: phases contain their operations, layers have their names, and the bits are equal") {
  train::Trace trace;
  auto const traced = fit(parallel::SingleDevice{.threads = 1}, &trace);
  CHECK(traced.values == fit(parallel::SingleDevice{.threads = 1}, nullptr).values);
  CHECK(trace.first_step() == 11);
  CHECK(trace.steps() == 10);
  CHECK(trace.devices() == 1);
  check_nesting(trace);
  CHECK(named(trace.training(), "data wait").size() == 10);
  CHECK(named(trace.training(), "update").size() == 10);
  CHECK(named(trace.device(0), "optimizer").size() == 10);

  auto const forward = layers_of(trace, traced.layout, Kind::forward);
  for (std::string const layer : {"embedding|FusedEmbedding", "encoder.0.attention.query|Linear",
                                  "encoder.0.attention|MultiHeadAttention", "encoder.1.attention_norm|LayerNorm",
                                  "encoder.1.feed_forward.second|FeedForward", "last.feed_forward|FeedForward",
                                  "|mean_pool", "|double_it", "last.attention.query|Linear", "head|Linear", "|loss"})
    CHECK_MESSAGE(forward.contains(layer), layer);
  auto const backward = layers_of(trace, traced.layout, Kind::backward);
  for (auto const& layer : forward)
    if (layer != "|loss") CHECK_MESSAGE(backward.contains(layer), layer);
  auto const again = layers_of(trace, traced.layout, Kind::recompute);
  CHECK(again.contains("last.attention.query|Linear"));
  CHECK_FALSE(again.contains("encoder.0.attention.query|Linear"));
}

TEST_CASE("micro-batches of a step are recorded one by one, and a short run is recorded completely") {
  train::Trace trace;
  fit(parallel::SingleDevice{.threads = 1}, &trace, 3, 4);
  CHECK(trace.first_step() == 1);
  CHECK(trace.steps() == 4);
  check_nesting(trace);
  CHECK(named(trace.training(), "micro-batch").size() == 12);
  CHECK(named(trace.device(0), "forward").size() == 12);
}

TEST_CASE("the loader's workers record their work and its batch, and the number of finished batches") {
  train::Trace trace({.warm_up = 0, .steps = 8});
  fit(parallel::SingleDevice{.threads = 1}, &trace, 1, 8);
  auto const writes = named(trace.loading(), "write"), levels = named(trace.loading(), "batches ready");
  CHECK(levels.size() == 8);
  CHECK(!writes.empty());
  Index rows = 0;
  for (auto const& span : writes) {
    CHECK(span.kind == Kind::batch);
    CHECK(span.first == 0);
    CHECK(span.begin <= span.end);
    rows += span.amount;
  }
  CHECK(rows > 4 * 4);
  for (auto const& span : levels) CHECK(span.amount <= 3);
}

TEST_CASE("DataParallel: each device has a timeline, and the bits are equal") {
  train::Trace trace;
  auto const policy = parallel::DataParallel{.devices = 2, .threads = 1};
  auto const traced = fit(policy, &trace, 1, 12);
  CHECK(traced.values == fit(policy, nullptr, 1, 12).values);
  REQUIRE(trace.devices() == 2);
  check_nesting(trace);
  for (int d : {0, 1}) CHECK(named(trace.device(d), "backward").size() == 10);
  CHECK(!named(trace.device(0), "gradients ready").empty());
}

TEST_CASE("Reproducible: the passes of a device's shards are recorded in sequence, with equal bits") {
  train::Trace trace;
  auto const policy = parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 2};
  auto const traced = fit(policy, &trace, 1, 4);
  CHECK(traced.values == fit(policy, nullptr, 1, 4).values);
  CHECK(trace.devices() == 1);
  check_nesting(trace);
  CHECK(named(trace.device(0), "forward").size() == 8);
}

TEST_CASE(
    "DistributedDataParallel: buckets are ready, start and end within their step; ranks send their texts to each "
    "other") {
  std::vector<Index> looked(2, 0);
  launch::run({.threads = 2}, [&](launch::World& world) {
    train::Trace trace;
    data::DataLoader loader{data::InMemoryDataset{uneven_texts()},
                            data::ShuffledSampler{.seed = 3},
                            data::PadCollate{},
                            {.batch_size = 4, .workers = 1}};
    Trainer trainer{Classifier{}, optim::AdamW{}, parallel::DistributedDataParallel{comm::connect(world), 4096, 1}};
    trainer.fit(loader, {.epochs = 1, .trace = &trace});
    CHECK(trainer.rank() == world.rank);
    CHECK(trainer.ranks() == 2);
    check_nesting(trace);
    auto const steps = named(trace.training(), "step"), buckets = named(trace.training(), "bucket"),
               sums = named(trace.training(), "sum");
    REQUIRE(buckets.size() == sums.size());
    CHECK(buckets.size() >= 2 * steps.size());
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      CHECK(holds(buckets[i], sums[i]));
      CHECK(buckets[i].number == sums[i].number);
      CHECK(buckets[i].amount > 0);
      CHECK(any_holds(steps, buckets[i]));
    }
    CHECK(named(trace.training(), "communication").size() == steps.size());
    // All-reduces start within backward of the layers whose gradients they reduce.
    auto const backward = named(trace.device(0), "backward");
    for (auto const& span : named(trace.device(0), "gradients ready")) CHECK(any_holds(backward, span));
    auto const text = "of rank " + std::to_string(world.rank);
    for (int root : {0, 1}) CHECK(trainer.broadcast(text, root) == "of rank " + std::to_string(root));
    looked[static_cast<std::size_t>(world.rank)] = trace.steps();
    return 0;
  });
  CHECK(looked == std::vector<Index>{8, 8});
}

TEST_CASE("after a fit that ends in an error no thread writes to the trace") {
  struct Stop final : train::Observer {
    void step(train::StepReport const& report) override {
      if (report.step == 2) throw Error("enough");
    }
  } stop;
  data::DataLoader loader{data::InMemoryDataset{uneven_texts()},
                          data::ShuffledSampler{.seed = 3},
                          data::PadCollate{},
                          {.batch_size = 4, .workers = 1}};
  Trainer trainer{Classifier{}, optim::AdamW{}, parallel::SingleDevice{.threads = 1}};
  {
    train::Trace trace({.warm_up = 0, .steps = 8});
    CHECK_THROWS_WITH_AS(trainer.fit(loader, {.observers = {&stop}, .trace = &trace}), "enough", Error);
    CHECK(trace.steps() == 2);
  }
  trainer.fit(loader, {.epochs = 1});  // with a sanitizer: the trace is gone
}

TEST_CASE("a frozen block is one operation, and its time is not counted in the next") {
  train::Trace trace;
  auto const fitted = fit<Partly>(parallel::SingleDevice{.threads = 1}, &trace);
  std::size_t frozen_bytes = 0;
  for (auto const& entry : fitted.layout.entries())
    if (entry.frozen) frozen_bytes += static_cast<std::size_t>(entry.size) * sizeof(float);
  bool found = false;
  for (auto const& time : train::layer_times(trace, fitted.layout)) {
    CAPTURE(time.layer);
    CHECK_FALSE(time.layer.starts_with("below."));
    if (time.layer != "below") continue;
    found = true;
    CHECK(time.operation == "Frozen");
    CHECK(time.calls == doctest::Approx(1));
    CHECK(time.forward_ms > 0);
    CHECK(time.backward_ms == 0);
    CHECK(time.parameter_bytes == frozen_bytes);
    CHECK(time.activation_bytes > 0);
  }
  CHECK(found);
}
