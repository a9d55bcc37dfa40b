// SPDX-License-Identifier: Apache-2.0
// LINES 15
// CASE other_struct: Lockstep: batch[&Other::member] names a member of another struct than the batch's samples
// CASE bits: Lockstep: std::vector<bool> holds bits, which a batch cannot view as elements
// CASE function_as_metric: Lockstep: an argument of Evaluation is no metric
// CASE class_labels: Lockstep: a loss of distances (mean_squared_error, mean_absolute_error, huber_loss) got integers
// CASE nameless: Lockstep: visit calls each(child): give each child a name
// CASE sequences: Lockstep: context.input takes numbers without a length per row
// CASE optionals: Lockstep: context.input takes a number for each row
#include <array>
#include <cstdint>
#include <optional>
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
#if defined(CASE_bits)
  std::vector<bool> seen;
#endif
};

struct Model {
  ls::nn::Linear layer{4, 2};

#if defined(CASE_nameless)
  void visit(auto&& each) { each(layer); }
#else
  void visit(auto&& each) { each("layer", layer); }
#endif
  auto predict(auto& context, auto const& batch) const {
#if defined(CASE_other_struct)
    return layer.forward(context, context.input(batch[&Other::x].values));
#elif defined(CASE_sequences)
    return layer.forward(context, context.input(batch[&Sample::steps]));
#elif defined(CASE_optionals)
    static_cast<void>(context.input(batch[&Sample::weight]));
    return layer.forward(context, context.input(batch[&Sample::x]));
#else
    return layer.forward(context, context.input(batch[&Sample::x]));  // as with `.values`
#endif
  }
  auto loss(auto& context, auto const& logits, auto const& batch) const {
#if defined(CASE_class_labels)
    return ls::nn::mean_squared_error(context, logits, batch[&Sample::label]);
#else
    return ls::nn::cross_entropy(context, logits, batch[&Sample::label]);
#endif
  }
};

void train(std::vector<Sample> const& samples) {
  ls::data::DataLoader loader{ls::data::InMemoryDataset{samples}, ls::data::SequentialSampler{}, ls::data::PadCollate{},
                              {.batch_size = 2}};
  ls::Trainer trainer{Model{}, ls::optim::SGD{}, ls::parallel::SingleDevice{}};
  trainer.fit(loader, {.epochs = 1});
#if defined(CASE_function_as_metric)
  static_cast<void>(trainer.evaluate(ls::train::Evaluation{loader, [](auto const&, auto const&) { return 1.0; }}));
#else
  static_cast<void>(trainer.evaluate(ls::train::Evaluation{loader, ls::train::Accuracy{&Sample::label}}));
#endif
}
