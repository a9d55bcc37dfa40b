// SPDX-License-Identifier: Apache-2.0
// Classes that users write themselves: dataset, sampler, collate, layer, model, rule of a loss, optimizer and metric.
// LINES 15
// CASE drawing_get_not_const: Lockstep: a dataset's get(i, key), which draws random numbers, is const
// CASE drawing_get_swapped: Lockstep: a dataset's get(i, key), which draws random numbers, is const
// CASE drawing_get_of_other_type: Lockstep: a dataset's get(i, key), which draws random numbers, is const
// CASE fingerprint_type: Lockstep: a dataset's fingerprint() is const and returns a std::uint64_t
// CASE fingerprint_not_const: Lockstep: a dataset's fingerprint() is const and returns a std::uint64_t
// CASE sample_name_not_const: Lockstep: a dataset's name(i) is const and returns a std::string
// CASE worker_of_other_type: Lockstep: a dataset's worker() is const and returns a reader
// CASE group_without_groups: Lockstep: a dataset with groups has groups() and group(i), both const
// CASE transform_not_const: Lockstep: the function of Transform cannot be called, as const, with a sample
// CASE transform_in_place: Lockstep: the function of Transform cannot be called, as const, with a sample
// CASE sampler_is_order: Lockstep: the second argument of DataLoader is no sampler for this dataset
// CASE order_without_size: Lockstep: the second argument of DataLoader is no sampler for this dataset
// CASE order_of_two: Lockstep: the second argument of DataLoader is no sampler for this dataset
// CASE sampler_not_const: Lockstep: the second argument of DataLoader is no sampler for this dataset
// CASE batch_without_rows: Lockstep: the collate's batch has no rows() const
// CASE plan_of_nothing: Lockstep: the third argument of DataLoader is no collate for this dataset
// CASE row_not_const: Lockstep: the third argument of DataLoader is no collate for this dataset
// CASE finish_not_const: Lockstep: a collate's finish(batch, slab) is const
// CASE finish_of_batch: Lockstep: a collate's finish(batch, slab) is const
// CASE visit_const: Lockstep: visit calls each(name, child) with a const child
// CASE context_copied: Lockstep: the context is copied, and layers change it
// CASE predict_const_context: Lockstep: the model's predict or forward takes the context as const or by value
// CASE predict_copied_context: Lockstep: the model's predict or forward takes the context as const or by value
// CASE loss_const_context: Lockstep: the model's loss takes the context as const or by value
// CASE loss_not_const: Lockstep: the model has predict(context, batch), but no loss(context, prediction, batch)
// CASE loss_of_float: Lockstep: the model's loss(context, prediction, batch) does not return an nn::LossOf<Context>
// CASE forward_as_predict: Lockstep: the model's forward(context, batch) does not return an nn::LossOf<Context>
// CASE called_layer: no match for call to
// NOT CLANG called_layer
// CASE misspelled_member: no member named
// CASE rule_of_value: Lockstep: the rule of nn::elementwise_loss has a template operator()(T prediction, T target)
// CASE rule_not_const: Lockstep: the rule of nn::elementwise_loss has a template operator()(T prediction, T target)
// CASE rule_without_name: Lockstep: the rule of nn::elementwise_loss says its name
// CASE states_not_static: Lockstep: the second argument is no optimizer: it has no `static constexpr int states`
// CASE states_not_constant: Lockstep: the second argument is no optimizer: it has no `static constexpr int states`
// CASE step_not_const: Lockstep: the second argument is no optimizer: it has no `static constexpr int states`
// CASE stream_by_reference: Lockstep: the second argument is no optimizer: it has no `static constexpr int states`
// CASE optimizer_name: Lockstep: an optimizer's name is `static char const* name()`
// CASE describe_not_const: Lockstep: an optimizer's describe(auto&& each) is const
// CASE check_not_const: Lockstep: an optimizer's check() is const
// CASE touched_rows_not_static: Lockstep: an optimizer's takes_touched_rows is `static constexpr bool
// CASE whole_parameters_not_static: Lockstep: an optimizer's whole_parameters is `static constexpr bool
// CASE average_of_whole_parameters: Lockstep: optim::Averaged updates blocks of parameters, and this optimizer
// CASE average_of_two: Lockstep: optim::Averaged takes one optimizer; average each of optim::Partitioned
// CASE one_average_of_two: Lockstep: one optimizer of optim::Partitioned is optim::Averaged and the other is not
// CASE partition_by_number: Lockstep: the rule of optim::Partitioned returns a bool
// CASE work_not_static: Lockstep: an optimizer's work_elements is `static Index work_elements
// CASE check_parameter_not_const: Lockstep: an optimizer's check_parameter(std::string_view name
// CASE rates_of_number: Lockstep: an optimizer's `decays` and `rates` are functions of a parameter's name and shape
// CASE rates_of_name: Lockstep: an optimizer's `decays` and `rates` are functions of a parameter's name and shape
// CASE decays_of_number: Lockstep: an optimizer's `decays` is an optim::DecayRule, and its `rates` an optim::RateRule
// CASE metric_without_add: Lockstep: a metric of this evaluation has no add(prediction, batch), which counts a batch
// CASE add_of_prediction: Lockstep: a metric of this evaluation has no add(prediction, batch), which counts a batch
// CASE metric_name_string: Lockstep: an argument of Evaluation is no metric
// CASE direction_not_static: Lockstep: a metric's higher_is_better is `static constexpr bool higher_is_better = false`
// CASE samples_alone: Lockstep: a metric that needs all samples has both samples() const -> std::string, and
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <lockstep/lockstep.hpp>
#include <lockstep/optim/partitioned.hpp>

