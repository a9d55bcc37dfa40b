// SPDX-License-Identifier: Apache-2.0
// On a device, segment plans for the tables' gradients are built concurrently with the rest of the pass.
#include <lockstep/cuda.cuh>
#include <lockstep/nn/embedding/fused_embedding.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/cuda.cuh>
#include <lockstep/parallel/replica/optimizer_state.hpp>
#include <lockstep/parallel/replica/replica.hpp>

#include "larger_error.hpp"
#include "memory/device.hpp"

using namespace lockstep;

namespace fused_embedding_on_cuda {
namespace {

constexpr Index rows = 3, length = 40, width = 4, classes = 3;
constexpr std::int32_t vocabulary = 50;

template <class Space>
struct Column {
  TensorView<std::int32_t const, 2, Space> values;
  TensorView<std::int32_t const, 1, Space> lengths;
  bool operator==(Column const&) const = default;
};
template <class Space>
struct Batch {
  Column<Space> question, answer;
  TensorView<std::int32_t const, 1, Space> labels;
  TensorView<Index const, 1, Space> positions;
  bool operator==(Batch const&) const = default;
};
template <class Space, class Copy>
Batch<typename Copy::Space> copied(Batch<Space> const& batch, Copy const& copy) {
  auto const column = [&](auto const& c) { return Column<typename Copy::Space>{copy(c.values), copy(c.lengths)}; };
  return {column(batch.question), column(batch.answer), copy(batch.labels), copy(batch.positions)};
}

/// Ids and lengths that depend on a number, in page-locked memory.
class Content {
 public:
  explicit Content(unsigned number) {
    auto* const positions = reinterpret_cast<Index*>(block_.data());
    auto* at = reinterpret_cast<std::int32_t*>(positions + rows);
    auto const column = [&](unsigned salt) {
      auto* const ids = std::exchange(at, at + rows * length);
      auto* const lengths = std::exchange(at, at + rows);
      for (Index row = 0; row < rows; ++row) {
        lengths[row] = static_cast<std::int32_t>((7 * row + 13 * number + salt) % (length + 1));
        for (Index i = 0; i < length; ++i) {
          auto const id = (static_cast<unsigned>(row * length + i) * 29 + number * 17 + salt) % vocabulary;
          ids[row * length + i] = id % 3 == 0 ? static_cast<std::int32_t>(number) : static_cast<std::int32_t>(id);
        }
      }
      return Column<HostSpace>{{ids, {rows, length}}, {lengths, {rows}}};
    };
    auto const question = column(1), answer = column(5);
    for (Index row = 0; row < rows; ++row) {
      at[row] = static_cast<std::int32_t>((row + number) % classes);
      positions[row] = row;
    }
    batch = {question, answer, {at, {rows}}, {positions, {rows}}};
  }
  Batch<HostSpace> batch;

 private:
  memory::Block block_ = memory::PinnedResource{}.allocate(std::size_t{1} << 14);
};

/// Looks up three tables in two segments, one of them again, again with an unused result, and once more in a recomputed
/// block. Counts how often the host runs it.
class Model {
 public:
  explicit Model(int* runs) : runs_(runs) {}
  void visit(auto&& each) {
    each("embedding", embedding_), each("question", question_), each("answer", answer_), each("head", head_);
  }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, Batch<typename Context::Space> const& batch) const {
    ++*runs_;
    if (fails) fail(context, batch);
    auto const pooled = [&](auto const& tokens) { return nn::mean_pool(context, tokens); };
    auto const both = embedding_.forward(
        context, nn::concatenate(nn::sum(batch.question, question_.of(batch.question)), answer_.of(batch.answer)),
        batch.positions);
    auto const answer = embedding_.forward(context, batch.answer, batch.positions);
    static_cast<void>(embedding_.forward(context, batch.question, batch.positions));
    auto const again = context.recompute(
        [this, batch](Context& c) { return embedding_.forward(c, answer_.of(batch.question), batch.positions); });
    auto const x = nn::add(context, nn::add(context, pooled(both), pooled(answer)), pooled(again));
    return nn::cross_entropy(context, head_.forward(context, x), batch.labels);
  }
  bool fails = false;

 private:
  /// With segment plans in memory that another pass uses for activations.
  template <class Context>
  void fail(Context& context, Batch<typename Context::Space> const& batch) const {
    for (int i = 0; i < 12; ++i) static_cast<void>(embedding_.forward(context, batch.answer, batch.positions));
    throw std::domain_error("no");
  }

  int* runs_;
  nn::FusedEmbedding embedding_{
      {.vocabulary = vocabulary, .length = 2 * length, .width = width, .norm = nn::Norm::rms}};
  nn::Embedding question_{vocabulary, width}, answer_{vocabulary, width};
  nn::Linear head_{width, classes};
};

/// A replica and its optimizer. With an observer it queues every pass again.
template <class Space>
class Trained {
 public:
  explicit Trained(bool listens) : sink_{listens ? [](void*, Index, Index) {} : decltype(nn::ReadySink::call){}, {}} {
    std::vector<float> values(static_cast<std::size_t>(layout_.size()));
    nn::initialize(layout_, 3, values.data());
    replica_.set_values(values);
  }
  void run(Content const& content) { replica_.run(content.batch, {.key = 1}, {}, sink_); }
  void send(Content const& content) { replica_.prefetch(content.batch); }
  std::vector<float> update() {
    replica_.zero_unused();
    state_.update(optim::SGD{}, replica_, replica_.loss(), {.step = ++step_, .learning_rate = 0.5});
    auto const values = replica_.values();
    return {values.begin(), values.end()};
  }

