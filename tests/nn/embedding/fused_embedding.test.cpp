// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/embedding/fused_embedding.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <lockstep/nn/embedding/embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/pooling/pooling.hpp>

#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

struct Pooled {
  nn::FusedEmbedding embedding;
  explicit Pooled(double dropout) : embedding({.vocabulary = 11, .length = 9, .width = 6, .dropout = dropout}) {}
  void visit(auto&& each) { each("embedding", embedding); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const x = embedding.forward(context, batch.tokens(), batch.places());
    return lockstep_test::irregular_loss(context, nn::mean_pool(context, x));
  }
};

/// One table used twice in a pass, as with tied weights.
struct Twice : Pooled {
  using Pooled::Pooled;
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto loss = Pooled::forward(context, batch);
    loss += Pooled::forward(context, batch);
    return loss;
  }
};

/// Tokens are looked up in the weight of the layer that computes their logits.
struct Tied {
  nn::FusedEmbedding embedding{{.length = 9, .width = 6}};
  nn::Linear head{6, 11, nn::Bias::none};
  void visit(auto&& each) { each("embedding", embedding), each("head", head); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const x = embedding.forward(context, nn::Embedding::of(head.weight(), batch.tokens()), batch.places());
    return lockstep_test::irregular_loss(context, head.forward(context, x).tokens, &x.layout);
  }
};

TokenBatch const mixed({4, 0, 1, 9, 3}, 9, 11);

/// The concatenated tokens of a batch.
struct Ragged {
  struct Column {
    TensorView<std::int32_t const, 1, HostSpace> values;
    TensorView<Index const, 1, HostSpace> offsets;
    Index longest = 0;
    SegmentPlan const* plan = nullptr;
  };
  std::vector<std::int32_t> ids;
  std::vector<Index> offsets{0};
  SegmentPlan plan;
  Column column;

  explicit Ragged(TokenBatch const& batch) {
    for (Index r = 0; r < batch.rows; ++r) {
      auto const* const from = batch.ids.data() + r * batch.length;
      ids.insert(ids.end(), from, from + batch.lengths[static_cast<std::size_t>(r)]);
      offsets.push_back(static_cast<Index>(ids.size()));
    }
    plan.build(ids);
    column = {
        {ids.data(), {static_cast<Index>(ids.size())}}, {offsets.data(), {batch.rows + 1}}, batch.length, nullptr};
  }
  Ragged(Ragged const&) = delete;
};

/// Pooled, from a ragged column of that batch.
struct Model {
  nn::FusedEmbedding embedding;
  Ragged::Column const* column;
  void visit(auto&& each) { each("embedding", embedding); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    return lockstep_test::irregular_loss(context,
                                         nn::mean_pool(context, embedding.forward(context, *column, batch.places())));
  }
};

/// One column twice, interleaved or concatenated.
struct Doubled : Model {
  bool interleaved;
  template <class Context>
  auto tokens(Context& context, TokenBatch const& batch) const {
    if (interleaved) return embedding.forward(context, nn::interleave(*column, *column), batch.places()).tokens;
    return embedding.forward(context, nn::concatenate(*column, *column), batch.places()).tokens;
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    return lockstep_test::irregular_loss(context, tokens(context, batch));
  }
};

/// Three segments: ids of the layer's table and of another one, learned activations, and ids again.
struct Assembled {
  nn::FusedEmbedding embedding;
  nn::Embedding other{5, 6};
  nn::Parameter dense{{45, 6}, nn::Initializer::normal(1)};
  bool interleaved;

  Assembled(nn::FusedEmbedding::Options const& options, bool interleave)
      : embedding(options), interleaved(interleave) {}
  void visit(auto&& each) {
    each("embedding", embedding);
    each("other", other);
    each("dense", dense);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    std::vector<std::int32_t> few;
    for (auto id : batch.ids) few.push_back(id % 5);
    TokenBatch::Column const others{
        {context.template temporary<std::int32_t>(batch.tokens().values.extent).data, batch.tokens().values.extent},
        batch.tokens().lengths};
    std::copy(few.begin(), few.end(), const_cast<std::int32_t*>(others.values.data));
    nn::SequenceOf<Context> const x{lockstep_test::learned(context, dense), batch.layout()};
    auto const loss = [&](auto const& y) { return lockstep_test::irregular_loss(context, y.tokens, &y.layout); };
    auto const both = nn::sum(batch.tokens(), other.of(others));
    if (interleaved) return loss(embedding.forward(context, nn::interleave(both, x, batch.tokens()), batch.places()));
    return loss(embedding.forward(context, nn::concatenate(x, both, other.of(others)), batch.places()));
  }
};

