// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/pass.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "malloc_count.hpp"
#include "nn/autograd/context_fixture.hpp"
#include "nn/toy.hpp"
#include "parallel/table_model.hpp"

using namespace lockstep;
using Fixture = toy::ContextFixture;

namespace {
struct Pair {
  nn::Parameter first{{1}, {}}, second{{1}, {}};
  void visit(auto&& each) { each("first", first), each("second", second); }
};
}  // namespace

// With s = scale, prediction (s^2 + s) x, loss sum (s^2 + s)^2 x^2, derivative 2 (s^2 + s)(2 s + 1) sum x^2.
TEST_CASE("the gradient of a parameter that is used twice is the sum of both") {
  Fixture f;
  nn::Pass(f.context).begin_step();
  CHECK(f.loss() == doctest::Approx(0.75 * 0.75 * 5));
  nn::Pass(f.context).backward({});
  CHECK(f.scale_gradient() == doctest::Approx(2 * 0.75 * 2 * 5));
}

TEST_CASE("micro-batches of a step accumulate, and a new step overwrites") {
  Fixture f;
  for (int step = 0; step < 2; ++step) {
    nn::Pass(f.context).begin_step();
    for (int micro = 1; micro <= 3; ++micro) {
      f.loss();
      nn::Pass(f.context).backward({});
      CHECK(f.scale_gradient() == doctest::Approx(15.0 * micro));
    }
  }
}

TEST_CASE("the sink is called once per parameter, after its last use, and never for an unused one") {
  Fixture f;
  struct Heard {
    Fixture* f;
    int calls = 0;
    Index offset = -1, count = -1;
    double gradient = 0;
  } reported{&f};
  nn::Pass(f.context).begin_step();
  f.loss();
  nn::Pass(f.context).backward({[](void* self, Index offset, Index count) {
                                  auto& h = *static_cast<Heard*>(self);
                                  ++h.calls, h.offset = offset, h.count = count, h.gradient = h.f->scale_gradient();
                                },
                                &reported});
  CHECK(reported.calls == 1);
  CHECK(reported.offset == f.scale_at);
  CHECK(reported.count == 1);
  CHECK(reported.gradient == doctest::Approx(15));
  CHECK(f.context.parameters().gradients().written(1));
  CHECK_FALSE(f.context.parameters().gradients().written(0));
}

TEST_CASE("an aborted forward pass leaves no uses that backward would wait for") {
  Fixture f;
  int notified = 0;
  nn::Pass(f.context).begin_step();
  f.loss();
  f.loss();
  nn::Pass(f.context).backward({[](void* self, Index, Index) { ++*static_cast<int*>(self); }, &notified});
  CHECK(notified == 1);
}

TEST_CASE("a pass is marked as a repetition only while recompute repeats it, also after a failed one") {
  Fixture f;
  for (bool fails : {false, true}) {
    int replays = 0;
    nn::Pass(f.context).begin_step();
    nn::Pass(f.context).begin_micro_batch(nn::Mode::training, 1);
    CHECK_FALSE(f.context.recomputing());
    auto const made = f.context.recompute([&replays, fails](auto& c) {
      replays += c.recomputing();
      if (c.recomputing() && fails) throw DataError("a repetition that fails");
      auto const y = c.template variable<1>({2});
      c.on_backward(y, std::tie(), [](auto&) {});
      return y;
    });
    CHECK_FALSE(f.context.recomputing());
    static_cast<void>(f.context.gradient(made));
    if (fails)
      CHECK_THROWS_AS(nn::Pass(f.context).backward({}), DataError);
    else
      nn::Pass(f.context).backward({});
    CHECK(replays == 1);
    if (!fails) CHECK_FALSE(f.context.recomputing());
  }
  nn::Pass(f.context).begin_micro_batch(nn::Mode::training, 1);
  CHECK_FALSE(f.context.recomputing());
}

