// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/prediction/predictor.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/nn/attention/attention.hpp>
#include <lockstep/nn/attention/relative_position_bias.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/nn/autograd/sequence_of.hpp>
#include <lockstep/nn/convolution/convolution.hpp>
#include <lockstep/nn/convolution/pad.hpp>
#include <lockstep/nn/convolution/upsample.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/elementwise/multiply.hpp>
#include <lockstep/nn/elementwise/tanh.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/module/encode_once.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/nn/normalization/rms_norm.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/pooling/space_pooling.hpp>
#include <lockstep/nn/random/dropout.hpp>
#include <lockstep/nn/random/standard_normal.hpp>
#include <lockstep/nn/recurrent/recurrent.hpp>
#include <lockstep/nn/transformer/pre_norm.hpp>
#include <lockstep/nn/transformer/transformer_decoder.hpp>
#include <lockstep/nn/transformer/transformer_encoder.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "message_on_stack.hpp"
#include "temporary_folder.hpp"
#include "train/line.hpp"
#include "train/refused_elsewhere.hpp"
#include "translator.hpp"

using namespace lockstep;
using line::Point;

namespace {

/// Dropout, so that prediction in training mode would show; a buffer, so that one must be loaded.
class Model {
 public:
  explicit Model(Index hidden = 4) : first_(1, hidden), second_(hidden, 2) {}
  void visit(auto&& each) {
    each("first", first_);
    each("second", second_);
    each("shift", shift_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = batch[&Point::x].values;
    auto const hidden = first_.forward(context, context.input(x.reshape(Extents<2>{x.extent[0], 1})));
    auto const logits = second_.forward(context, dropout_.forward(context, hidden, batch.positions()));
    for (auto& logit : logits.value.span())
      logit = static_cast<typename Context::Scalar>(logit + context.template value<1>(shift_)(0));
    return logits;
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Point::label]);
  }

 private:
  nn::Linear first_, second_;
  nn::Dropout dropout_{0.5};
  nn::Buffer shift_{{1}, nn::Initializer::constant(0.25)};
};

/// Predicts noise.
struct Noise {
  void visit(auto&&) {}
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = batch[&Point::x].values;
    return nn::standard_normal_like(context, context.input(x.reshape(Extents<2>{x.extent[0], 1})), batch.positions());
  }
};

/// Calls a function during its prediction.
struct Meanwhile {
  std::function<void()> const* run;
  void visit(auto&&) {}
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    (*run)();
    auto const x = batch[&Point::x].values;
    return context.input(x.reshape(Extents<2>{x.extent[0], 1}));
  }
};

/// Parts of the model, under two names, and the model as a part.
struct Part {
  nn::Linear layer{1, 4};
  void visit(auto&& each) { each("layer", layer); }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = batch[&Point::x].values;
    return layer.forward(context, context.input(x.reshape(Extents<2>{x.extent[0], 1})));
  }
};
struct First : Part {
  void visit(auto&& each) { each("first", layer); }
};
struct Outer {
  Model model = Model();
  void visit(auto&& each) { each("inner", model); }
  auto predict(auto& context, auto const& batch) const { return model.predict(context, batch); }
  auto loss(auto& context, auto const& logits, auto const& batch) const { return model.loss(context, logits, batch); }
};

/// Stores the predictions of the trainer's own evaluation.
struct Keep {
  std::vector<float>* kept;
  void add(auto const& prediction, auto const&) {
    kept->assign(prediction.value.data, prediction.value.data + prediction.value.size());
  }
  std::span<double> totals() { return {}; }
  double value() const { return 0; }
  char const* name() const { return "keep"; }
};

}  // namespace

TEST_CASE("parameters are loaded under other names") {
  lockstep_test::TemporaryFolder const folder;
  Trainer trainer{Model{}, optim::AdamW{}, parallel::SingleDevice{.threads = 1}, 3};
  trainer.save(folder / "p");
  auto bytes = lockstep_test::read_file(folder / "p");
  for (std::size_t at = 0; (at = bytes.find("\"first.", at)) != std::string::npos;) bytes.replace(at, 7, "\"input.");
  lockstep_test::write_file(folder / "theirs", bytes);
  auto const names = [](std::string_view name) {
    return name.starts_with("first.") ? "input." + std::string(name.substr(6)) : std::string(name);
  };
  train::Predictor<Model> own(Model{}, folder / "p"), theirs(Model{}, folder / "theirs", names);
  data::Collated const batch{data::PadCollate{}, line::points(5)};
  CHECK(own.predict(batch.batch()).value.span()[3] == theirs.predict(batch.batch()).value.span()[3]);
  CHECK_THROWS_WITH_AS(train::Predictor<Model>(Model{}, folder / "theirs"), doctest::Contains("\"first.weight\""),
                       DataError);
}

TEST_CASE("a predictor refuses names with new rows, which nothing has trained") {
  lockstep_test::TemporaryFolder const folder;
  Trainer trainer{Model{}, optim::AdamW{}, parallel::SingleDevice{.threads = 1}, 3};
  trainer.save(folder / "p");
  CHECK_THROWS_WITH_AS(train::Predictor<Model>(Model{}, folder / "p", train::NamesInFile().with_new_rows("second.")),
                       doctest::Contains("a predictor cannot have new rows"), ConfigError);
}

