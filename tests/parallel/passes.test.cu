// SPDX-License-Identifier: Apache-2.0
// Repeated passes on a device replay a recording, with the bits of passes that are queued again.
#include <lockstep/core/clock.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/kernel/linear/linear.cuh>
#include <lockstep/kernel/loss/cross_entropy.cuh>
#include <lockstep/kernel/random/dropout.cuh>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/loss/named_loss.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/nn/random/dropout.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/device_work.hpp>
#include <lockstep/parallel/policy/cuda.cuh>
#include <lockstep/parallel/replica/optimizer_state.hpp>
#include <lockstep/parallel/replica/replica.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory/device.hpp"

using namespace lockstep;

namespace passes_on_cuda {
namespace {

constexpr Index width = 5, classes = 3;

template <class Space>
struct Batch {
  TensorView<float const, 2, Space> x;              // [rows, width]
  TensorView<std::uint8_t const, 1, Space> labels;  // [rows]
  TensorView<Index const, 1, Space> positions;      // [rows]
  bool second = false;                              // whether the second head makes the prediction
  bool operator==(Batch const&) const = default;
};
template <class Space, class Copy>
Batch<typename Copy::Space> copied(Batch<Space> const& batch, Copy const& copy) {
  return {copy(batch.x), copy(batch.labels), copy(batch.positions), batch.second};
}

/// Counts how often the host runs it. Some passes do not use all parameters.
class Model {
 public:
  explicit Model(int* runs) : runs_(runs) {}
  void visit(auto&& each) { each("body", body_), each("first", first_), each("second", second_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, Batch<typename Context::Space> const& batch) const {
    ++*runs_;
    if (fails) throw std::domain_error("no");
    auto const x = dropout_.forward(context, body_.forward(context, context.input(batch.x)), batch.positions);
    if (waits) context.on_backward(x, std::tuple{}, [](Context& c) { c.stream().synchronize(); });
    auto const loss = nn::cross_entropy(context, (batch.second ? second_ : first_).forward(context, x), batch.labels);
    nn::named_loss(context, "twice", loss);
    return nn::named_loss(context, "twice", loss);
  }
  bool waits = false, fails = false;

 private:
  int* runs_;
  nn::Linear body_{width, 8};
  nn::Dropout dropout_{0.4};
  nn::Linear first_{8, classes}, second_{8, classes};
};

/// A batch whose content depends on a number, in page-locked memory.
class Content {
 public:
  Content(Index rows, unsigned number, bool second = false) {
    auto* const x = reinterpret_cast<float*>(block_.data());
    auto* const positions = reinterpret_cast<Index*>(x + rows * (width + 1));
    auto* const labels = reinterpret_cast<std::uint8_t*>(positions + rows);
    for (Index i = 0; i < rows * width; ++i) x[i] = static_cast<float>((i * 7 + number * 13) % 11) / 8 - 0.6f;
    for (Index i = 0; i < rows; ++i) positions[i] = 100 * number + i;
    for (Index i = 0; i < rows; ++i) labels[i] = static_cast<std::uint8_t>((i + number) % classes);
    batch = {{x, {rows, width}}, {labels, {rows}}, {positions, {rows}}, second};
  }
  Batch<HostSpace> batch;

 private:
  memory::Block block_ = memory::PinnedResource{}.allocate(std::size_t{1} << 20);
};

/// A replica and its optimizer. With an observer it queues every pass again.
class Trained {
 public:
  explicit Trained(bool listens, bool waits = false, bool fails = false)
      : sink_{listens ? [](void*, Index, Index) {} : Call{}, nullptr} {
    model_.waits = waits, model_.fails = fails;
    std::vector<float> values(static_cast<std::size_t>(layout_.size()));
    nn::initialize(layout_, 3, values.data());
    replica.set_values(values);
  }
  void run(Content const& content, parallel::MicroStep const& step) { replica.run(content.batch, step, {}, sink_); }
  /// Values, and the loss of the step before.
  std::vector<double> update() {
    replica.zero_unused();
    ++step_;
    state_.update(optim::AdamW{.learning_rate = 0.1}, replica, replica.loss(),
                  {.step = step_, .learning_rate = 0.1 / static_cast<double>(step_), .clip_norm = 0.3});
    auto const loss = replica.read_loss();
    std::vector<double> seen{loss.sum, loss.weight};
    auto const values = replica.values();
    seen.insert(seen.end(), values.begin(), values.end());
    return seen;
  }