namespace ls = lockstep;

struct Reading {
  std::array<float, 2> at;
  float heat;
  std::int32_t label;
};

struct Readings {
  ls::Index size() const { return 8; }
  Reading get(ls::Index) const { return {}; }
#if defined(CASE_drawing_get_not_const)
  Reading get(ls::Index, ls::data::SampleKey const&) { return {}; }
#elif defined(CASE_drawing_get_swapped)
  Reading get(ls::data::SampleKey const&, ls::Index) const { return {}; }
#elif defined(CASE_drawing_get_of_other_type)
  float get(ls::Index, ls::data::SampleKey const&) const { return {}; }
#elif defined(CASE_fingerprint_type)
  std::string fingerprint() const { return {}; }
#elif defined(CASE_fingerprint_not_const)
  std::uint64_t fingerprint() { return {}; }
#elif defined(CASE_sample_name_not_const)
  std::string name(ls::Index) { return {}; }
#elif defined(CASE_worker_of_other_type)
  struct Reader {
    float get(ls::Index) { return {}; }
  };
  Reader worker() const { return {}; }
#elif defined(CASE_group_without_groups)
  ls::Index group(ls::Index i) const { return i; }
#else
  Reading get(ls::Index, ls::data::SampleKey) const { return {}; }
  std::uint64_t fingerprint() const { return {}; }
  char const* name(ls::Index) const { return ""; }
#endif
};

struct Warmer {
#if defined(CASE_transform_not_const)
  Reading operator()(Reading const& reading) { return reading; }
#elif defined(CASE_transform_in_place)
  void operator()(Reading& reading) const { reading.heat += 1; }
#else
  Reading operator()(Reading const& reading) const { return reading; }
#endif
};

struct Order {
#if !defined(CASE_order_without_size)
  ls::Index size() const { return 8; }
#endif
#if defined(CASE_order_of_two)
  ls::Index in(ls::Index, ls::Index position) const { return position; }
#else
  auto in(ls::Index) const {
    return [](ls::Index position) { return position; };
  }
#endif
};
#if defined(CASE_sampler_is_order)
using Sampler = Order;
#else
struct Sampler {
#if defined(CASE_sampler_not_const)
  Order over(auto const&) { return {}; }
#else
  Order over(auto const&) const { return {}; }
#endif
};
#endif