TEST_CASE("training, evaluation and prediction on a thread with a small stack are errors, not crashes") {
  data::DataLoader loader{
      data::InMemoryDataset{line::points(9)}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 9}};
  data::Collated const batch{data::PadCollate{}, line::points(9)};
  Trainer trainer{Model{}, optim::AdamW{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  train::Predictor predictor{Model{}, trainer};
  auto const message = [](auto call) { return lockstep_test::message_on_stack(std::size_t{128} << 10, call); };
  CHECK(message([&] { trainer.fit(loader); }).starts_with("fit: the calling thread has a stack of 1"));
  CHECK(message([&] { trainer.step(batch); }).starts_with("step: the calling thread has a stack of 1"));
  CHECK(message([&] { static_cast<void>(trainer.evaluate(train::Evaluation{loader})); }).starts_with("evaluate: "));
  CHECK(message([&] { static_cast<void>(predictor.predict(batch.batch())); }).starts_with("Predictor: "));
  CHECK(lockstep_test::message_on_stack(std::size_t{1} << 20, [&] {
          trainer.fit(loader);
          static_cast<void>(predictor.predict(batch.batch()));
        }).empty());
}

namespace {
/// A norm whose scale and shift are not in the file, as of LayerNorm(elementwise_affine=False), and a given table.
struct Scaled {
  nn::Linear layer{1, 4};
  nn::LayerNorm norm{4};
  nn::Parameter table{{4}, nn::Initializer::given(given.data())};
  static constexpr std::array<float, 4> given{1, 2, 3, 4};
  void visit(auto&& each) { each("layer", layer), each("norm", norm), each("table", table); }
  auto predict(auto& context, auto const& batch) const {
    auto const x = batch[&Point::x].values;
    auto const y = norm.forward(context, layer.forward(context, context.input(x.reshape(Extents<2>{x.extent[0], 1}))));
    auto const shift = context.template value<1>(table);
    for (Index i = 0; i < y.value.size(); ++i) y.value.data[i] += shift(i % 4);
    return y;
  }
};
}  // namespace

TEST_CASE(
    "a predictor keeps constant and given initial values of parameters that are not in the file, and refuses "
    "others") {
  lockstep_test::TemporaryFolder const folder;
  Part part;
  auto const layout = nn::ParameterLayout::of(part);
  train::save_parameters(folder / "p", layout, nn::initial_values(layout, 5));
  auto const only = [](std::string_view prefix) {
    return [prefix](std::string_view name) { return std::string(name.starts_with(prefix) ? name : ""); };
  };
  train::Predictor<Scaled> predictor(Scaled{}, folder / "p", only("layer."));
  data::Collated const batch{data::PadCollate{}, line::points(5)};
  auto const y = predictor.predict(batch.batch()).value;
  for (Index r = 0; r < 5; ++r) {
    double sum = 0, squares = 0;
    for (Index c = 0; c < 4; ++c) {
      double const normed =
          static_cast<double>(y(r, c)) - static_cast<double>(Scaled::given[static_cast<std::size_t>(c)]);
      sum += normed;
      squares += normed * normed;
    }
    CHECK(std::abs(sum) < 1e-5);  // the scale is 1 and the shift 0, so each row has mean 0 and variance 1
    CHECK(squares == doctest::Approx(4).epsilon(1e-3));
  }
  CHECK_THROWS_WITH_AS(train::Predictor<Scaled>(Scaled{}, folder / "p", only("layer.weight")),
                       doctest::Contains("leave out \"layer.bias\", but a predictor needs all parameters whose initial "
                                         "values are random"),
                       ConfigError);
  Trainer trainer{Model{}, optim::AdamW{}, parallel::SingleDevice{.threads = 1}, 3};
  trainer.save(folder / "buffers");
  auto const without_shift = [](std::string_view name) { return std::string(name == "shift" ? "" : name); };
  CHECK_THROWS_WITH_AS(train::Predictor<Model>(Model{}, folder / "buffers", without_shift),
                       doctest::Contains("leave out \"shift\", but a predictor needs all buffers"), ConfigError);
}

TEST_CASE("a predictor equals the trainer's evaluation, from a file or from given arenas") {
  data::DataLoader loader{
      data::InMemoryDataset{line::points(9)}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 9}};
  Trainer trainer{Model{}, optim::AdamW{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  trainer.fit(loader);
  std::vector<float> expected;
  static_cast<void>(trainer.evaluate(train::Evaluation{loader, Keep{&expected}}));
  REQUIRE(expected.size() == 18);

  lockstep_test::TemporaryFolder const folder;
  train::save_parameters(folder / "line.safetensors", trainer.layout(), trainer.values(), {{"about", "a line"}},
                         trainer.buffers());
  train::Predictor loaded{Model{}, folder / "line.safetensors"};
  train::Predictor copied{Model{}, trainer.values(), trainer.buffers(), 2};
  CHECK(loaded.metadata() == train::Metadata{{"about", "a line"}});
  CHECK(copied.metadata().empty());
  data::Collated const batch{data::PadCollate{}, line::points(9)};
  for (auto* predictor : {&loaded, &copied})
    for (int again = 0; again < 2; ++again) {
      auto const logits = predictor->predict(batch.batch());
      CHECK(std::vector<float>(logits.value.data, logits.value.data + logits.value.size()) == expected);
    }
  train::Predictor low{nn::InBfloat16{Model{}}, folder / "line.safetensors"};
  auto const rounded = low.predict(batch.batch());
  // Three roundings to 8 bits, of numbers of at most 4.
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(std::abs(static_cast<float>(rounded.value.data[i]) - expected[i]) <= 3 * 4 * 0x1p-8f);

  auto const* const model = &loaded.model();
  auto moved = std::move(loaded);
  CHECK(&moved.model() == model);  // or the layers' kept objects would be created again, and the old never freed
  CHECK(moved.predict(batch.batch()).value(3, 1) == expected[7]);

  // It follows a trainer that continues.
  trainer.step(batch.batch());
  static_cast<void>(trainer.evaluate(train::Evaluation{loader, Keep{&expected}}));
  REQUIRE(moved.predict(batch.batch()).value(3, 1) != expected[7]);
  moved.set(trainer.values(), trainer.buffers());
  CHECK(moved.predict(batch.batch()).value(3, 1) == expected[7]);
  CHECK_THROWS_AS(moved.set(trainer.values()), ShapeError);  // without its buffers
  CHECK_THROWS_AS(moved.set(trainer.values().first(1), trainer.buffers()), ShapeError);
  CHECK(moved.predict(batch.batch()).value(3, 1) == expected[7]);
  trainer.step(batch.batch());
  moved.set(trainer);
  train::Predictor<Model> by_name(Model{}, trainer);
  CHECK(moved.predict(batch.batch()).value(3, 1) != expected[7]);
  CHECK(by_name.predict(batch.batch()).value(3, 1) == moved.predict(batch.batch()).value(3, 1));
}

TEST_CASE("a predictor of a part loads it by name") {
  Trainer trainer{Model{}, optim::AdamW{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  data::Collated const batch{data::PadCollate{}, line::points(3)};
  train::Predictor first(First{}, trainer);
  auto const weight = trainer.values().subspan(static_cast<std::size_t>(trainer.layout().entries()[0].offset));
  auto const check = [&] {
    auto const y = first.predict(batch.batch());
    auto const bias = trainer.values()[static_cast<std::size_t>(trainer.layout().entries()[1].offset)];
    CHECK(y.value(2, 0) == doctest::Approx(double{weight[0]} * line::points(3)[2].x + bias));
  };
  check();
  trainer.step(batch);
  first.set(trainer);
  check();
  CHECK_THROWS_WITH_AS(train::Predictor(Part{}, trainer), doctest::Contains("has no \"layer.weight\""), ConfigError);
  Trainer outer{Outer{}, optim::AdamW{}, parallel::SingleDevice{.threads = 1}};
  train::Predictor whole(Outer{}, outer);
  train::Predictor part(Model{}, outer, "inner.");
  CHECK(part.predict(batch.batch()).value(1, 1) == whole.predict(batch.batch()).value(1, 1));
  lockstep_test::TemporaryFolder const folder;
  outer.save(folder / "outer");
  train::Predictor saved(Model{}, folder / "outer", "inner.");
  CHECK(saved.predict(batch.batch()).value(1, 1) == whole.predict(batch.batch()).value(1, 1));
  CHECK_THROWS_WITH_AS(train::Predictor(Model{}, folder / "outer", std::string("other.")),
                       doctest::Contains("\"other.first.weight\""), DataError);
}

TEST_CASE("a concurrent call is refused, and does not affect the first one") {
  data::Collated const batch{data::PadCollate{}, line::points(3)};
  std::function<void()> meanwhile;
  train::Predictor predictor(Meanwhile{&meanwhile}, std::span<float const>());
  int refused = 0;
  auto const refuses = [&](auto call) { refused += lockstep_test::refused_elsewhere(call, "one for each thread"); };
  meanwhile = [&, met = false]() mutable {
    if (std::exchange(met, true)) return;
    refuses([&] { static_cast<void>(predictor.predict(batch.batch())); });
    refuses([&] { static_cast<void>(predictor.begin(batch.batch())); });
    refuses([&] { static_cast<void>(predictor.next(batch.batch())); });
    refuses([&] { predictor.set(std::span<float const>()); });
    refuses([&] { predictor.set(Trainer{Model{}, optim::AdamW{}, parallel::SingleDevice{.threads = 1}}); });
  };
  CHECK(predictor.predict(batch.batch()).value(2, 0) == line::points(3)[2].x);
  CHECK(refused == 5);
  meanwhile = [] { throw std::runtime_error("the model's own"); };
  CHECK_THROWS_WITH(static_cast<void>(predictor.predict(batch.batch())), "the model's own");
  meanwhile = [] {};
  CHECK(predictor.predict(batch.batch()).value(2, 0) == line::points(3)[2].x);
}

TEST_CASE("predictors of several threads share parameters, until one sets others") {
  data::Collated const batch{data::PadCollate{}, line::points(9)};
  Trainer trainer{Model{}, optim::AdamW{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  train::Predictor alone{Model{}, trainer};
  auto const of = [&](auto& predictor) {
    auto const logits = predictor.predict(batch.batch());
    return std::vector<float>(logits.value.data, logits.value.data + logits.value.size());
  };
  auto const expected = of(alone);
  auto first = std::make_unique<train::Predictor<Model>>(Model{}, trainer);
  auto second = first->share(), third = second.share(2);
  CHECK(&second.model() == &first->model());
  std::vector<std::thread> threads;
  std::atomic<int> equal = 0;
  for (auto* each : {first.get(), &second, &third})
    threads.emplace_back([&, each] {
      for (int again = 0; again < 50; ++again) equal += of(*each) == expected;
    });
  for (auto& thread : threads) thread.join();
  CHECK(equal == 150);

  trainer.step(batch.batch());
  second.set(trainer.values(), trainer.buffers());
  auto const later = of(second);
  CHECK(later != expected);
  CHECK(of(*first) == expected);
  CHECK(of(third) == expected);
  CHECK_THROWS_AS(third.set(Trainer{Part{}, optim::AdamW{}, parallel::SingleDevice{.threads = 1}}), ConfigError);
  CHECK(of(third) == expected);
  first->set(trainer);
  CHECK(of(*first) == later);
  first.reset();
  CHECK(of(third) == expected);
  CHECK(of(second) == later);
}

TEST_CASE("random numbers in a prediction differ from one to the next, and follow from the seed") {
  data::Collated const batch{data::PadCollate{}, line::points(3)};
  auto const draws = [&](auto... seed) {
    train::Predictor predictor(Noise{}, std::span<float const>());
    (predictor.set_seed(seed), ...);
    std::vector<std::vector<float>> all;
    for (int i = 0; i < 3; ++i) {
      auto const made = predictor.predict(batch.batch()).value.span();
      all.emplace_back(made.begin(), made.end());
    }
    return all;
  };
  auto const first = draws();
  CHECK(first[0] != first[1]);
  CHECK(first[1] != first[2]);
  CHECK(draws() == first);
  CHECK(draws(0u) == first);
  CHECK(draws(1u) != first);
}

TEST_CASE("parameters of another model are refused") {
  lockstep_test::TemporaryFolder const folder;
  Model other(5);
  auto const layout = nn::ParameterLayout::of(other);
  std::vector<float> const values(static_cast<std::size_t>(layout.size())),
      buffers(static_cast<std::size_t>(layout.buffer_size()));
  train::save_parameters(folder / "other.safetensors", layout, values, {}, buffers);
  CHECK_THROWS_WITH_AS((train::Predictor{Model{}, folder / "other.safetensors"}), doctest::Contains("first.weight"),
                       DataError);
  auto const some = [](std::string_view name) { return std::string(name.starts_with("first.") ? name : ""); };
  CHECK_THROWS_WITH_AS((train::Predictor{Model(5), folder / "other.safetensors", some}),
                       doctest::Contains("but a predictor needs all parameters"), ConfigError);
  Model const large(500);
  CHECK_THROWS_WITH_AS(
      (train::Predictor{large, std::span<float const>(values)}),
      doctest::Contains("give those of the same model: values() and buffers() of a trainer, or the trainer itself"),
      ShapeError);
  CHECK_THROWS_AS((train::Predictor{Model{}, folder / "none.safetensors"}), DataError);
}

namespace {

struct Text {
  std::vector<std::int32_t> tokens;
};
constexpr Index vocabulary = 17, longest = 9;

/// Layers with a norm before each part and one that is used twice; and layers with a relative bias.
struct LanguageModel {
  void visit(auto&& each) {
    each("embedding", embedding), each("layers", layers), each("twice", twice);
    each("bias", bias), each("attention", attention), each("head", head);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto x = embedding.forward(context, batch[&Text::tokens], batch.positions());
    x = twice.forward(context, twice.forward(context, layers.forward(context, x)));
    return head.forward(context, attention.forward(context, x, bias.forward(context, x)));
  }

  nn::FusedEmbedding embedding{{.vocabulary = vocabulary, .length = longest, .width = 8, .norm = nn::Norm::layer}};
  nn::TransformerEncoder layers{
      {.layers = 2, .width = 8, .heads = 2, .feed_forward = 12, .dropout = 0.5, .causal = true, .norm_first = true}};
  nn::TransformerEncoderLayer twice{{.width = 8, .heads = 4, .feed_forward = 12, .causal = true}};
  nn::RelativePositionBias bias{{.heads = 2, .buckets = 4, .farthest = 6, .causal = true}};
  nn::PreNorm<nn::RMSNorm, nn::MultiHeadAttention> attention{
      nn::RMSNorm(8), nn::MultiHeadAttention({.width = 8, .heads = 2, .causal = true}), 0.1};
  nn::Linear head{8, vocabulary};
};

/// Layers that run token by token.
struct RecurrentModel {
  void visit(auto&& each) { each("embedding", embedding), each("lstm", lstm), each("gru", gru), each("head", head); }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = embedding.forward(context, batch[&Text::tokens], batch.positions());
    return head.forward(context, gru.forward(context, lstm.forward(context, x)));
  }

  nn::FusedEmbedding embedding{{.vocabulary = vocabulary, .width = 8}};
  nn::LSTM lstm{8, 12};
  nn::GRU gru{12, 8};
  nn::Linear head{8, vocabulary};
};

/// Causal convolutions, one of them depthwise, over more tokens than the texts begin with.
struct CausalModel {
  void visit(auto&& each) { each("embedding", embedding), each("wide", wide), each("deep", deep), each("head", head); }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = embedding.forward(context, batch[&Text::tokens], batch.positions());
    auto const y = nn::tanh(context, wide.forward(context, x));
    return head.forward(context, nn::tanh(context, deep.forward(context, y)));
  }

  nn::FusedEmbedding embedding{{.vocabulary = vocabulary, .width = 8}};
  nn::Conv1d wide{8, 12, {.kernel = 2, .causal = true}},
      deep{12, 12, {.kernel = 3, .dilation = 4, .groups = 12, .causal = true}};
  nn::Linear head{12, vocabulary};
};

/// Rotary positions, with shared heads.
struct RotaryModel {
  void visit(auto&& each) { each("embedding", embedding), each("attention", attention), each("head", head); }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = embedding.forward(context, batch[&Text::tokens], batch.positions());
    return head.forward(context, attention.forward(context, x));
  }

  nn::FusedEmbedding embedding{{.vocabulary = vocabulary, .width = 8}};
  nn::PreNorm<nn::RMSNorm, nn::MultiHeadAttention> attention{
      nn::RMSNorm(8),
      nn::MultiHeadAttention({.width = 8, .heads = 4, .causal = true, .rotary_base = 10, .key_heads = 2})};
  nn::Linear head{8, vocabulary};
};

template <class M>
[[nodiscard]] std::vector<float> initial_values(M model) {
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size()));
  nn::initialize(layout, 3, values.data());
  for (auto& value : values) value *= 2;  // so that each token matters
  return values;
}
template <class M>
[[nodiscard]] M make() {
  if constexpr (std::is_default_constructible_v<M>)
    return M{};
  else
    return []<class Inner>(std::type_identity<nn::InBfloat16<Inner>>) { return M(Inner{}); }(std::type_identity<M>{});
}
template <class M>
[[nodiscard]] train::Predictor<M> predictor_of(M model, int threads = 1) {
  auto const values = initial_values(model);
  return train::Predictor<M>(model, std::span<float const>(values), {}, threads);
}

/// The tokens [from, to) of this many texts.
[[nodiscard]] std::vector<Text> texts(Index rows, Index from, Index to) {
  std::vector<Text> all(static_cast<std::size_t>(rows));
  for (Index row = 0; row < rows; ++row)
    for (Index i = from; i < to; ++i)
      all[static_cast<std::size_t>(row)].tokens.push_back(
          static_cast<std::int32_t>((5 * row + 3 * i + i * i) % vocabulary));
  return all;
}
template <class Collate = data::PadCollate>
[[nodiscard]] data::Collated<Collate, Text> batch_of(Index rows, Index from, Index to) {
  return {Collate{}, texts(rows, from, to)};
}

}  // namespace

TEST_CASE_TEMPLATE("token by token, predictions have the bits of predictions for whole sequences", M, LanguageModel,
                   nn::InBfloat16<LanguageModel>, CausalModel, nn::InBfloat16<CausalModel>, RecurrentModel,
                   nn::InBfloat16<RecurrentModel>, RotaryModel, nn::InBfloat16<RotaryModel>) {
  M const model = make<M>();
  auto whole = predictor_of(model), by_token = predictor_of(model, 2);
  auto const check = [&]<class Collate>(Collate, Index rows, Index first) {
    for (Index tokens = first; tokens <= longest; ++tokens) {
      CAPTURE(rows);
      CAPTURE(tokens);
      auto const all = batch_of<Collate>(rows, 0, tokens);
      auto const expected = whole.predict(all.batch()).tokens.value;
      bool const begins = tokens == first;
      auto const some = batch_of<Collate>(rows, begins ? 0 : tokens - 1, tokens);
      auto const got = (begins ? by_token.begin(some.batch()) : by_token.next(some.batch())).tokens.value;
      Index const here = begins ? tokens : 1;
      REQUIRE(got.extent == Extents<2>{rows * here, vocabulary});
      bool equal = true;
      for (Index row = 0; row < rows; ++row)
        for (Index i = 0; i < here * vocabulary; ++i)
          equal = equal && got.data[row * here * vocabulary + i] ==
                               expected.data[(row * tokens + tokens - here) * vocabulary + i];
      CHECK(equal);
      // Predictions in between change nothing.
      CHECK(by_token.predict(all.batch()).tokens.value(0, 3) == expected(0, 3));
    }
  };
  check(data::PadCollate{}, 1, 1);
  check(data::PadCollate{}, 1, 4);
  check(data::PadCollate{}, 3, 2);
  constexpr bool convolves = std::is_same_v<M, CausalModel> || std::is_same_v<M, nn::InBfloat16<CausalModel>>;
  if constexpr (!convolves) check(data::RaggedCollate{}, 3, 3);  // a convolution does not support this
  check(data::PadCollate{}, 2, longest);
}

namespace {

/// Continues sequences of unequal lengths by begin, next, add and select. Compares each with a prediction for it alone.
/// `sample(row, from, to)` is the part of a sequence: row counts all sequences.
template <class Collate>
void check_unequal(auto& by_token, auto& whole, Collate const& collate, auto const& sample) {
  struct Row {
    Index sequence, tokens;
  };
  std::vector<Row> rows;
  auto const compare = [&](auto const& prediction, std::span<Row const> now) {
    REQUIRE(prediction.layout.rows == std::ssize(now));
    for (Index r = 0; r < std::ssize(now); ++r) {
      auto const sequence = now[static_cast<std::size_t>(r)].sequence, tokens = now[static_cast<std::size_t>(r)].tokens;
      CAPTURE(sequence);
      CAPTURE(tokens);
      std::vector const alone{sample(sequence, Index{0}, tokens)};
      auto const expected = whole.predict(data::Collated{collate, alone}.batch()).tokens.value;
      auto const slot = prediction.layout.start(r) + prediction.layout.tokens(r) - 1, classes = expected.extent[1];
      CHECK(std::equal(expected.data + (tokens - 1) * classes, expected.data + tokens * classes,
                       prediction.tokens.value.data + slot * classes));
    }
  };
  auto const begin = [&](std::vector<Row> const& more, bool first) {
    std::vector<decltype(sample(0, 0, 1))> samples;
    for (auto const& row : more) samples.push_back(sample(row.sequence, Index{0}, row.tokens));
    data::Collated const batch{collate, samples};
    compare(first ? by_token.begin(batch.batch()) : by_token.add(batch.batch()), more);
    if (first) rows.clear();
    rows.insert(rows.end(), more.begin(), more.end());
    CHECK(by_token.sequences() == std::ssize(rows));
  };
  auto const next = [&] {
    std::vector<decltype(sample(0, 0, 1))> samples;
    for (auto& row : rows) samples.push_back(sample(row.sequence, row.tokens, row.tokens + 1));
    for (auto& row : rows) ++row.tokens;
    compare(by_token.next(data::Collated{collate, samples}.batch()), rows);
  };
  auto const select = [&](std::vector<Index> const& chosen) {
    by_token.select(chosen);
    auto const before = std::exchange(rows, {});
    for (auto const row : chosen) rows.push_back(before[static_cast<std::size_t>(row)]);
  };
  begin({{0, 3}, {1, 1}, {2, 4}}, true);
  next();
  begin({{3, 2}, {4, 4}}, false);
  next();
  next();
  select({4, 0, 2, 2, 3});
  next();
  select({1, 3});
  begin({{5, 1}}, false);
  next();
  select({});
  CHECK_THROWS_AS(static_cast<void>(by_token.select(std::vector<Index>{})), ConfigError);
  begin({{6, 2}, {7, 3}}, false);
  next();
  begin({{1, 2}, {0, 1}}, true);
  next();
}

}  // namespace

TEST_CASE_TEMPLATE("sequences of unequal lengths continue with the bits of each alone", M, LanguageModel,
                   nn::InBfloat16<LanguageModel>, CausalModel, RecurrentModel, nn::InBfloat16<RecurrentModel>,
                   RotaryModel, nn::InBfloat16<RotaryModel>) {
  M const model = make<M>();
  auto whole = predictor_of(model), by_token = predictor_of(model, 2);
  auto const sample = [](Index sequence, Index from, Index to) {
    return texts(sequence + 1, from, to)[static_cast<std::size_t>(sequence)];
  };
  check_unequal(by_token, whole, data::PadCollate{}, sample);
  if constexpr (!std::is_same_v<M, CausalModel>) check_unequal(by_token, whole, data::RaggedCollate{}, sample);
}

namespace {
struct Frugal : LanguageModel {
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    return nn::newest_token(context, LanguageModel::predict(context, batch));
  }
};
}  // namespace