/// One id for each sample, from two tables, as in a table of categories: once as columns of numbers, once as sequences
/// of one id.
struct Categories {
  struct Single {
    TensorView<std::int32_t const, 1, HostSpace> values;
  };
  nn::FusedEmbedding embedding;
  nn::Embedding other{11, 6};
  bool as_sequences;

  Categories(double dropout, bool sequences)
      : embedding({.vocabulary = 11, .width = 6, .dropout = dropout, .norm = nn::Norm::layer}),
        as_sequences(sequences) {}
  void visit(auto&& each) { each("embedding", embedding), each("other", other); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const loss = [&](auto const& ids) {
      auto const x = embedding.forward(context, nn::sum(ids, other.of(ids)), batch.places());
      CHECK(x.tokens.extent(0) == batch.rows);
      return lockstep_test::irregular_loss(context, x.tokens);
    };
    if (as_sequences) return loss(batch.tokens());
    return loss(Single{{batch.ids.data(), {batch.rows}}});
  }
};

}  // namespace

TEST_CASE("parameters: names, shapes and initial values") {
  Pooled model(0);
  auto const layout = nn::ParameterLayout::of(model);
  REQUIRE(layout.entries().size() == 2);
  CHECK(layout.entries()[0].name == "embedding.token");
  CHECK(layout.entries()[0].shape == std::vector<Index>{11, 6});
  CHECK(layout.entries()[1].name == "embedding.position");
  CHECK(layout.entries()[1].shape == std::vector<Index>{9, 6});
  for (auto const& entry : layout.entries()) {
    CHECK(entry.initializer.kind == nn::Initializer::Kind::normal);
    CHECK(entry.initializer.scale == 0.02);
  }
}

TEST_CASE("gradients, with and without dropout, once and twice in a pass") {
  for (double dropout : {0.0, 0.4}) {
    auto const once = check_model(Pooled(dropout), mixed), twice = check_model(Twice(dropout), mixed);
    CAPTURE(once.where);
    CAPTURE(twice.where);
    CHECK(once.ok());
    CHECK(twice.ok());
    CHECK(once.checked == 11 * 6 + 9 * 6);
  }
  auto const tied = check_model(Tied{}, mixed);
  CAPTURE(tied.where);
  CHECK(tied.ok());
  CHECK(tied.checked == 11 * 6 + 9 * 6);
}

TEST_CASE("batches without rows or without tokens give zero gradients") {
  for (auto const& batch :
       {TokenBatch({}, 9, 11), TokenBatch({}, 0, 11), TokenBatch({0, 0}, 9, 11), TokenBatch({0}, 0, 11)}) {
    Trial<Pooled, float> trial(Pooled(0.1));
    trial.gradients.assign(trial.gradients.size(), 5.0f);
    trial.step(batch);
    for (auto const& entry : trial.layout.entries())
      for (Index i = 0; i < entry.size; ++i) CHECK(trial.gradients[static_cast<std::size_t>(entry.offset + i)] == 0);
  }
}

TEST_CASE("the padding id is an ordinary row and gets no gradient from padding") {
  Trial<Pooled, float> trial(Pooled(0.1));
  trial.step(mixed);
  auto const token = trial.layout.entries()[0];
  bool others = false;
  for (Index i = 0; i < token.size; ++i) {
    auto const g = trial.gradients[static_cast<std::size_t>(token.offset + i)];
    if (i < 6) CHECK(g == 0);
    others = others || g != 0;
  }
  CHECK(others);
}

TEST_CASE("evaluation applies no dropout and records nothing") {
  Trial<Pooled, double> with(Pooled(0.4)), without(Pooled(0));
  CHECK(with.evaluate(mixed).sum == without.evaluate(mixed).sum);
  CHECK(with.evaluate(mixed).sum == without.step(mixed).sum);
  CHECK(with.step(mixed).sum != without.step(mixed).sum);
  CHECK(with.step(mixed, 1).sum != with.step(mixed, 2).sum);
}

TEST_CASE("loss and gradients have equal bits for any number of threads") {
  Trial<Pooled, float> one(Pooled(0.2), 1);
  auto const loss = one.step(mixed).sum;
  for (int threads : {2, 3, 4}) {
    Trial<Pooled, float> trial(Pooled(0.2), threads);
    for (int repetition = 0; repetition < 3; ++repetition) {
      CHECK(trial.step(mixed).sum == loss);
      CHECK(trial.gradients == one.gradients);
    }
  }
}