  int runs = 0;

 private:
  Model model_{&runs};
  nn::ParameterLayout layout_ = nn::ParameterLayout::of(model_);
  parallel::Replica<Model, Space> replica_{model_, layout_, {.threads = 1}};
  parallel::OptimizerState<optim::SGD, Space> state_{layout_};
  nn::ReadySink sink_;
  Index step_ = 0;

 public:
  bool& fails = model_.fails;
};

}  // namespace

TEST_CASE("plans of other ids in recorded passes: the bits of passes that are queued again, and the host's values") {
  if (!lockstep_test::has_gpu("nn::FusedEmbedding")) return;
  Trained<CudaSpace> recorded(false), plain(true);
  Trained<HostSpace> host(true);
  constexpr int steps = 8;
  for (unsigned step = 0; step < steps; ++step) {
    CAPTURE(step);
    Content const content(step), next(step + 1);
    recorded.run(content);
    if (step % 2 == 0) recorded.send(next);  // on a branch of the pass, and then replaced by one in other memory
    plain.run(content), host.run(content);
    auto const values = recorded.update(), expected = host.update();
    CHECK(values == plain.update());
    // A gradient's elements are sums of up to 360 numbers below 1, each with about ten roundings.
    double const bound = (step + 1) * 360.0 * 10 * std::numeric_limits<float>::epsilon();
    double worst = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      worst = lockstep_test::larger_error(worst,
                                          std::abs(static_cast<double>(values[i]) - static_cast<double>(expected[i])));
    CHECK(worst <= bound);
  }
  CHECK(plain.runs == steps);
  CHECK(recorded.runs <= 4);  // directly and recorded, in two places
}

TEST_CASE("a pass that fails during planning does not affect the next") {
  if (!lockstep_test::has_gpu("nn::FusedEmbedding")) return;
  Trained<CudaSpace> failing(false), plain(true);
  for (unsigned step = 0; step < 5; ++step) {
    CAPTURE(step);
    Content const content(step), other(step + 20);
    failing.fails = true;
    CHECK_THROWS_AS(failing.run(other), std::domain_error);
    failing.fails = false;
    failing.run(content), plain.run(content);
    CHECK(failing.update() == plain.update());
  }
}

#if defined(LOCKSTEP_CUDA_EMULATION)

TEST_CASE("plans are made concurrently with forward, and backward waits for them once") {
  memory::CudaStream const stream;
  nn::Context<float, CudaSpace> context(stream.view());
  nn::FusedEmbedding embedding({.vocabulary = vocabulary, .width = width});
  nn::Embedding other(vocabulary, width);
  embedding.visit([](auto, auto& p) { p.offset = 0, p.ordinal = 0; });
  other.visit([](auto, auto& p) { p.offset = vocabulary * width, p.ordinal = 1; });
  lockstep_test::OnDevice<float> const values(std::vector<float>(2 * vocabulary * width)),
      gradients(std::vector<float>(2 * vocabulary * width));
  lockstep_test::OnDevice<std::int32_t> const ids(std::vector<std::int32_t>(rows * length, 7)),
      lengths(std::vector<std::int32_t>(rows, length));
  lockstep_test::OnDevice<Index> const positions(std::vector<Index>(rows, 1));
  context.parameters().bind(values.view(1).data, gradients.view(1).data, 2);
  Column<CudaSpace> const column{ids.view(rows, length), lengths.view(rows)};
  auto const forward = [&] {
    return embedding.forward(context, nn::sum(column, other.of(column)), positions.view(rows)).tokens;
  };
  struct Counts {
    Index here = 0, beside = 0, waits = 0;
  };
  auto const counts = [&] {
    Counts all;
    for (auto const& piece : stream.view().get()->capture->pieces) {
      if (piece.work.run) ++(piece.branch == 0 ? all.here : all.beside);
      all.waits += piece.branch == 0 && piece.work.awaits;
    }
    return all;
  };
  auto const captured = [&](nn::Mode mode, auto const& work) {
    nn::Pass(context).begin_step();
    nn::Pass(context).begin_micro_batch(mode, 1);
    memory::CudaGraph const graph(stream.view(), work);
    CHECK(graph);
  };
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  static_cast<void>(forward());  // all memory is allocated
  captured(nn::Mode::training, [&] {
    auto const tokens = forward();
    auto const before = counts();
    CHECK(before.beside == 2 * 5);
    CHECK(before.waits == 0);
    auto const target = context.gradient(tokens);
    memory::check_cuda(cudaMemsetAsync(target.data, 0, sizeof(float) * rows * length * width, stream.view().get()),
                       "cudaMemsetAsync");
    nn::Pass(context).backward({});
    auto const after = counts();
    CHECK(after.beside == 2 * 5);
    CHECK(after.waits == 1);
    CHECK(after.here == before.here + 1 + 2 * 3);  // a table is cleared, and its chunks and rows are summed
  });
  captured(nn::Mode::training, [&] {  // or the recording would be incomplete
    static_cast<void>(forward());
    nn::Pass(context).backward({});
    CHECK(counts().waits == 1);
  });
  captured(nn::Mode::evaluation, [&] {
    static_cast<void>(forward());
    CHECK(counts().beside == 0);
  });
}

#endif

}  // namespace fused_embedding_on_cuda