TEST_CASE("the newest token is all tokens except where token-by-token prediction begins") {
  auto whole = predictor_of(LanguageModel{});
  auto by_token = predictor_of(Frugal{});
  auto const sample = [](Index sequence, Index from, Index to) {
    return texts(sequence + 1, from, to)[static_cast<std::size_t>(sequence)];
  };
  check_unequal(by_token, whole, data::RaggedCollate{}, sample);
  auto const batch = batch_of(2, 0, 3);
  CHECK(by_token.begin(batch.batch()).tokens.value.extent == Extents<2>{2, vocabulary});
  CHECK(by_token.predict(batch.batch()).tokens.value.extent == Extents<2>{6, vocabulary});
}

TEST_CASE("after an error in add, the other sequences continue") {
  auto whole = predictor_of(LanguageModel{}), by_token = predictor_of(LanguageModel{});
  static_cast<void>(by_token.begin(batch_of(2, 0, 3).batch()));
  CHECK_THROWS_AS(static_cast<void>(by_token.add(batch_of(1, 0, longest + 1).batch())), DataError);
  CHECK(by_token.sequences() == 2);
  auto const got = by_token.next(batch_of(2, 3, 4).batch()).tokens.value;
  auto const expected = whole.predict(batch_of(2, 0, 4).batch()).tokens.value;
  for (Index c = 0; c < vocabulary; ++c) CHECK(got(1, c) == expected(7, c));
}