TEST_CASE("one model serves several contexts at once") {
  Trial<Pooled, float> reference(Pooled(0.2));
  auto const loss = reference.step(mixed).sum;
  std::vector<double> losses(2);
  std::vector<std::vector<float>> gradients(2, reference.gradients);
  std::vector<std::thread> replicas;
  for (std::size_t replica = 0; replica < 2; ++replica)
    replicas.emplace_back([&, replica] {
      ThreadPool pool(1);
      nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
      context.parameters().bind(reference.values.data(), gradients[replica].data(), reference.layout.entries().size());
      for (int repetition = 0; repetition < 20; ++repetition) {
        nn::Pass(context).begin_step();
        nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
        losses[replica] = reference.model.forward(context, mixed).sum;
        nn::Pass(context).backward({});
      }
    });
  for (auto& replica : replicas) replica.join();
  CHECK(losses == std::vector<double>{loss, loss});
  for (auto const& g : gradients) CHECK(g == reference.gradients);
}

TEST_CASE("a ragged column gives an equal loss and gradients, with and without a plan of the loader") {
  for (double dropout : {0.0, 0.3}) {
    Trial<Pooled, float> padded((Pooled(dropout)));
    auto const loss = padded.step(mixed).sum;
    Ragged ragged(mixed);
    for (auto* plan : {static_cast<SegmentPlan const*>(nullptr), static_cast<SegmentPlan const*>(&ragged.plan)}) {
      ragged.column.plan = plan;
      Trial<Model, float> trial(Model{Pooled(dropout).embedding, &ragged.column});
      CHECK(trial.step(mixed).sum == loss);
      CHECK(trial.gradients == padded.gradients);
    }
  }
}

TEST_CASE("the column's own plan is used") {
  Ragged ragged(mixed);
  SegmentPlan nothing;
  nothing.build({});
  ragged.column.plan = &nothing;
  Trial<Model, float> trial(Model{Pooled(0).embedding, &ragged.column});
  trial.step(mixed);
  auto const token = trial.layout.entries()[0];
  for (Index i = 0; i < token.size; ++i) CHECK(trial.gradients[static_cast<std::size_t>(token.offset + i)] == 0);
}

TEST_CASE("the plan of one of two columns finds its tokens among the others") {
  nn::FusedEmbedding const embedding({.vocabulary = 11, .width = 6});
  for (bool interleaved : {true, false}) {
    Ragged ragged(mixed);
    Trial<Doubled, float> without(Doubled{{embedding, &ragged.column}, interleaved});
    auto const loss = without.step(mixed).sum;
    ragged.column.plan = &ragged.plan;
    Trial<Doubled, float> with(Doubled{{embedding, &ragged.column}, interleaved});
    CHECK(with.step(mixed).sum == loss);
    CHECK(with.gradients == without.gradients);
  }
}

TEST_CASE("interleaved segments have a position for each step or for each token") {
  Ragged ragged(mixed);
  for (auto unit : {nn::PositionUnit::tokens, nn::PositionUnit::steps}) {
    nn::FusedEmbedding const embedding({.vocabulary = 11, .length = 18, .width = 6, .position_unit = unit});
    Trial<Doubled, float> trial(Doubled{{embedding, &ragged.column}, true});
    nn::Pass(trial.context()).begin_micro_batch(nn::Mode::evaluation, 1);
    auto const y = trial.model.tokens(trial.context(), mixed).value;
    REQUIRE(y.extent == Extents<2>{34, 6});
    for (Index token = 0; token < 34; token += 2)
      CHECK(std::equal(&y(token, 0), &y(token, 0) + 6, &y(token + 1, 0)) == (unit == nn::PositionUnit::steps));
  }
}

TEST_CASE("gradients of all inputs that can be assembled") {
  for (auto norm : {nn::Norm::none, nn::Norm::layer, nn::Norm::rms})
    for (auto unit : {nn::PositionUnit::tokens, nn::PositionUnit::steps})
      for (double dropout : {0.0, 0.3}) {
        nn::FusedEmbedding::Options const options{.vocabulary = 11,
                                                  .length = 27,
                                                  .width = 6,
                                                  .dropout = dropout,
                                                  .types = 3,
                                                  .position_unit = unit,
                                                  .scale = 1.5,
                                                  .norm = norm};
        for (bool interleaved : {false, true}) {
          Trial<Assembled, double> trial(Assembled(options, interleaved));
          for (std::size_t i = 0; i < trial.values.size(); ++i)  // values of size one, because norms divide by it
            trial.values[i] = std::sin(1 + 1.3 * static_cast<double>(i));
          auto const result =
              nn::check_gradients(trial.model, trial.layout, trial.values, mixed, {.max_per_parameter = 200});
          CAPTURE(result.where);
          CHECK(result.ok());
        }
      }
}

