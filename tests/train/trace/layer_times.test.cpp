// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trace/layer_times.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <typeinfo>

#include <lockstep/nn/linear/linear.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;

namespace layer_times_test {

/// Types of closures as layers make them.
template <class Context>
auto squash(Context&, std::vector<std::pair<int, Context>> const&) {
  return [](Context&) {};
}
template <class T>
class Block {
 public:
  template <class Context>
  [[nodiscard]] auto forward(Context&, std::map<T, int> const&) const {
    return [this](auto&) { return this; };
  }
  template <class Context>
  [[nodiscard]] auto make_again(Context& context) const noexcept {
    auto const inner = [&] { return [](Context&) {}; };
    static_cast<void>(context);
    return inner();
  }
};
struct plain_layer {
  auto forward(int) {
    return [] {};
  }
  auto operator()(double) const {
    return [] {};
  }
};
struct Backward {
  void operator()() const {}
};

}  // namespace layer_times_test

namespace {

template <class T>
class Unnamed {
 public:
  template <class Context>
  auto forward(Context&) const {
    return [](Context&) {};
  }
};
auto in_unnamed_namespace() {
  return [] {};
}

template <class F>
std::string named(F const&) {
  return train::detail::operation_name(typeid(F).name());
}

/// embedding.table, encoder.{0,1}.{query,norm}.weight, head.{weight,bias}
class Model {
 public:
  void visit(auto&& each) {
    each("embedding", embedding_);
    each("encoder", encoder_);
    each("head", head_);
  }

 private:
  struct Table {
    nn::Parameter table{{5, 2}, {}};
    void visit(auto&& each) { each("table", table); }
  };
  struct Norm {
    nn::Parameter weight{{2}, {}};
    void visit(auto&& each) { each("weight", weight); }
  };
  struct Layer {
    Norm query, norm;
    void visit(auto&& each) { each("query", query), each("norm", norm); }
  };
  struct Encoder {
    Layer first, second;
    void visit(auto&& each) { each("0", first), each("1", second); }
  };
  Table embedding_;
  Encoder encoder_;
  nn::Linear head_{2, 3};
};

struct Fixture {
  Model model;
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  train::Trace trace;
  double now = 100;
  Index number = 0;
  char const* layer = typeid(decltype(layer_times_test::Block<int>().forward(number, {}))).name();
  char const* function = typeid(decltype(layer_times_test::squash(number, {}))).name();

  Fixture() { trace.begin(1, 1, true); }
  void add(char const* type, double ms, Span::Kind kind, int first = -1, int last = -1, Index bytes = 0) {
    trace.device(0).add({.name = type,
                         .begin = now,
                         .end = now + ms * 1e-3,
                         .number = number++,
                         .amount = bytes,
                         .first = first,
                         .last = last < 0 ? first : last,
                         .kind = kind});
    now += ms * 1e-3;
  }
  void forward(char const* type, double ms, int first = -1, int last = -1, Index bytes = 0) {
    add(type, ms, Span::Kind::forward, first, last, bytes);
  }
  void backward(Index of, char const* type, double ms, int first = -1, int last = -1) {
    number = of;
    add(type, ms, Span::Kind::backward, first, last);
  }
  [[nodiscard]] std::vector<train::LayerTime> times() const { return train::layer_times(trace, layout); }
};

train::LayerTime const& of(std::vector<train::LayerTime> const& times, std::string const& layer,
                           std::string const& operation) {
  auto const found =
      std::ranges::find_if(times, [&](auto const& time) { return time.layer == layer && time.operation == operation; });
  REQUIRE_MESSAGE(found != times.end(), layer, " ", operation);
  return *found;
}

}  // namespace

TEST_CASE("an operation is named after the class of the member function or the function that registers it") {
  int x = 0;
  CHECK(named(layer_times_test::squash(x, {})) == "squash");
  CHECK(named(layer_times_test::Block<std::string>().forward(x, {})) == "Block");
  CHECK(named(layer_times_test::Block<std::map<int, int>>().make_again(x)) == "Block");
  CHECK(named(layer_times_test::plain_layer().forward(x)) == "plain_layer");
  CHECK(named(layer_times_test::plain_layer()(1.0)) == "plain_layer");
  CHECK(named(layer_times_test::Backward()) == "Backward");
  CHECK(named(Unnamed<int>().forward(x)) == "Unnamed");
  auto const of_one_file = named(in_unnamed_namespace());
  CHECK((of_one_file == "in_unnamed_namespace" || of_one_file == "operation"));  // as the compiler spells it
  CHECK(train::detail::operation_name("no mangled name") == "operation");
}