namespace {
/// Classifies a text by its last token.
struct Judge : LanguageModel {
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    return nn::last_token(context, LanguageModel::predict(context, batch));
  }
};
}  // namespace

TEST_CASE("the last token in token-by-token decoding is the whole sequence's") {
  auto whole = predictor_of(Judge{}), by_token = predictor_of(Judge{});
  static_cast<void>(by_token.begin(batch_of(3, 0, 2).batch()));
  for (Index tokens = 3; tokens <= longest; ++tokens) {
    auto const expected = whole.predict(batch_of(3, 0, tokens).batch()).value;
    auto const got = by_token.next(batch_of(3, tokens - 1, tokens).batch()).value;
    CHECK(std::equal(expected.data, expected.data + expected.size(), got.data));
  }
}

namespace {

struct Translation {
  std::vector<std::int32_t> source, tokens;
};

/// The encoder of the whole source may be anything; layers of each kind attend to it.
struct Translator {
  void visit(auto&& each) {
    each("source", source), each("encoder", encoder), each("tokens", tokens), each("decoder", decoder);
    each("bias", bias), each("distances", distances), each("attention", attention), each("memory", memory);
    each("head", head);
  }
  auto predict(auto& context, auto const& batch) const {
    auto const read = nn::encode_once(context, [&] {
      auto const x = encoder.forward(context, source.forward(context, batch[&Translation::source], batch.positions()));
      return nn::multiply(context, x, nn::mean_pool(context, x));
    });
    auto x = tokens.forward(context, batch[&Translation::tokens], batch.positions());
    x = decoder.forward(context, x, read);
    x = attention.forward(context, x, bias.forward(context, x));
    x = memory.forward(context, x, read, distances.forward(context, x.layout, read.layout));
    return head.forward(context, memory.forward(context, x, nn::encode_once(context, [&] { return read; })));
  }