TEST_CASE("columns of one id for each sample are sequences of one token") {
  TokenBatch const ones({1, 1, 1, 1, 1}, 1, 11);
  for (double dropout : {0.0, 0.3}) {
    Trial<Categories, double> single(Categories(dropout, false)), sequences(Categories(dropout, true));
    auto const result = nn::check_gradients(single.model, single.layout, single.values, ones);
    CAPTURE(result.where);
    CHECK(result.ok());
    CHECK(single.step(ones).sum == sequences.step(ones).sum);
    CHECK(single.gradients == sequences.gradients);
  }
}

namespace {
/// Equally many ids for each sample, from arrays or from full padded sequences, alone and before a padded segment.
struct Arrays : Pooled {
  nn::Embedding other{11, 6};
  bool padded;
  Arrays(double dropout, bool are_padded) : Pooled(dropout), padded(are_padded) {
    embedding = nn::FusedEmbedding({.vocabulary = 11, .length = 12, .width = 6, .dropout = dropout});
  }
  void visit(auto&& each) { Pooled::visit(each), each("other", other); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    struct {
      TensorView<std::int32_t const, 2, HostSpace> values;
    } const array{batch.tokens().values};
    auto const loss_of = [&](auto const& column) {
      auto const x = embedding.forward(context, nn::sum(column, other.of(column)), batch.places());
      auto loss = lockstep_test::irregular_loss(context, x.tokens);
      auto const y = embedding.forward(context, nn::concatenate(column, other.of(mixed.tokens())), batch.places());
      loss += lockstep_test::irregular_loss(context, nn::mean_pool(context, y));
      return loss;
    };
    return padded ? loss_of(batch.tokens()) : loss_of(array);
  }
};
}  // namespace

TEST_CASE("columns of arrays of ids are sequences of one length") {
  TokenBatch const full({3, 3, 3, 3, 3}, 3, 11);
  for (double dropout : {0.0, 0.3}) {
    Trial<Arrays, double> arrays(Arrays(dropout, false)), sequences(Arrays(dropout, true));
    auto const result = nn::check_gradients(arrays.model, arrays.layout, arrays.values, full);
    CAPTURE(result.where);
    CHECK(result.ok());
    CHECK(arrays.step(full).sum == sequences.step(full).sum);
    CHECK(arrays.gradients == sequences.gradients);
  }
}

TEST_CASE("options create parameters with these names") {
  auto const names = [](nn::FusedEmbedding::Options const& options) {
    nn::FusedEmbedding layer(options);
    auto const layout = nn::ParameterLayout::of(layer);
    std::string out;
    for (auto const& entry : layout.entries()) out += entry.name + " ";
    return out;
  };
  CHECK(names({.width = 4}) == "");
  CHECK(names({.vocabulary = 2, .length = 3, .width = 4}) == "token position ");
  CHECK(names({.width = 4, .types = 2, .norm = nn::Norm::layer}) == "type norm.weight norm.bias ");
  CHECK(names({.width = 4, .norm = nn::Norm::rms}) == "norm.weight ");
  nn::FusedEmbedding layer({.vocabulary = 2, .length = 3, .width = 4, .types = 5, .norm = nn::Norm::layer});
  auto const layout = nn::ParameterLayout::of(layer);
  auto const& all = layout.entries();
  CHECK(all[0].shape == std::vector<Index>{2, 4});
  CHECK(all[1].shape == std::vector<Index>{3, 4});
  CHECK(all[2].shape == std::vector<Index>{5, 4});
  CHECK(all[3].initializer.scale == 1);
  CHECK(all[4].initializer.scale == 0);
}