TEST_CASE("a closure without parameter names reports each parameter after its last use") {
  std::vector<double> values(32), gradients(32, -1);
  Pair pair;
  auto const layout = nn::ParameterLayout::of(pair);
  ThreadPool pool(1);
  nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.parameters().bind(values.data(), gradients.data(), layout);
  std::vector<Index> reported;
  nn::Pass(context).begin_step();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const end = context.variable<1>({1});
  for (auto const* p : {&pair.first, &pair.first, &pair.second}) context.parameters().gradients().add_use(*p);
  auto const write = [&reported, &pair](nn::Context<double, HostSpace>& c) {
    auto const give = [&](nn::Parameter const& p) {
      auto const to = c.gradient(p);
      *to.data = to.write == Write::add ? *to.data + 3 : 3;
      c.parameters().gradients().finish_use(p);
    };
    give(pair.first);
    CHECK(reported.empty());
    give(pair.second);
    CHECK(reported == std::vector<Index>{pair.second.offset});
    give(pair.first);
  };
  context.on_backward(end, std::tuple{}, write);
  static_cast<void>(context.gradient(end));
  nn::Pass(context).backward(
      {[](void* self, Index offset, Index) { static_cast<std::vector<Index>*>(self)->push_back(offset); }, &reported});
  CHECK(reported == std::vector<Index>{pair.second.offset, pair.first.offset});
  CHECK(gradients[static_cast<std::size_t>(pair.first.offset)] == 6);
  CHECK(gradients[static_cast<std::size_t>(pair.second.offset)] == 3);
}

TEST_CASE("a layer with an unused output does not run backward") {
  Fixture f;
  nn::Pass(f.context).begin_step();
  nn::Pass(f.context).begin_micro_batch(nn::Mode::training, 1);
  nn::Parameter p{{1}, {}, f.scale_at, 1};
  static_cast<void>(toy::multiply(f.context, p, toy::inputs(f.context, f.batch)));
  nn::Pass(f.context).backward({});
  CHECK_FALSE(f.context.parameters().gradients().written(1));
  CHECK(f.scale_gradient() == -1);
}

TEST_CASE("evaluation records nothing and gives an equal loss") {
  Fixture f;
  nn::Pass(f.context).begin_step();
  double const training = f.loss();
  CHECK(f.loss(nn::Mode::evaluation) == training);
  nn::Pass(f.context).backward({});
  CHECK(f.scale_gradient() == -1);
}

TEST_CASE("random keys depend only on the micro-batch's key and on the order of calls") {
  Fixture f;
  auto keys = [&](std::uint64_t key) {
    nn::Pass(f.context).begin_micro_batch(nn::Mode::training, key);
    auto const first = f.context.next_key();
    return std::pair{first, f.context.next_key()};
  };
  CHECK(keys(1) == keys(1));
  CHECK(keys(1) != keys(2));
  CHECK(keys(1).first != keys(1).second);
}

TEST_CASE("from the second micro-batch on there are no allocations") {
  if (!lockstep_test::counts_mallocs) return;
  Fixture f;
  f.batch = {std::vector<double>(100'000, 0.5), std::vector<double>(100'000, 0)};
  auto run = [&] {
    nn::Pass(f.context).begin_step();
    f.loss();
    nn::Pass(f.context).backward({});
  };
  run(), run();
  auto const before = lockstep_test::mallocs.load();
  run();
  CHECK(lockstep_test::mallocs == before);
}

TEST_CASE("a layer's kept objects are found by owner and type, and end with the context") {
  struct Storage {
    std::vector<int> values;
  };
  static int alive = 0;
  struct Counted {
    Counted() { ++alive; }
    ~Counted() { --alive; }
  };
  int const owner = 0, other = 0;
  {
    Fixture f;
    auto& first = f.context.persistent<Storage>(&owner);
    first.values = {1, 2};
    nn::Pass(f.context).begin_micro_batch(nn::Mode::training, 1);
    CHECK(f.context.persistent<Storage>(&other).values.empty());
    static_cast<void>(f.context.persistent<Counted>(&owner));
    CHECK(alive == 1);
    CHECK(&f.context.persistent<Storage>(&owner) == &first);
    CHECK(first.values.size() == 2);
  }
  CHECK(alive == 0);
}