  nn::FusedEmbedding source{{.vocabulary = vocabulary, .length = longest, .width = 8}};
  nn::TransformerEncoder encoder{{.layers = 1, .width = 8, .heads = 2, .feed_forward = 12}};
  nn::FusedEmbedding tokens{{.vocabulary = vocabulary, .length = longest, .width = 8}};
  nn::TransformerDecoder decoder{{.layers = 2, .width = 8, .heads = 2, .feed_forward = 12, .norm_first = true}};
  nn::RelativePositionBias bias{{.heads = 2, .buckets = 4, .farthest = 6, .causal = true}};
  nn::RelativePositionBias distances{{.heads = 2, .buckets = 8, .farthest = 6}};
  nn::MultiHeadAttention attention{{.width = 8, .heads = 2, .causal = true}};
  nn::MultiHeadAttention memory{{.width = 8, .heads = 2}};
  nn::Linear head{8, vocabulary};
};

/// Recurrent layers that begin from the encoder's last state.
struct RecurrentTranslator {
  void visit(auto&& each) {
    each("embedding", embedding), each("encoder", encoder), each("gru", gru), each("lstm", lstm), each("head", head);
  }
  auto predict(auto& context, auto const& batch) const {
    auto const read = nn::encode_once(context, [&] {
      return encoder.forward(context, embedding.forward(context, batch[&Translation::source], batch.positions()));
    });
    auto const state = nn::last_token(context, read);
    auto const x = embedding.forward(context, batch[&Translation::tokens], batch.positions());
    return head.forward(context, lstm.forward(context, gru.forward(context, x, state), state, state));
  }