TEST_CASE("inputs that do not match are refused") {
  Trial<Pooled, double> trial(Pooled(0));
  auto& context = trial.context();
  auto const positions = mixed.places();
  auto const refused = [&](auto const& layer, auto const& what, char const* sentence) {
    CHECK_THROWS_WITH_AS(static_cast<void>(layer.forward(context, what, positions)), doctest::Contains(sentence),
                         ShapeError);
  };
  auto const x = context.variable<2>({45, 5});
  nn::Sequence<double, HostSpace> const dense{x, mixed.layout()};
  nn::FusedEmbedding const narrow({.width = 5, .types = 2}), wide({.width = 6});
  refused(wide, dense, "part 0 of segment 0 has width 5 and the layer 6");
  refused(narrow, mixed.tokens(), "the layer has no table for it");
  refused(narrow, nn::concatenate(dense, dense), "is the same Sequence as part 0");
  refused(narrow, nn::concatenate(dense, dense, dense), "3 segments and 2 types");
  auto const named = [&](nn::FusedEmbedding const& of) {
    auto copy = trial.model;
    copy.embedding = of;
    static_cast<void>(nn::ParameterLayout::of(copy));
    return copy.embedding;
  };
  refused(named(narrow), nn::concatenate(dense, dense, dense), "FusedEmbedding embedding: 3 segments and 2 types");
  refused(named(nn::FusedEmbedding({.length = 9, .width = 6})), dense, "FusedEmbedding embedding: part 0 of segment 0");
  Trial<Categories, double> named_table(Categories(0, false));
  CHECK_THROWS_WITH_AS(
      static_cast<void>(narrow.forward(named_table.context(), named_table.model.other.of(mixed.tokens()), positions)),
      doctest::Contains("part 0 of segment 0 (table other.weight) has width 6 and the layer 5; give both one width"),
      ShapeError);
  TokenBatch const shorter({4, 0, 1, 8, 3}, 8, 11);
  nn::Sequence<double, HostSpace> const other{context.variable<2>({40, 5}), shorter.layout()};
  refused(narrow, nn::sum(dense, other), "has 40 padded slots");
  Ragged ragged(mixed);
  refused(trial.model.embedding, nn::concatenate(mixed.tokens(), ragged.column), "17 ragged slots");
  TokenBatch const uneven({4, 0, 1, 8, 3}, 9, 11);
  nn::Sequence<double, HostSpace> const longer{context.variable<2>({45, 5}), uneven.layout()};
  CHECK_THROWS_WITH_AS(static_cast<void>(narrow.forward(context, nn::sum(dense, longer), positions)),
                       doctest::Contains("has 8 tokens in row 3 of the batch, and the parts before it have 9"),
                       DataError);
}

TEST_CASE("invalid options and columns are refused") {
  auto const make = [](nn::FusedEmbedding::Options const& options) { nn::FusedEmbedding const made(options); };
  CHECK_THROWS_WITH_AS(make({.vocabulary = -1, .length = 1, .width = 1}), doctest::Contains("vocabulary is -1"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(make({.vocabulary = 1, .length = -2, .width = 1}), doctest::Contains("length is -2"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(make({.vocabulary = 1, .length = 1, .width = 0}), doctest::Contains("width is 0"), ConfigError);
  CHECK_THROWS_AS(make({.vocabulary = 1, .length = 1, .width = 1, .dropout = 1}), ConfigError);
  CHECK_THROWS_WITH_AS(make({.width = 1, .epsilon = 0}), doctest::Contains("epsilon is 0"), ConfigError);

  auto bad = mixed;
  bad.positions.pop_back();
  Trial<Pooled, float> trial(Pooled(0));
  auto const positions = TensorView<Index const, 1, HostSpace>(bad.positions.data(), {4});
  CHECK_THROWS_WITH_AS(static_cast<void>(trial.model.embedding.forward(trial.context(), mixed.tokens(), positions)),
                       doctest::Contains("5 rows, 5 lengths and 4 positions"), ShapeError);
  bad = mixed;
  bad.ids[2] = 11;
  CHECK_THROWS_WITH_AS(trial.step(bad), doctest::Contains("the table embedding.token has 11 rows"), DataError);
}

namespace {
struct Typed {
  nn::FusedEmbedding embedding{{.vocabulary = 11, .width = 6, .types = 3}};
  int segments = 1;
  void visit(auto&& each) { each("embedding", embedding); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const x = segments == 1
                       ? embedding.forward(context, batch.tokens(), batch.places())
                       : embedding.forward(context, nn::concatenate(batch.tokens(), batch.tokens()), batch.places());
    return lockstep_test::irregular_loss(context, nn::mean_pool(context, x));
  }
};
}  // namespace

TEST_CASE("token types beyond a pass's segments get a zero gradient") {
  for (int const segments : {1, 2}) {
    CAPTURE(segments);
    auto const result = check_model(Typed{.segments = segments}, mixed);
    CHECK_MESSAGE(result.ok(), result.where);
  }
}
