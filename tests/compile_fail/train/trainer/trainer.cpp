// SPDX-License-Identifier: Apache-2.0
// CASE no_visit: Lockstep: the model has no visit(each)
// CASE no_forward: Lockstep: the model has no forward(context, batch) const -> nn::LossOf<Context>
// CASE other_loss: Lockstep: the model's forward(context, batch) does not return an nn::LossOf<Context>
// CASE other_loss_of_prediction: Lockstep: the model's loss(context, prediction, batch) does not return an nn::LossOf
// CASE no_optimizer: Lockstep: the second argument is no optimizer: it has no `static constexpr int states`
// CASE no_policy: Lockstep: the third argument is no parallel policy
// CASE policy_forgotten: Lockstep: the third argument is no parallel policy
// CASE no_predict: Lockstep: a metric of this evaluation reads predictions, and the model has no predict
// CASE no_loader: Lockstep: the first argument of fit is not a non-const data::DataLoader
// CASE const_loader: Lockstep: the first argument of fit is not a non-const data::DataLoader
// CASE no_evaluation_loader: Lockstep: an Evaluation's first argument is not a non-const data::DataLoader
// CASE no_evaluation: Lockstep: the second argument of fit is neither train::Evaluation
// CASE no_metric: Lockstep: an argument of Evaluation is no metric
// CASE step_of_samples: Lockstep: step takes a batch for each device
// CASE predicts_nothing: Lockstep: the model's predict(context, batch) returns nothing
// CASE step_of_no_loss: Lockstep: the model's loss(context, prediction, batch) does not return an nn::LossOf
// CASE higher: Lockstep: a metric's higher_is_better is `static constexpr bool higher_is_better = false`
#include <array>
#include <span>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/trainer.hpp>

using namespace lockstep;

struct Sample {
  float x;
};

struct Model {
#if !defined(CASE_no_visit)
  void visit(auto&&) {}
#endif
#if defined(CASE_other_loss_of_prediction) || defined(CASE_step_of_no_loss)
  double predict(auto&, auto const&) const { return 0; }
  double loss(auto&, double prediction, auto const&) const { return prediction; }
#elif defined(CASE_predicts_nothing)
  void predict(auto&, auto const&) const {}
  auto loss(auto& context, auto const&, auto const&) const { return nn::LossOf<decltype(context)>{}; }
#elif !defined(CASE_no_forward)
  template <class Context>
#if defined(CASE_other_loss)
  double
#else
  nn::LossOf<Context>
#endif
  forward(Context&, auto const&) const {
    return {};
  }
#endif
};

#if defined(CASE_no_optimizer)
struct Optimizer {
  double learning_rate = 1;
};
#else
using Optimizer = optim::SGD;
#endif

#if defined(CASE_no_policy)
struct Policy {};
#else
using Policy = parallel::SingleDevice;
#endif

struct Right {
  void add(auto const&, auto const&) {}
#if !defined(CASE_no_metric)
  std::span<double> totals() { return right; }
#endif
  double value() const { return right[0]; }
  char const* name() const { return "right"; }
#if defined(CASE_higher)
  bool higher_is_better = false;
#else
  static constexpr bool higher_is_better = true;
#endif
  std::array<double, 1> right{};
};

void fit() {
  data::DataLoader loader{
      data::InMemoryDataset{std::vector<Sample>(4)}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2}};
#if defined(CASE_policy_forgotten)
  Trainer trainer{Model{}, Optimizer{}};
#else
  Trainer trainer{Model{}, Optimizer{}, Policy{}};
#endif
#if defined(CASE_no_predict)
  static_cast<void>(trainer.evaluate(train::Evaluation{loader, Right{}}));
#endif
#if defined(CASE_no_evaluation)
  trainer.fit(loader, Right{});
#endif
#if defined(CASE_const_loader)
  auto const& constant = loader;
  trainer.fit(constant, {.epochs = 3});
#endif
#if defined(CASE_no_loader)
  data::InMemoryDataset dataset{std::vector<Sample>(4)};
  trainer.fit(dataset, {.epochs = 3});
#endif
#if defined(CASE_no_evaluation_loader)
  data::InMemoryDataset held_out{std::vector<Sample>(4)};
  trainer.fit(loader, train::Evaluation{held_out, Right{}}, {.epochs = 3});
#endif
#if defined(CASE_step_of_samples)
  trainer.step(std::vector<Sample>(4));
#endif
  trainer.step(loader.next());
  trainer.fit(loader);
  trainer.fit(loader, {.epochs = 3});
  static_cast<void>(train::Evaluation{loader, Right{}});
}