  nn::FusedEmbedding embedding{{.vocabulary = vocabulary, .width = 8}};
  nn::GRU encoder{8, 8}, gru{8, 8};
  nn::LSTM lstm{8, 8};
  nn::Linear head{8, vocabulary};
};

/// The tokens [from, to) of this many translations, of sources of different lengths, or of none.
template <class Collate>
[[nodiscard]] data::Collated<Collate, Translation> translations(Index rows, Index from, Index to, bool with_source) {
  std::vector<Translation> all;
  for (auto& text : texts(rows, from, to)) {
    Translation one{{}, std::move(text.tokens)};
    auto const row = std::ssize(all);
    for (Index i = 0; with_source && i < 1 + (3 * row + 4) % longest; ++i)
      one.source.push_back(static_cast<std::int32_t>((i * i + row) % vocabulary));
    all.push_back(std::move(one));
  }
  return {Collate{}, all};
}

}  // namespace

TEST_CASE_TEMPLATE("translations of unequal lengths continue with the bits of each alone", M, Translator,
                   RecurrentTranslator, nn::InBfloat16<Translator>) {
  M const model = make<M>();
  auto whole = predictor_of(model), by_token = predictor_of(model, 2);
  auto const sample = [](Index sequence, Index from, Index to) {
    Translation out;
    for (Index i = 0; from == 0 && i <= (3 * sequence + 2) % 5; ++i)
      out.source.push_back(static_cast<std::int32_t>((7 * sequence + i * i) % vocabulary));
    for (Index i = from; i < to; ++i)
      out.tokens.push_back(static_cast<std::int32_t>((5 * sequence + 3 * i) % vocabulary));
    return out;
  };
  check_unequal(by_token, whole, data::RaggedCollate{}, sample);
  check_unequal(by_token, whole, data::PadCollate{}, sample);
}

