// SPDX-License-Identifier: Apache-2.0
// LINES 15
// CASE other_struct: Lockstep: batch[&Other::member] names a member of another struct than the batch's samples
// CASE bits: Lockstep: std::vector<bool> holds bits, which a batch cannot view as elements
// CASE function_as_metric: Lockstep: an argument of Evaluation is no metric
// CASE class_labels: Lockstep: a loss of distances (mean_squared_error, mean_absolute_error, huber_loss, quantile_loss)
// CASE nameless: Lockstep: visit calls each(child): give each child a name
// CASE name_last: Lockstep: visit calls each(child, name): the name comes first
// CASE vector_of_layers: Lockstep: visit calls each(name, child) with a child that is no layer
// CASE metric_of_nothing: Lockstep: a metric takes the sample's member with the label or the target
// CASE metric_of_name: Lockstep: a metric takes the sample's member with the label or the target
// CASE metric_without_classes: Lockstep: this metric takes a number behind the member, of classes or of k
// CASE metric_before_evaluation: Lockstep: evaluate takes train::Evaluation{loader, metrics...}, and this is none
// CASE evaluated_dataset: Lockstep: an Evaluation's first argument is not a non-const data::DataLoader
// CASE sequences: Lockstep: context.input takes numbers without a length per row
// CASE optionals: Lockstep: context.input takes a number for each row
// CASE mean_of_loss: Lockstep: a loss is a sum with its weight, and the trainer divides by the weight of all ranks
// CASE labels_first: Lockstep: cross_entropy takes the logits first
// CASE named_column: Lockstep: batch[...] takes a pointer to a member of the sample: batch[&Sample::member]
// CASE constructor: Lockstep: the sample is not an aggregate
// CASE no_default: Lockstep: the sample has no default value
// CASE nested: Lockstep: this member of the sample cannot be collated
// CASE c_array: Lockstep: a sample holds no C arrays
// NOT CLANG c_array
// CASE vector: Lockstep: the first argument of DataLoader is no dataset
// CASE policy_first: Lockstep: the second argument is no optimizer: it has no `static constexpr int states`
// CASE evaluated_loader: Lockstep: evaluate takes train::Evaluation{loader, metrics...}, and this is none
// CASE fitted_samples: Lockstep: the first argument of fit is not a non-const data::DataLoader
// CASE step_of_loader: Lockstep: step takes a batch for each device
// CASE options_first: Lockstep: fit takes the evaluation before the options
// CASE function_after_options: Lockstep: fit takes nothing after its options
// CASE bare_parameter: Lockstep: on_backward takes the output, a std::tie of its nn::Parameters, or std::tuple{}
// CASE closure_first: Lockstep: on_backward takes the output, a std::tie of its nn::Parameters, or std::tuple{}
// CASE closure_without_context: Lockstep: a backward closure takes the context
// CASE owning_closure: Lockstep: a backward closure holds views and references only
// CASE gradient_of_value: Lockstep: context.gradient takes a Variable, and this is a value
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <lockstep/lockstep.hpp>

namespace ls = lockstep;

struct Other {
  std::array<float, 4> x;
};
struct Sample {
  std::array<float, 4> x;
  std::int32_t label;
  std::vector<float> steps;
  std::optional<float> weight;
#if defined(CASE_constructor)
  Sample();
#elif defined(CASE_no_default)
  int& counter;
#elif defined(CASE_c_array)
  float corners[2];
#endif
#if defined(CASE_bits)
  std::vector<bool> seen;
#elif defined(CASE_nested)
  std::vector<std::string> grid;
#endif
};

/// A layer of the user's.
struct Shift {
  ls::nn::Parameter by{{2}, ls::nn::Initializer::constant(0)};

  void visit(auto&& each) { each("by", by); }
  template <class Context>
  auto forward(Context& context, ls::nn::VariableOf<Context, 2> x) const {
    auto const y = context.template variable<2>(x.value.extent);
#if defined(CASE_bare_parameter)
    context.on_backward(y, by, [x](Context& c) { static_cast<void>(c.gradient(x)); });
#elif defined(CASE_closure_first)
    context.on_backward(
        y, [x](Context& c) { static_cast<void>(c.gradient(x)); }, std::tie(by));
#elif defined(CASE_closure_without_context)
    context.on_backward(y, std::tie(by), [x] {});
#elif defined(CASE_owning_closure)
    context.on_backward(y, std::tie(by), [kept = std::vector<float>(8)](Context&) {});
#elif defined(CASE_gradient_of_value)
    context.on_backward(y, std::tie(by), [x](Context& c) { static_cast<void>(c.gradient(x.value)); });
#else
    context.on_backward(y, std::tie(by), [x](Context& c) { static_cast<void>(c.gradient(x)); });
#endif
    return y;
  }
};