  int runs = 0;

 private:
  using Call = decltype(nn::ReadySink::call);
  Model model_{&runs};
  nn::ParameterLayout layout_ = nn::ParameterLayout::of(model_);

 public:
  parallel::Replica<Model, CudaSpace> replica{model_, layout_, {}};

 private:
  parallel::OptimizerState<optim::AdamW, CudaSpace> state_{layout_};
  nn::ReadySink sink_;
  Index step_ = 0;
};

}  // namespace

TEST_CASE("recorded passes have the bits of plain ones: other keys, contents, rates and shapes, accumulated or not") {
  if (!lockstep_test::has_gpu("recorded passes")) return;
  Trained recorded(false), plain(true);
  unsigned number = 0;
  for (unsigned step = 0; step < 40; ++step) {
    CAPTURE(step);
    auto const micro_steps = step % 4 == 3 ? 2u : 1u;
    for (unsigned micro = 0; micro < micro_steps; ++micro, ++number) {
      // From step 16 on there is a batch that exceeds the memory of activations.
      Index const rows = step == 16 ? 9000 : step % 4 == 2 ? 33 : 6;
      Content const content(rows, number, step % 8 == 1);
      for (auto* each : {&recorded, &plain}) {
        if (number % 3 == 1) each->replica.prefetch(content.batch);
        each->run(content, {.key = number, .first = micro == 0, .last = micro + 1 == micro_steps});
      }
    }
    auto const end = plain.update();
    CHECK(recorded.update() == end);
    for (auto* each : {&recorded, &plain}) {
      REQUIRE(each->replica.loss_part_names() == std::vector<std::string>{"twice"});
      CHECK(each->replica.read_loss_part(0).sum == doctest::Approx(2 * end[0]));
      CHECK(each->replica.read_loss_part(0).weight == 2 * end[1]);
    }
  }
  CHECK(plain.runs == static_cast<int>(number));
  // Five kinds of pass (two heads, two sizes, and the second one of a step) in two places: once directly, once
  // recorded, and once more after step 16; and the large batch.
  CHECK(recorded.runs <= 5 * 2 * 3 + 1);
}

TEST_CASE("a model that waits for the device is never recorded, and trains") {
  if (!lockstep_test::has_gpu("recorded passes")) return;
  Trained recorded(false, true), plain(true);
  for (unsigned step = 0; step < 8; ++step) {
    Content const content(6, step);
    for (auto* each : {&recorded, &plain}) each->run(content, {.key = step});
    CHECK(recorded.update() == plain.update());
  }
  CHECK(recorded.runs == 8 + 2 * 2);  // two attempts for each of two places
}

TEST_CASE("an unused or overtaken batch is copied again") {
  if (!lockstep_test::has_gpu("recorded passes")) return;
  Trained sent(false), plain(true);
  Content first(6, 1);
  sent.replica.prefetch(first.batch);
  sent.replica.cancel_prefetch();
  first.~Content();
  new (&first) Content(6, 2);  // at an equal address
  for (auto* each : {&sent, &plain}) each->run(first, {.key = 1});
  CHECK(sent.update() == plain.update());
  Content const second(6, 3), third(33, 4);
  sent.replica.prefetch(second.batch);
  for (auto const* content : {&third, &second}) {
    for (auto* each : {&sent, &plain}) each->run(*content, {.key = 2});
    CHECK(sent.update() == plain.update());
  }
}

TEST_CASE("after a failed pass a batch's copy is complete, and its memory may be freed") {
  if (!lockstep_test::has_gpu("passes that fail")) return;
  Trained failing(false, false, true);
  for (bool const sends : {false, true}) {
    Content const content(6, 1);
    if (sends) failing.replica.prefetch(content.batch);
    CHECK_THROWS_AS(failing.run(content, {.key = 1}), std::domain_error);
    CHECK_THROWS_AS(static_cast<void>(failing.replica.evaluate(content.batch)), std::domain_error);
  }
}

TEST_CASE("a named part of the loss is copied to the host under its name") {
  if (!lockstep_test::has_gpu("parts of a loss")) return;
  struct Part {
    nn::Loss<HostSpace> loss;
    void add_loss(nn::Loss<HostSpace> const& part) { loss += part; }
    static constexpr char const* name() { return "twice"; }
  } part;
  Trained trained(false);
  for (unsigned number : {1u, 2u}) {
    auto const before = part.loss;
    auto const loss = trained.replica.evaluate(Content(6, number).batch, part);
    CHECK(loss.sum > 0);
    CHECK(part.loss.sum - before.sum == doctest::Approx(2 * loss.sum));
    CHECK(part.loss.weight - before.weight == 12);
  }
}

TEST_CASE("with an observer of gradient marks, passes are recorded with events that other streams can wait for") {
  if (!lockstep_test::has_gpu("recorded passes")) return;
  using Replica = parallel::Replica<Model, CudaSpace>;
  struct Listener {
    Trained trained{false};
    parallel::detail::ReadyParameters ready;
    std::vector<Replica::Event> marks = std::vector<Replica::Event>(6);  // three layers with two parameters each
  } listener;
  auto& replica = listener.trained.replica;
  memory::CudaStream const other;
  auto const copies = memory::PinnedResource{}.allocate(std::size_t{1} << 16);
  auto* const seen = reinterpret_cast<float*>(copies.data());
  std::vector<float> gradients(static_cast<std::size_t>(replica.size()));
  int repeated = 0;
  for (unsigned step = 0; step < 8; ++step) {
    CAPTURE(step);
    Content const content(step % 4 == 3 ? 33 : 6, step);
    repeated += replica.run(content.batch, {.key = step},
                            {[](void* self) { static_cast<Listener*>(self)->ready.clear(); }, &listener},
                            {[](void* self, Index offset, Index count) {
                               auto& all = *static_cast<Listener*>(self);
                               all.ready.emplace_back(offset, count);
                               all.trained.replica.device().record(all.marks[all.ready.size() - 1]);
                             },
                             &listener},
                            &listener.ready);
    REQUIRE(listener.ready.size() == 4);  // one head is not used
    for (std::size_t i = 0; i < 4; ++i) {
      auto const [offset, count] = listener.ready[i];
      listener.marks[i].make_wait(other.view());
      memory::check_cuda(
          cudaMemcpyAsync(seen + offset, replica.gradient_data() + offset,
                          static_cast<std::size_t>(count) * sizeof(float), cudaMemcpyDeviceToHost, other.view().get()),
          "cudaMemcpyAsync");
    }
    other.view().synchronize();
    replica.device().read(replica.gradient_data(), gradients);
    for (auto const& [offset, count] : listener.ready)
      for (Index k = offset; k < offset + count; ++k)
        if (seen[k] != gradients[static_cast<std::size_t>(k)]) FAIL("element " << k << " was not written at its mark");
  }
  CHECK(repeated >= 3);
  CHECK(listener.trained.runs < 8);
}

TEST_CASE("traced passes are queued again, with equal bits, and each operation's time is within the pass") {
  if (!lockstep_test::has_gpu("recorded passes")) return;
  Trained traced(false), plain(true);
  Timeline timeline(1000);
  for (unsigned step = 0; step < 12; ++step) {
    if (step == 6) traced.replica.trace(&timeline);
    if (step == 10) traced.replica.trace(nullptr);
    Content const content(6, step);
    auto const before = traced.runs;
    for (auto* each : {&traced, &plain}) each->run(content, {.key = step});
    CHECK(traced.update() == plain.update());
    if (step >= 6 && step < 10) CHECK(traced.runs == before + 1);
    if (step >= 10) CHECK(traced.runs == before);
  }
  CHECK(timeline.left_out() == 0);
  auto const now = Clock::seconds();
  int passes = 0, forward = 0, backward = 0;
  for (auto const* span = timeline.begin(); span != timeline.end(); ++span) {
    CHECK(span->begin <= span->end);
    CHECK(std::abs(span->begin - now) < 60);  // seconds of the host's clock, at the resolution of the device's
    forward += span->kind == Span::Kind::forward;
    backward += span->kind == Span::Kind::backward;
    if (span->kind != Span::Kind::phase) continue;
    CHECK(std::string(span->name) == "forward and backward");
    ++passes;
    for (auto const* inner = span - 7; inner != span; ++inner) {  // two GEMMs and dropout, twice, and the loss
      CHECK(inner->kind != Span::Kind::phase);
      CHECK(inner->begin >= span->begin);
      CHECK(inner->end <= span->end);
    }
  }
  CHECK(passes == 4);
  CHECK(forward == 4 * 4);
  CHECK(backward == 4 * 3);
}

TEST_CASE("losses of different samples are accumulated on the device as on the host") {
  if (!lockstep_test::has_gpu("nn::Loss<CudaSpace>")) return;
  memory::CudaStream const stream;
  nn::Context<float, CudaSpace> context(stream.view());
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 0);
  lockstep_test::OnDevice<double> const numbers({6, 2, 1, 3});
  auto* const data = numbers.view(4).data;
  auto const loss = [&](Index at) {
    return nn::Loss<CudaSpace>::of(context, TensorView<double const, 1, CudaSpace>(data + at, {1}),
                                   TensorView<double const, 1, CudaSpace>(data + at + 1, {1}));
  };
  auto const first = loss(0), second = loss(2), both = first.with_auxiliary(second);
  nn::Loss<CudaSpace> total;
  (total += first) += second;
  total += {};
  double seen[6] = {};
  stream.view().synchronize();
  int i = 0;
  for (auto const& each : {first, both, total})
    memory::check_cuda(cudaMemcpy(seen + 2 * i++, each.totals, 2 * sizeof(double), cudaMemcpyDeviceToHost),
                       "cudaMemcpy");
  CHECK(std::vector(seen, seen + 6) == std::vector<double>{6, 2, 7, 2, 7, 5});
}

TEST_CASE("passes are counted, and passes 8 and 16 measured, recorded or not, with equal bits") {
  if (!lockstep_test::has_gpu("device work")) return;
  parallel::DeviceWork work[2];
  std::vector<double> seen[2];
  for (bool const listens : {false, true}) {
    Trained trained(listens);
    Content const content(6, 1);
    for (unsigned step = 0; step < 20; ++step) {
      trained.run(content, {.key = step});
      seen[listens] = trained.update();
    }
    auto const taken = work[listens] = trained.replica.take_work();
    CHECK(taken.passes == 20);
    CHECK(taken.measured <= 2);
    CHECK(taken.queue_seconds > 0);
    CHECK((taken.busy_seconds > 0) == (taken.measured > 0));
    CHECK(trained.replica.take_work().passes == 0);
#if defined(LOCKSTEP_CUDA_EMULATION)
    CHECK(taken.measured == 2);                                 // the device executes nothing before a wait
    CHECK(taken.busy_seconds * 1e3 >= 2 * taken.kernels / 20);  // a millisecond for each operation
    CHECK(taken.product_seconds + taken.memory_seconds == 0);   // rates of this device are unknown
#endif
  }
  CHECK(work[0].replays >= 16);
  CHECK(work[1].replays == 0);
  CHECK(work[0].kernels == work[1].kernels);  // replays count the recorded work
  CHECK(work[0].kernels >= 20 * 10);
  CHECK(seen[0] == seen[1]);
}

#if defined(LOCKSTEP_CUDA_EMULATION)

TEST_CASE("memory with several chunks is merged when no queued work can use it") {
  memory::CudaStream const stream;
  nn::Context<float, CudaSpace> context(stream.view());
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 0);
  auto const use = [&](float* memory, Index size) {
    memory::check_cuda(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(size) * sizeof(float), stream.view().get()),
                       "cudaMemsetAsync");
  };
  auto const before = cuda_emulation::frees_beside_work.load();
  for (Index const size : {1 << 18, 1 << 19}) use(context.temporary<float>(Extents<1>{size}).data, size);
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 0);
  CHECK(cuda_emulation::frees_beside_work == before);
}

#endif

}  // namespace passes_on_cuda