TEST_CASE_TEMPLATE("a decoder runs token by token with a memory that was encoded once, with equal bits", M, Translator,
                   nn::InBfloat16<Translator>, RecurrentTranslator, nn::InBfloat16<RecurrentTranslator>) {
  M const model = make<M>();
  auto whole = predictor_of(model), by_token = predictor_of(model, 2);
  auto const check = [&]<class Collate>(Collate, Index rows, Index first) {
    for (Index to = first; to <= longest; ++to) {
      CAPTURE(rows);
      CAPTURE(to);
      bool const begins = to == first;
      auto const all = translations<Collate>(rows, 0, to, true);
      auto const expected = whole.predict(all.batch()).tokens.value;
      auto const some = translations<Collate>(rows, begins ? 0 : to - 1, to, begins);
      auto const got = (begins ? by_token.begin(some.batch()) : by_token.next(some.batch())).tokens.value;
      Index const here = begins ? to : 1;
      REQUIRE(got.extent == Extents<2>{rows * here, vocabulary});
      bool equal = true;
      for (Index row = 0; row < rows; ++row)
        for (Index i = 0; i < here * vocabulary; ++i)
          equal =
              equal && got.data[row * here * vocabulary + i] == expected.data[(row * to + to - here) * vocabulary + i];
      CHECK(equal);
      CHECK(by_token.predict(all.batch()).tokens.value(0, 3) == expected(0, 3));
    }
  };
  check(data::PadCollate{}, 1, 1);
  check(data::PadCollate{}, 3, 4);
  check(data::RaggedCollate{}, 3, 2);
  check(data::RaggedCollate{}, 1, 1);
}

TEST_CASE("token-by-token decoding has as many sequences as the memory") {
  auto predictor = predictor_of(Translator{});
  static_cast<void>(predictor.begin(translations<data::PadCollate>(2, 0, 3, true).batch()));
  CHECK_THROWS_AS(static_cast<void>(predictor.next(translations<data::PadCollate>(1, 3, 4, false).batch())),
                  ShapeError);
}

TEST_CASE("layers without token-by-token decoding are refused, and decoding does not continue after an error") {
  auto predictor = predictor_of(LanguageModel{});
  auto const refuses = [&]<class Error>(Error const&, auto const& f, char const* sentence) {
    CHECK_THROWS_WITH_AS(static_cast<void>(f()), doctest::Contains(sentence), Error);
  };
  auto const begin = [&](auto const& batch) { return predictor.begin(batch.batch()); };
  auto const next = [&](auto const& batch) { return predictor.next(batch.batch()); };
  auto const one = batch_of(1, 3, 4), three = batch_of(1, 0, 3);
  refuses(
      ConfigError(""), [&] { return next(one); }, "next continues the sequences of begin, but there are none");
  auto empty = texts(2, 0, 4);
  empty[1].tokens.clear();
  refuses(
      ShapeError(""),
      [&] {
        return begin(data::Collated{data::PadCollate{}, empty});
      },
      "sequence 1 of the batch has no tokens");
  refuses(
      ConfigError(""), [&] { return begin(batch_of(0, 0, 3)); }, "this batch left no state to continue from");

  static_cast<void>(begin(three));
  refuses(
      ShapeError(""), [&] { return next(batch_of(1, 3, 5)); },
      "takes one token of each sequence, and sequence 0 of the batch has 2; call Predictor::begin with all of them, "
      "and an encoder "
      "of other sequences inside nn::encode_once");
  refuses(
      ConfigError(""), [&] { return next(one); }, "call begin first, and again after an error");
  static_cast<void>(begin(three));
  refuses(
      ShapeError(""), [&] { return next(batch_of(2, 3, 4)); },
      "continues 2 sequences, but the passes that began them had 1");
  static_cast<void>(begin(three));
  std::vector<float> const others(static_cast<std::size_t>(predictor.layout().size()));
  predictor.set(others);
  refuses(
      ConfigError(""), [&] { return next(one); }, "next continues the sequences of begin, but there are none");
  auto recurrent = predictor_of(RecurrentModel{});
  static_cast<void>(recurrent.begin(three.batch()));
  refuses(
      ShapeError(""), [&] { return recurrent.next(batch_of(2, 3, 4).batch()); },
      "a layer continues 2 sequences, but the passes that began them had 1; call Predictor::begin again");
  static_cast<void>(begin(batch_of(1, 0, longest)));
  refuses(
      DataError(""), [&] { return next(one); }, "has 1 tokens after 9 earlier ones; there are 9 positions");
}

namespace {

/// A model with `part(context, x, embedding, batch)` after its embedding.
template <class Part>
struct Behind {
  explicit Behind(Part p) : part(p) {}
  void visit(auto&& each) {
    each("embedding", embedding), each("attention", attention), each("causal", causal), each("backwards", backwards);
  }
  auto predict(auto& context, auto const& batch) const {
    return part(context, embedding.forward(context, batch[&Text::tokens], batch.positions()), *this, batch);
  }
  Part part;
  nn::FusedEmbedding embedding{{.vocabulary = vocabulary, .length = longest, .width = 8}};
  nn::MultiHeadAttention attention{{.width = 8, .heads = 2}}, causal{{.width = 8, .heads = 2, .causal = true}};
  nn::GRU backwards{8, 8, nn::Direction::backward};
};

}  // namespace