struct Model {
  ls::nn::Linear layer{4, 2};
  Shift shift;

#if defined(CASE_nameless)
  void visit(auto&& each) { each(layer); }
#elif defined(CASE_name_last)
  void visit(auto&& each) { each(layer, "layer"); }
#elif defined(CASE_vector_of_layers)
  std::vector<ls::nn::Linear> layers{};
  void visit(auto&& each) { each("layer", layer), each("layers", layers), each("shift", shift); }
#else
  void visit(auto&& each) { each("layer", layer), each("shift", shift); }
#endif
  auto predict(auto& context, auto const& batch) const {
#if defined(CASE_other_struct)
    return layer.forward(context, context.input(batch[&Other::x].values));
#elif defined(CASE_sequences)
    return layer.forward(context, context.input(batch[&Sample::steps]));
#elif defined(CASE_optionals)
    static_cast<void>(context.input(batch[&Sample::weight]));
    return layer.forward(context, context.input(batch[&Sample::x]));
#elif defined(CASE_nested)
    return layer.forward(context, context.input(batch[&Sample::grid]));
#elif defined(CASE_named_column)
    return layer.forward(context, context.input(batch["x"]));
#else
    auto const y = layer.forward(context, context.input(batch[&Sample::x]));  // as with `.values`
    return shift.forward(context, y);
#endif
  }
  auto loss(auto& context, auto const& logits, auto const& batch) const {
#if defined(CASE_class_labels)
    return ls::nn::mean_squared_error(context, logits, batch[&Sample::label]);
#elif defined(CASE_mean_of_loss)
    return ls::nn::cross_entropy(context, logits, batch[&Sample::label]) / batch.rows();
#elif defined(CASE_labels_first)
    return ls::nn::cross_entropy(context, batch[&Sample::label], logits);
#else
    return ls::nn::cross_entropy(context, logits, batch[&Sample::label]);
#endif
  }
};

void train(std::vector<Sample> const& samples) {
#if defined(CASE_vector)
  ls::data::DataLoader loader{samples, ls::data::SequentialSampler{}, ls::data::PadCollate{}, {.batch_size = 2}};
#else
  ls::data::DataLoader loader{
      ls::data::InMemoryDataset{samples}, ls::data::SequentialSampler{}, ls::data::PadCollate{}, {.batch_size = 2}};
#endif
#if defined(CASE_policy_first)
  ls::Trainer trainer{Model{}, ls::parallel::SingleDevice{}, ls::optim::SGD{}};
#else
  ls::Trainer trainer{Model{}, ls::optim::SGD{}, ls::parallel::SingleDevice{}};
#endif
#if defined(CASE_fitted_samples)
  trainer.fit(samples, {.epochs = 1});
#elif defined(CASE_options_first)
  trainer.fit(loader, {.epochs = 1}, ls::train::Evaluation{loader, ls::train::Accuracy{&Sample::label}});
#elif defined(CASE_function_after_options)
  trainer.fit(loader, {.epochs = 1}, [] {});
#else
  trainer.fit(loader, {.epochs = 1});
#endif
#if defined(CASE_step_of_loader)
  trainer.step(loader);
#endif
#if defined(CASE_function_as_metric)
  static_cast<void>(trainer.evaluate(ls::train::Evaluation{loader, [](auto const&, auto const&) { return 1.0; }}));
#elif defined(CASE_metric_of_nothing)
  static_cast<void>(trainer.evaluate(ls::train::Evaluation{loader, ls::train::Accuracy{}}));
#elif defined(CASE_metric_of_name)
  static_cast<void>(trainer.evaluate(ls::train::Evaluation{loader, ls::train::Auc{"label"}}));
#elif defined(CASE_metric_without_classes)
  static_cast<void>(trainer.evaluate(ls::train::Evaluation{loader, ls::train::F1{&Sample::label}}));
#elif defined(CASE_metric_before_evaluation)
  static_cast<void>(trainer.evaluate(loader, ls::train::Accuracy{&Sample::label}));
#elif defined(CASE_evaluated_dataset)
  static_cast<void>(
      trainer.evaluate(ls::train::Evaluation{ls::data::InMemoryDataset{samples}, ls::train::Accuracy{&Sample::label}}));
#elif defined(CASE_evaluated_loader)
  static_cast<void>(trainer.evaluate(loader));
#else
  static_cast<void>(trainer.evaluate(ls::train::Evaluation{loader, ls::train::Accuracy{&Sample::label}}));
#endif
}