TEST_CASE("operations with parameters belong to the layer that those share, others to the innermost layer around") {
  Fixture f;  // ordinals: 0 table, 1 and 2 of encoder.0, 3 and 4 of encoder.1, 5 and 6 head
  f.forward(f.layer, 1, 0);
  f.forward(f.function, 1);     // between embedding and encoder.0.query
  f.forward(f.layer, 1, 1);     // encoder.0.query
  f.forward(f.function, 1);     // between query and norm of one layer
  f.forward(f.layer, 1, 2);     // encoder.0.norm
  f.forward(f.function, 1);     // between two layers of the encoder
  f.forward(f.layer, 1, 3, 4);  // both of encoder.1
  f.forward(f.function, 1);     // between encoder and head
  f.forward(f.layer, 1, 5, 6);  // head
  f.forward(f.function, 1);     // after all of them
  f.forward("", 1);             // the loss
  auto const names = train::detail::named_spans(f.trace.device(0), f.layout);
  std::vector<std::string> layers;
  for (auto const& name : names) layers.push_back(name.layer);
  CHECK(layers == std::vector<std::string>{"embedding", "", "encoder.0.query", "encoder.0", "encoder.0.norm", "encoder",
                                           "encoder.1", "", "head", "", ""});
  CHECK(names[0].operation == "Block");
  CHECK(names[1].operation == "squash");
  CHECK(names[10].operation == "loss");
}

TEST_CASE("times are an average step's, each operation's own, and add up") {
  Fixture f;
  for (int step = 0; step < 2; ++step) {
    f.number = 0;
    f.forward(f.layer, 2, 1, -1, 4000);
    f.forward(f.function, 1, -1, -1, 1000);
    f.forward(f.layer, 3, 5, 6, 500);
    f.forward("", 0.5);
    f.backward(2, f.layer, 4, 5, 6);
    f.backward(1, f.function, 0);
    auto const began = f.now;
    f.now += 1e-3;  // 1 ms of its own, then 2 ms of gradients that are sent
    f.trace.device(0).add({.name = "gradients ready", .begin = f.now, .end = f.now + 2e-3});
    f.now += 2e-3;
    f.trace.device(0).add({.name = f.layer,
                           .begin = began,
                           .end = f.now,
                           .number = 0,
                           .first = 1,
                           .last = 1,
                           .kind = Span::Kind::backward});
    f.trace.count();
  }
  auto const times = f.times();
  REQUIRE(times.size() == 4);
  CHECK(times[0].layer == "encoder.0.query");  // in the order of forward
  auto const query = of(times, "encoder.0.query", "Block");
  CHECK(query.calls == 1);
  CHECK(query.forward_ms == doctest::Approx(2));
  CHECK(query.backward_ms == doctest::Approx(1));
  CHECK(query.activation_bytes == 4000);
  CHECK(query.parameter_bytes == 2 * sizeof(float));
  auto const head = of(times, "head", "Block");
  CHECK(head.forward_ms == doctest::Approx(3));
  CHECK(head.backward_ms == doctest::Approx(4));
  CHECK(head.parameter_bytes == 9 * sizeof(float));
  CHECK(of(times, "", "loss").forward_ms == doctest::Approx(0.5));
  CHECK(of(times, "", "squash").forward_ms == doctest::Approx(1));
  CHECK(std::accumulate(times.begin(), times.end(), 0.0, [](double sum, auto const& t) { return sum + t.share; }) ==
        doctest::Approx(1));
  CHECK(head.share == doctest::Approx(7 / 11.5));
}

TEST_CASE("recomputed operations count as backward, and once") {
  Fixture f;
  f.forward(f.layer, 2, 1);
  f.forward(f.function, 0);  // discards the layer's output
  f.forward("", 0);
  auto const began = f.now;
  f.add(f.layer, 2, Span::Kind::recompute, 1);
  f.backward(3, f.layer, 3, 1);
  f.trace.device(0).add({.name = f.function, .begin = began, .end = f.now, .number = 1, .kind = Span::Kind::backward});
  f.trace.count();
  auto const times = f.times();
  auto const query = of(times, "encoder.0.query", "Block");
  CHECK(query.calls == 1);
  CHECK(query.forward_ms == doctest::Approx(2));
  CHECK(query.backward_ms == doctest::Approx(5));
  CHECK(of(times, "", "squash").backward_ms == doctest::Approx(0));
}

TEST_CASE("an empty trace has no layers") {
  Fixture const f;
  CHECK(f.times().empty());
  CHECK(train::layer_times(train::Trace(), f.layout).empty());
  CHECK(train::layer_table({}).find("layer") == 0);
}

TEST_CASE("the table has the longest first, up to the limit, and the file has all in the model's order") {
  std::vector<train::LayerTime> times;
  for (int i = 0; i < 30; ++i)
    times.push_back({.layer = "layer." + std::to_string(i), .operation = "a \"b\"", .share = i / 435.0});
  auto const table = train::layer_table(times, 3);
  CHECK(std::ranges::count(table, '\n') == 4);
  CHECK(table.find("layer.29") < table.find("layer.28"));
  CHECK(table.find("layer.28") < table.find("layer.27"));
  CHECK(table.find("layer.26") == std::string::npos);
  lockstep_test::TemporaryFolder const folder;
  train::write_layer_times(folder / "layers.csv", times);
  auto const text = lockstep_test::read_file(folder / "layers.csv");
  CHECK(std::ranges::count(text, '\n') == 31);
  CHECK(text.starts_with("layer,operation,calls,"));
  CHECK(text.find("\"layer.0\",\"a \"\"b\"\"\",0,") < text.find("\"layer.1\","));
  CHECK_THROWS_AS(train::write_layer_times(folder / "missing/layers.csv", times), DataError);
}