TEST_CASE("layers over whole sequences refuse token-by-token decoding") {
  auto const batch = batch_of(1, 0, 3);
  auto const refuses = [&](auto part, char const* sentence) {
    auto predictor = predictor_of(Behind(part));
    static_cast<void>(predictor.predict(batch.batch()));
    CHECK_THROWS_WITH_AS(static_cast<void>(predictor.begin(batch.batch())), doctest::Contains(sentence), ConfigError);
  };
  refuses([](auto& context, auto x, auto const& model, auto const&) { return model.attention.forward(context, x); },
          "attention: Predictor::begin and next predict token by token");
  refuses(
      [](auto& context, auto x, auto const& model, auto const&) {
        auto const other = nn::add(context, x, x);
        return model.attention.forward(context, x, other);
      },
      "and attention to a memory that nn::encode_once made");
  refuses(
      [](auto& context, auto x, auto const& model, auto const&) {
        auto const memory = nn::encode_once(context, [&] { return nn::add(context, x, x); });
        return model.causal.forward(context, x, memory);
      },
      "attention: Predictor::begin and next");
  refuses([](auto& context, auto x, auto const& model, auto const&) { return model.backwards.forward(context, x); },
          "GRU: Predictor::begin and next predict token by token");
  refuses([](auto& context, auto x, auto const&, auto const&) { return nn::mean_pool(context, x); },
          "mean_pool: Predictor::begin and next");
  refuses([](auto& context, auto x, auto const&, auto const&) { return nn::first_token(context, x); },
          "first_token: Predictor::begin and next");
  refuses(
      [](auto& context, auto, auto const& model, auto const& given) {
        auto const& tokens = given[&Text::tokens];
        return model.embedding.forward(context, nn::interleave(tokens, tokens), given.positions());
      },
      "FusedEmbedding of several segments: Predictor::begin and next");
  refuses([](auto&, auto x, auto const&, auto const&) { return x; },
          "the model has neither causal attention nor a recurrent layer");
}

namespace {

/// A layer over the places of a Variable before a recurrent layer.
template <class Layer>
struct PlacesModel {
  void visit(auto&& each) { each("embedding", embedding), each("layer", layer), each("gru", gru); }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = embedding.forward(context, batch[&Text::tokens], batch.positions());
    auto const places = x.tokens.reshape(Extents<3>{batch.rows(), x.layout.length, 8});
    return gru.forward(context, nn::sequence_of(layer.forward(context, places), batch.positions()));
  }

  Layer layer;
  nn::FusedEmbedding embedding{{.vocabulary = vocabulary, .width = 8}};
  nn::GRU gru{8, 8};
};

}  // namespace

TEST_CASE("windows over a Variable run token by token only if they read no earlier step") {
  auto each = predictor_of(PlacesModel<nn::Conv1d>{nn::Conv1d(8, 8, {.kernel = 1})});
  auto const whole = batch_of(2, 0, 4);
  auto const all = each.predict(whole.batch()).tokens.value;
  std::vector<float> const expected(all.data, all.data + all.size());
  static_cast<void>(each.begin(batch_of(2, 0, 3).batch()));
  auto const last = each.next(batch_of(2, 3, 4).batch()).tokens.value;
  for (Index row = 0; row < 2; ++row)
    for (Index c = 0; c < 8; ++c) CHECK(last(row, c) == expected[static_cast<std::size_t>((4 * row + 3) * 8 + c)]);

  auto const is_refused = []<class Layer>(Layer const& layer, std::string const& who) {
    auto several = predictor_of(PlacesModel<Layer>{layer});
    static_cast<void>(several.begin(batch_of(2, 0, 3).batch()));
    CHECK_THROWS_WITH_AS(static_cast<void>(several.next(batch_of(2, 3, 4).batch())),
                         doctest::Contains((who + ": Predictor::begin and next predict token by token").c_str()),
                         ConfigError);
  };
  std::string const kernel = " of a Variable with fewer steps than its kernel";
  is_refused(nn::Conv1d(8, 8, {.kernel = 2, .causal = true}), "a convolution" + kernel);
  is_refused(nn::Conv1d(8, 8, {.kernel = 3, .padding = 1}), "a convolution" + kernel);
  is_refused(nn::MaxPool1d({.kernel = 2, .stride = 2, .padding = 1}), "pooling" + kernel);
  is_refused(nn::AvgPool1d({.kernel = 2, .stride = 1, .padding = 1}), "pooling" + kernel);
  is_refused(nn::Pad1d(), "padding of a Variable with few steps");
  is_refused(nn::Upsample1d(2, nn::UpsampleMode::linear), "linear upsampling of a Variable with one step");
}

TEST_CASE("selected rows continue as whole sequences would, with equal bits, padded and ragged") {
  using namespace lockstep_test;
  TinyTranslator model;
  auto const values = translator_parameters(nn::ParameterLayout::of(model).size());
  train::Predictor<TinyTranslator> predictor(model, std::span(values)), whole(model, std::span(values));
  auto const check = [&](auto collate) {
    auto all = pairs();
    CHECK_THROWS_AS(predictor.select(std::vector<Index>{0}), ConfigError);
    static_cast<void>(predictor.begin(data::Collated{collate, all}.batch()));
    for (auto const& rows : std::vector<std::vector<Index>>{{0, 1, 2, 3, 4, 5},  // unchanged
                                                            {2, 2, 0, 5, 1, 4, 4, 4},
                                                            {1, 0, 2, 3, 7},  // within memories, and fewer
                                                            {4, 4, 0},
                                                            {2}}) {
      predictor.select(rows);
      std::vector<Pair> chosen, last;
      for (auto const row : rows) {
        auto& pair = chosen.emplace_back(all[static_cast<std::size_t>(row)]);
        pair.tokens.push_back(static_cast<std::int32_t>((std::ssize(chosen) * 3 + row) % target_tokens));
        last.push_back({{}, {pair.tokens.back()}});
      }
      all = chosen;
      data::Collated const next{collate, last}, expected{collate, chosen};
      auto const got = predictor.next(next.batch()).tokens.value;
      auto const want = whole.predict(expected.batch()).tokens.value;
      auto const length = std::ssize(chosen[0].tokens);
      REQUIRE(got.extent[0] == std::ssize(rows));
      for (Index row = 0; row < std::ssize(rows); ++row)
        CHECK(std::equal(got.data + row * target_tokens, got.data + (row + 1) * target_tokens,
                         want.data + ((row + 1) * length - 1) * target_tokens));
    }
    CHECK_THROWS_WITH_AS(predictor.select(std::vector<Index>{1}), doctest::Contains("row 1 of 1"), ShapeError);
    predictor.set(std::span(values));
  };
  check(data::RaggedCollate{});
  check(data::PadCollate{});
}