TEST_CASE("an in-place gradient takes its source's memory, unless the source was written or sizes differ") {
  Fixture f;
  nn::Pass(f.context).begin_micro_batch(nn::Mode::training, 1);
  auto const x = f.context.variable<1>({3}), y = f.context.variable<1>({3}), longer = f.context.variable<1>({4});
  nn::Context<double, HostSpace>::Variable<1> const input{x.value, nullptr};
  auto* const dy = f.context.gradient(y).data;
  CHECK(f.context.gradient_in_place(input, y).data == nullptr);
  CHECK(f.context.gradient_in_place(longer, y).data != dy);
  auto const first = f.context.gradient_in_place(x, y), second = f.context.gradient_in_place(x, y);
  CHECK(first.data == dy);
  CHECK(first.write == Write::overwrite);
  CHECK(second.data == dy);
  CHECK(second.write == Write::add);
}

namespace {
/// Returns the gradients of a step with these micro-batches, with zeros for untouched rows.
std::vector<double> table_gradients(nn::GradientForm form, std::vector<table_model::Batch> const& micro_batches) {
  ThreadPool pool(1);
  nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
  table_model::Model model(70, form);
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<double> values(static_cast<std::size_t>(layout.size()), 0.5), gradients(values.size(), -7), out;
  context.parameters().bind(values.data(), gradients.data(), layout);
  CHECK(context.parameters().gradients().touched().size() == (form == nn::GradientForm::by_rows ? 3 : 1));
  nn::Pass(context).begin_step();
  for (auto const& batch : micro_batches) {
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
    static_cast<void>(model.forward(context, batch));
    nn::Pass(context).backward({});
  }
  out.resize(gradients.size());
  kernel::for_written(context.parameters().gradients().touched(), 0, layout.size(), [&](Index begin, Index end) {
    for (; begin < end; ++begin) out[static_cast<std::size_t>(begin)] = gradients[static_cast<std::size_t>(begin)];
  });
  for (std::size_t p = 0; p < layout.entries().size(); ++p)
    if (!context.parameters().gradients().written(p))
      std::fill_n(out.begin() + layout.entries()[p].offset, layout.entries()[p].size, 0.0);
  nn::Pass(context).begin_step();
  for (auto const& table : context.parameters().gradients().touched()) CHECK(table.count() == 0);
  return out;
}
}  // namespace

TEST_CASE("a gradient's memory is reused after all its producers have read it, and not before") {
  ThreadPool pool(1);
  nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.parameters().bind(nullptr, nullptr, 0);
  using Variable = nn::Variable<double, 1, HostSpace>;
  struct Seen {
    double const* data[12];
    double value[12];
    int count = 0;
  } seen;
  // Each layer has two inputs and two producers of y's gradient, like a layer that computes its output in two steps.
  auto const join = [&](Variable x, Variable leaf) {
    auto const y = context.variable<1>({5});
    for (int part = 0; part < 2; ++part)
      context.on_backward(y, std::tie(), [to = part == 0 ? x : leaf, y, part, s = &seen](auto& c) {
        s->data[s->count] = y.gradient().data;
        s->value[s->count++] = y.gradient()(4);
        auto const d = c.gradient(to);
        for (Index i = 0; i < 5; ++i) d.data[i] = part == 0 ? 3 * y.gradient()(i) : -1;
      });
    return y;
  };
  for (int repetition = 0; repetition < 2; ++repetition) {
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
    seen.count = 0;
    auto const input = context.variable<1>({5});
    auto y = input;
    Variable leaves[6];
    Variable outputs[6];
    for (int i = 0; i < 6; ++i) outputs[i] = y = join(y, leaves[i] = context.variable<1>({5}));
    std::fill_n(context.gradient(y).data, 5, 1.0);
    nn::Pass(context).backward({});

    REQUIRE(seen.count == 12);
    for (int i = 0; i < 12; ++i) CHECK(seen.value[i] == std::pow(3.0, i / 2));
    for (int i = 0; i < 12; i += 2) CHECK(seen.data[i] == seen.data[i + 1]);
    for (int i = 2; i < 12; i += 2) CHECK(seen.data[i] != seen.data[i - 2]);
    // Memory freed by the layers behind: the gradient of their output, or the output itself.
    for (int i = 2; i < 12; i += 2) {
      auto const* const taken = leaves[5 - i / 2].gradient().data;
      bool left = false;
      for (int j = 0; j < i; j += 2) left |= taken == seen.data[j] || taken == outputs[5 - j / 2].value.data;
      CHECK(left);
      CHECK(taken != seen.data[i]);
    }
    // The memory of a value that a layer still reads is not used for gradients.
    for (int i = 0; i < 12; i += 2)
      for (int j = i; j < 12; j += 2) CHECK(seen.data[i] != outputs[5 - j / 2].value.data);
    CHECK(input.gradient()(0) == std::pow(3.0, 6));
  }
}