template <class Space>
struct Rows {
  ls::TensorView<float const, 2, Space> at;
  ls::TensorView<float const, 1, Space> heat;
  ls::TensorView<std::int32_t const, 1, Space> label;
#if !defined(CASE_batch_without_rows)
  ls::Index rows() const { return label.size(); }
#endif
};
struct Collate {
  template <class Dataset, class Space>
  using Batch = Rows<Space>;

#if defined(CASE_plan_of_nothing)
  void plan(ls::data::BatchPlan<Reading> const&, ls::data::Slab&) const {}
#else
  Rows<ls::HostSpace> plan(ls::data::BatchPlan<Reading> const&, ls::data::Slab&) const { return {}; }
#endif
#if defined(CASE_row_not_const)
  void row(Rows<ls::HostSpace> const&, ls::Index, Reading const&) {}
#else
  void row(Rows<ls::HostSpace> const&, ls::Index, Reading const&) const {}
#endif
#if defined(CASE_finish_not_const)
  void finish(Rows<ls::HostSpace> const&, ls::data::Slab&) {}
#elif defined(CASE_finish_of_batch)
  void finish(Rows<ls::HostSpace> const&) const {}
#else
  void finish(Rows<ls::HostSpace> const&, ls::data::Slab&) const {}
#endif
};

struct Layer {
  ls::nn::Linear inner{2, 2};

  void visit(auto& each) { each("inner", inner); }  // as with auto&&
  template <class Context>
#if defined(CASE_context_copied)
  auto forward(Context context, ls::nn::VariableOf<Context, 2> x) const {
#else
  auto forward(Context& context, ls::nn::VariableOf<Context, 2> x) const {
#endif
      return inner.forward(context, x);
}
}
;

struct Rule {
#if !defined(CASE_rule_without_name)
  static constexpr char const* name = "product";
#endif
  template <class T>
#if defined(CASE_rule_of_value)
  constexpr T operator()(T prediction, T target) const {
    return prediction * target;
#elif defined(CASE_rule_not_const)
  constexpr ls::kernel::LossAt<T> operator()(T prediction, T target) {
    return {prediction * target, target};
#else
  constexpr ls::kernel::LossAt<T> operator()(T prediction, T target) const {
    return {prediction * target, target};
#endif
  }
};

struct Model {
  Layer layer;
  ls::nn::Linear head{2, 1};

#if defined(CASE_visit_const)
  void visit(auto&& each) const { each("layer", layer), each("head", head); }
#else
  void visit(auto&& each) { each("layer", layer), each("head", head); }
#endif

#if defined(CASE_forward_as_predict)
  auto forward(auto& context, auto const& batch) const { return head.forward(context, context.input(batch.at)); }
#else
#if defined(CASE_predict_const_context)
  auto predict(auto const& context, auto const& batch) const {
#elif defined(CASE_predict_copied_context)
  auto predict(auto context, auto const& batch) const {
#else
  auto predict(auto& context, auto const& batch) const {
#endif
#if defined(CASE_called_layer)
    auto const x = layer(context, context.input(batch.at));
#else
    auto const x = layer.forward(context, context.input(batch.at));
#endif
    return head.forward(context, x);
  }
#if defined(CASE_loss_const_context)
  auto loss(auto const& context, auto const& x, auto const& batch) const {
    return ls::nn::elementwise_loss(context, Rule{}, x, batch.heat);
#elif defined(CASE_loss_not_const)
  auto loss(auto& context, auto const& x, auto const& batch) {
    return ls::nn::elementwise_loss(context, Rule{}, x, batch.heat);
#elif defined(CASE_loss_of_float)
  auto loss(auto& context, auto const& x, auto const& batch) const {
    return ls::nn::elementwise_loss(context, Rule{}, x, batch.heat).sum;
#elif defined(CASE_misspelled_member)
  auto loss(auto& context, auto const& x, auto const& batch) const {
  return ls::nn::elementwise_loss(context, Rule{}, x, batch.haet);
#else
  auto loss(auto& context, auto const& x, auto const& batch) const {
  return ls::nn::elementwise_loss(context, Rule{}, x, batch.heat);
#endif
  }
#endif
};

struct Descent {
#if defined(CASE_states_not_static)
  int states = 0;
#elif defined(CASE_states_not_constant)
  inline static int states = 0;
#else
  static constexpr int states = 0;
#endif
  double learning_rate = 1;
#if defined(CASE_rates_of_number)
  ls::optim::RateRule rates = 0.5;
#elif defined(CASE_rates_of_name)
  ls::optim::RateRule rates = [](std::string_view) { return 0.5; };
#else
  ls::optim::RateRule rates = [](std::string_view, std::span<ls::Index const>) { return 0.5; };
#endif
#if defined(CASE_decays_of_number)
  double decays = 0.5;
#endif
#if defined(CASE_touched_rows_not_static)
  bool takes_touched_rows = true;
#else
  static constexpr bool takes_touched_rows = false;
#endif
#if defined(CASE_whole_parameters_not_static)
  bool whole_parameters = true;
#elif defined(CASE_average_of_whole_parameters)
  static constexpr bool whole_parameters = true;
#elif defined(CASE_work_not_static)
  ls::Index work_elements(std::span<ls::Index const>) const { return 0; }
#elif defined(CASE_check_parameter_not_const)
  void check_parameter(std::string_view, std::span<ls::Index const>) {}
#endif

#if defined(CASE_optimizer_name)
  std::string name() const { return "Descent"; }
#else
  static char const* name() { return "Descent"; }
#endif
#if defined(CASE_describe_not_const)
  void describe(auto&&) {}
#else
  void describe(auto&&) const {}
#endif
#if defined(CASE_check_not_const)
  void check() {}
#else
  void check() const {}
#endif
  template <class Scalar>
#if defined(CASE_step_not_const)
  void step(ls::memory::Stream<ls::HostSpace>, ls::optim::Slice<Scalar, ls::HostSpace>,
            ls::optim::StepScalars<ls::HostSpace> const*) {
  }
#elif defined(CASE_stream_by_reference)
  void step(ls::memory::Stream<ls::HostSpace>&, ls::optim::Slice<Scalar, ls::HostSpace>,
            ls::optim::StepScalars<ls::HostSpace> const*) const {
  }
#else
  void step(ls::memory::Stream<ls::HostSpace>, ls::optim::Slice<Scalar, ls::HostSpace>,
            ls::optim::StepScalars<ls::HostSpace> const*) const {
  }
#endif
};

struct Score {
#if defined(CASE_metric_without_add)
  void update(auto const&, auto const&) {}
#elif defined(CASE_add_of_prediction)
  void add(auto const&) {}
#else
  void add(auto const&, auto const&) {}
#endif
  std::span<double> totals() { return total; }
  double value() const { return total[0]; }
#if defined(CASE_metric_name_string)
  std::string name() const { return "score"; }
#else
  static char const* name() { return "score"; }
#endif
#if defined(CASE_direction_not_static)
  bool higher_is_better = false;
#else
  static constexpr bool higher_is_better = false;
#endif
  std::string samples() const { return {}; }
#if !defined(CASE_samples_alone)
  void add_samples(std::string_view) {}
#endif
  std::array<double, 1> total{};
};

void train() {
  ls::data::DataLoader loader{ls::data::Transform{Readings{}, Warmer{}}, Sampler{}, Collate{}, {.batch_size = 2}};
#if defined(CASE_average_of_whole_parameters)
  ls::Trainer trainer{Model{}, ls::optim::Averaged{Descent{}}, ls::parallel::SingleDevice{}};
#elif defined(CASE_average_of_two)
  auto const rule = [](std::string_view, std::span<ls::Index const>) { return true; };
  ls::Trainer trainer{Model{}, ls::optim::Averaged{ls::optim::Partitioned{Descent{}, ls::optim::SGD{}, rule}},
                      ls::parallel::SingleDevice{}};
#elif defined(CASE_one_average_of_two)
  auto const rule = [](std::string_view, std::span<ls::Index const>) { return true; };
  ls::Trainer trainer{Model{}, ls::optim::Partitioned{Descent{}, ls::optim::Averaged{ls::optim::SGD{}}, rule},
                      ls::parallel::SingleDevice{}};
#elif defined(CASE_partition_by_number)
  auto const rule = [](std::string_view, std::span<ls::Index const>) { return 0.5; };
  ls::Trainer trainer{Model{}, ls::optim::Partitioned{Descent{}, ls::optim::SGD{}, rule}, ls::parallel::SingleDevice{}};
#else
  ls::Trainer trainer{Model{}, Descent{}, ls::parallel::SingleDevice{}};
#endif
#if defined(CASE_metric_without_add) || defined(CASE_add_of_prediction) || defined(CASE_metric_name_string) || \
    defined(CASE_direction_not_static) || defined(CASE_samples_alone)
  trainer.fit(loader, ls::train::Evaluation{loader, Score{}}, {.epochs = 1});
#else
  trainer.fit(loader, {.epochs = 1});
  static_cast<void>(ls::train::Evaluation{loader, Score{}});
#endif
}