TEST_CASE("released memory is reused, and a discarded value is recomputed for its reader") {
  Fixture f;
  auto& context = f.context;
  std::array<Index, 1> const extent{40};
  for (auto mode : {nn::Mode::training, nn::Mode::evaluation}) {
    nn::Pass(context).begin_micro_batch(mode, 1);
    auto const released = context.variable<1>(extent);
    context.release(released);
    context.release(nn::Context<double, HostSpace>::Variable<1>{});
    auto const kept = context.variable<1>(extent), remade = context.variable<1>(extent);
    CHECK(kept.value.data == released.value.data);
    CHECK(remade.value.data != kept.value.data);
    context.release_until_backward(kept);  // it is never recomputed, which only evaluation does not need
    CHECK((context.variable<1>(extent).value.data == kept.value.data) == (mode == nn::Mode::evaluation));
  }

  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const plain = context.variable<1>(extent), x = context.variable<1>(extent);
  int made = 0;
  context.on_recompute(x, [&made](auto&, auto to) {
    ++made;
    std::fill_n(to.data, to.size(), 7.0);
  });
  CHECK(context.saved_value(x) == x.value);
  context.release_until_backward(x);
  auto const over = context.variable<1>(extent);
  CHECK(over.value.data == x.value.data);
  CHECK(context.saved_value(plain) == plain.value);
  CHECK(made == 0);
  auto const again = context.saved_value(x);
  CHECK(again.data != over.value.data);
  CHECK(again(39) == 7.0);
  CHECK(context.saved_value(x) == again);
  CHECK(made == 1);
  auto const in_place = context.gradient_in_place_of_value(over);
  CHECK(in_place.data == over.value.data);
  CHECK(context.gradient(over).write == Write::add);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_CASE("members that moved to nn::Pass and to parts run the same pass") {
  Fixture f;
  auto& context = f.context;
  context.bind(f.values.data(), f.gradients.data(), f.layout);
  context.bind_buffers(static_cast<double*>(nullptr));
  context.begin_step();
  context.begin_micro_batch(nn::Mode::training, 1);
  f.model.forward(context, f.batch);
  context.backward({});
  double const once = f.scale_gradient();
  context.restart_micro_batch();
  f.model.forward(context, f.batch);
  context.end_forward();
  context.backward({});
  CHECK(f.scale_gradient() == 2 * once);
  CHECK(context.activation_bytes() == nn::Pass(context).activation_bytes());
  CHECK(context.memory_version() == nn::Pass(context).memory_version());
  nn::Parameter const unvisited{{1}, {}};
  context.add_use(unvisited);
  context.finish_use(unvisited);
  CHECK(context.cached_tokens() == 0);
  CHECK_NOTHROW(context.expect_whole_sequences("mean_pool"));
  CHECK(context.set_mode(nn::Mode::evaluation) == nn::Mode::training);
  CHECK_FALSE(context.recording());
  context.trace(nullptr, nullptr, nullptr);
  CHECK(context.tracer() == nullptr);
  CHECK(&context.arena() == &context.parts().arena);
  CHECK(&context.tape() == &context.parts().tape);
  CHECK(&context.random() == &context.parts().random);
  CHECK(&context.replicas() == &context.parts().replicas);
  CHECK(&context.staging() == &context.parts().staging);
  CHECK(&context.loss_scaling() == &context.parts().loss_scale);
}

TEST_CASE("old names of members call the new ones") {
  Fixture f;
  auto& context = f.context;
  std::array<Index, 1> const extent{40};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const x = context.variable<1>(extent);
  context.can_make_again(x, [](auto&, auto to) { std::fill_n(to.data, to.size(), 7.0); });
  context.set_aside(x);
  CHECK(x.slot->value == nullptr);
  CHECK(context.value_of(x)(39) == 7.0);
  CHECK(context.earlier_tokens() == 0);
  CHECK(&context.kept<int>(&context) == &context.persistent<int>(&context));
  nn::Parameter const unvisited{{1}, {}};
  context.expect_use(unvisited);
  context.used(unvisited);
}

TEST_CASE("members that moved to parts of the context call the parts") {
  Fixture f;
  auto& context = f.context;
  f.loss();
  nn::Pass(context).backward({});
  CHECK(context.written(1));
  std::vector<std::uint8_t> const flags(context.written().begin(), context.written().end());
  nn::Pass(context).begin_step();
  CHECK_FALSE(context.parameters().gradients().written(1));
  context.set_written(flags);
  CHECK(context.parameters().gradients().written(1));
  CHECK(context.touched().empty());
  context.cache().begin_sequences();
  CHECK(context.is_decoding());
  std::array<Index, 2> const extent{2, 3};
  Index const positions[] = {0, 1};
  auto const layout = kernel::SequenceLayout<HostSpace>::padded(1, {}, {positions, {2}});
  auto const x = context.variable<2>(extent).value;
  CHECK(context.recurrent_state(layout, 4).extent == Extents<2>{2, 4});
  CHECK_FALSE(context.is_cached_memory(x));
  Index const rows[] = {1};
  context.select_rows(rows);
  context.end_decoding();
  CHECK_FALSE(context.cache().is_decoding());
  context.bind_group(static_cast<nn::ReplicaGroup*>(nullptr));
  CHECK(context.group() == nullptr);
  CHECK(context.take_exchange_seconds() == 0);
}
#pragma GCC diagnostic pop

TEST_CASE("recomputation frees memory only for itself, until all of it is released") {
  Fixture f;
  nn::Pass(f.context).begin_micro_batch(nn::Mode::training, 1);
  std::array<Index, 1> const extent{40};
  auto const before = f.context.variable<1>(extent);
  f.context.release(before);
  double const *first = nullptr, *second = nullptr;
  auto const inside = [&](auto& c) {
    auto const a = c.template variable<1>(extent);
    c.release(a);
    auto const b = c.template variable<1>(extent);
    first = a.value.data, second = b.value.data;
    c.on_backward(b, std::tie(), [](auto&) {});
    return b;
  };
  static_cast<void>(f.context.recompute(inside));
  CHECK(first == second);
  CHECK(first != before.value.data);
  // returns the memory that it took
  f.context.release(f.context.recompute([before](auto&) { return before; }, before));
  auto const next = f.context.variable<1>(extent);
  CHECK((next.value.data == before.value.data || next.value.data == first));
}

TEST_CASE("a row-sparse gradient equals the dense one, over micro-batches and with uses of the whole table") {
  for (std::vector<table_model::Batch> const& batches : {std::vector<table_model::Batch>{{{3, 69, 3}}},
                                                         {{{3, 69}}, {{69, 0, 1, 2}}},
                                                         {{{3}}, {{}, true}, {{69, 5, 5}}},
                                                         {{{4, 5, 6}, true}, {{}, false}},
                                                         {{{}, false}}})
    CHECK(table_gradients(nn::GradientForm::by_rows, batches) == table_gradients(nn::GradientForm::dense, batches));
}

TEST_CASE("a context without a layout has dense gradients") {
  ThreadPool pool(1);
  nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Parameter table{.shape = {4, 2}, .initializer = {}, .gradient_form = nn::GradientForm::by_rows};
  table.offset = 0, table.ordinal = 0;
  std::vector<double> values(8), gradients(8);
  context.parameters().bind(values.data(), gradients.data(), 1);
  nn::Pass(context).begin_step();
  CHECK(context.parameters().gradients().touched().empty());
  auto const first = context.gradient_by_rows(table), second = context.gradient_by_rows(table);
  CHECK(first.touched.words == nullptr);
  CHECK(first.write == Write::overwrite);
  CHECK(second.write == Write::add);
}

TEST_CASE("a parameter that visit does not name is refused by its shape, before it is read") {
  Fixture f;
  nn::Parameter const forgotten{{2, 3}, nn::Initializer::constant(0)};
  nn::Buffer const kept{{5}};
  CHECK_THROWS_WITH_AS(static_cast<void>(f.context.value<2>(forgotten)), doctest::Contains("shape [2, 3]"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(static_cast<void>(f.context.value<1>(kept)), doctest::Contains("shape [5]"), ConfigError);
}
