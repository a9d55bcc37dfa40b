// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/interop/detail/torch_module.hpp>
#include <lockstep/nn/buffer.hpp>
#include <lockstep/nn/loss.hpp>
#include <lockstep/nn/parameter.hpp>
#include <lockstep/train/trainer.hpp>

/// A `torch::nn::Module` as a model: under every policy, with Lockstep's loaders, optimizers and checkpoints. On the
/// host, in float32.
namespace lockstep::inline LOCKSTEP_ABI::interop {

/// A tensor of torch's over the view's memory, which nothing is copied from: it lives as long as the view's. Enums are
/// their integers.
/// @shape as the view
template <class T, int Rank>
[[nodiscard]] torch::Tensor tensor_of(TensorView<T, Rank, HostSpace> view) {
  using Element = std::remove_const_t<T>;
  constexpr bool is_unsigned = std::is_unsigned_v<Element> && !std::is_same_v<Element, bool>;
  static_assert(std::is_arithmetic_v<Element> || std::is_enum_v<Element>, "Lockstep: a tensor is made of numbers");
  static_assert(!is_unsigned || sizeof(Element) == 1,
                "Lockstep: torch computes with unsigned integers of 8 bits only; make the sample's member signed");
  auto const type = [] {
    if constexpr (std::is_same_v<Element, bool>) return torch::kBool;
    if constexpr (std::is_floating_point_v<Element>) return sizeof(Element) == 4 ? torch::kFloat : torch::kDouble;
    if constexpr (is_unsigned) return torch::kByte;
    return sizeof(Element) == 1   ? torch::kChar
           : sizeof(Element) == 2 ? torch::kShort
           : sizeof(Element) == 4 ? torch::kInt
                                  : torch::kLong;
  }();
  std::vector<std::int64_t> const sizes(view.extent.begin(), view.extent.end());
  return torch::from_blob(const_cast<Element*>(view.data), sizes, type);
}

/// The same of a batch's column: `tensor_of(batch[&Point::at])`.
template <class Column>
requires requires(Column const& column) { column.values; }
[[nodiscard]] torch::Tensor tensor_of(Column const& column) { return tensor_of(column.values); }

/// A loss as a sum and a weight (nn::Loss says why), the sum still a tensor: `TorchLoss{sum, batch.rows()}`.
struct TorchLoss {
  torch::Tensor sum;  ///< of one element
  double weight = 0;

  TorchLoss(torch::Tensor of_sum, std::convertible_to<double> auto of_weight)
      : sum(std::move(of_sum)), weight(static_cast<double>(of_weight)) {}
};

/// What `predict` of a module returned, as metrics see it: a tensor, and its numbers as train::Accuracy reads them.
struct TorchPrediction {
  torch::Tensor tensor;  ///< undefined after a pass that trains on no sample
  struct {
    float const* data = nullptr;
  } value{};              ///< in evaluation, row-major
  torch::Tensor numbers;  ///< which `value` points to

  [[nodiscard]] Index extent(int axis) const { return tensor.size(axis); }
};

/// Where a module's random numbers come from, such as those of dropout.
enum class TorchRandom {
  seeded,  ///< torch's generator, seeded anew for each forward pass: a run repeats. Replicas of one process take turns
  as_is,   ///< torch's generator as it is: for modules that draw no numbers, whose forward passes then run side by side
};

namespace detail {
template <class From>
struct ModuleFrom {
  static_assert(std::is_invocable_v<From&>,
                "Lockstep: the first argument of interop::Torch is a std::shared_ptr to a torch::nn::Module, a module "
                "holder, or a function that makes one of these");
  using type = typename ModuleFrom<std::invoke_result_t<From&>>::type;
};
template <std::derived_from<torch::nn::Module> M>
struct ModuleFrom<std::shared_ptr<M>> {
  using type = M;
};
template <class Holder>
requires requires { typename Holder::ContainedType; }
struct ModuleFrom<Holder> {
  using type = typename Holder::ContainedType;
};

template <class M>
std::shared_ptr<torch::nn::Module> pointer_to(std::shared_ptr<M> const& module) {
  return module;
}
template <class Holder>
std::shared_ptr<torch::nn::Module> pointer_to(Holder const& holder) requires requires {
  holder.ptr();
}
{ return holder.ptr(); }

template <class From>
std::shared_ptr<TorchSource> source_of(From from) {
  using Module = typename ModuleFrom<From>::type;
  if constexpr (std::is_invocable_v<From&> && !requires { typename From::ContainedType; }) {
    TorchSource::Make make = [from]() mutable { return pointer_to(from()); };
    GeneratorTurn const turn;  // a function that seeds torch makes the same module in all ranks of a process
    return std::make_shared<TorchSource>(make(), true, make);
  } else if constexpr (std::derived_from<Module, torch::nn::Cloneable<Module>>) {
    auto const module = pointer_to(from);
    return std::make_shared<TorchSource>(module, false, [module] { return module->clone(); });
  } else {
    return std::make_shared<TorchSource>(pointer_to(from), true, nullptr);
  }
}
}  // namespace detail

/// A model that is a module of torch's: `predict(module, batch)` returns a tensor, and `loss(prediction, batch)` makes
/// a TorchLoss of it. It starts from the module's own values; with several ranks, from rank 0's. Names and order are
/// those of `named_parameters()`; parameters without a gradient are kept like buffers. What is learned is fixed here.
///
/// Replicas have modules of their own: what the function given makes, or clones. A module that is not
/// torch::nn::Cloneable becomes the first replica's itself: it is trained in place, and there is no second. Gradients
/// are copied to their bucket as torch's backward completes them. Each pass sets torch's number of threads and its grad
/// mode for the calling thread, and then puts them back.
/// @determinism as torch's operations; repeatable, and equal under DataParallel and DistributedDataParallel, where
/// those are bitwise for one number of threads. Dropout depends on how the batch is split.
template <class Module, class Predict, class LossFunction>
class Torch {
 public:
  /// @throws ConfigError for a module whose tensors are not on the host, or not float32
  template <class From>
  Torch(From from, Predict predict, LossFunction loss, TorchRandom random = TorchRandom::seeded)
      : source_(detail::source_of(std::move(from))),
        predict_(std::move(predict)),
        loss_(std::move(loss)),
        random_(random) {
    auto const extents = [](torch::Tensor const& t) { return std::vector<Index>(t.sizes().begin(), t.sizes().end()); };
    for (auto const& [name, start] : source_->learned())
      parameters_.push_back({extents(start), nn::Initializer::given(start.template data_ptr<float>())});
    for (auto const& [name, start] : source_->kept())
      buffers_.push_back({extents(start), nn::Initializer::given(start.template data_ptr<float>())});
  }

  void visit(auto&& each) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) each(source_->learned()[i].name, parameters_[i]);
    for (std::size_t i = 0; i < buffers_.size(); ++i) each(source_->kept()[i].name, buffers_[i]);
  }

  /// A tensor as a TorchPrediction, all else as the module gave it.
  template <class Context, class Batch>
  [[nodiscard]] auto predict(Context& context, Batch const& batch) const {
    static_assert(std::is_same_v<Context, detail::TorchContext>,
                  "Lockstep: interop::Torch trains on the host in float32; leave OnCuda, InBfloat16 and InFloat16 out");
    static_assert(std::is_invocable_v<Predict const&, Module&, Batch const&>,
                  "Lockstep: the second argument of interop::Torch cannot be called as predict(module, batch), const, "
                  "with the batch that this loader yields; see docs/how-to/train-a-torch-module.md");
    using Predicted = std::invoke_result_t<Predict const&, Module&, Batch const&>;
    using Shown = std::conditional_t<std::is_same_v<Predicted, torch::Tensor>, TorchPrediction, Predicted>;
    auto const training = context.recording();
    auto& replica = replica_of(context);
    if (training && batch.rows() == 0) return Shown{};
    detail::TorchPass const pass(context.stream().pool().threads(), training);
    auto const seeded = seed(context, batch);
    auto& module = static_cast<Module&>(replica.begin(training));
    auto predicted = std::invoke(predict_, module, batch);
    replica.end();
    if constexpr (std::is_same_v<Predicted, torch::Tensor>) {
      Shown shown{std::move(predicted), {}, {}};
      if (training) return shown;
      shown.numbers = shown.tensor.to(torch::kFloat).contiguous();
      shown.value.data = shown.numbers.template data_ptr<float>();
      return shown;
    } else {
      return predicted;
    }
  }

  template <class Context, class Prediction, class Batch>
  [[nodiscard]] nn::LossOf<Context> loss(Context& context, Prediction const& prediction, Batch const& batch) const {
    auto const training = context.recording();
    if (training && batch.rows() == 0) return {};
    detail::TorchPass const pass(context.stream().pool().threads(), training);
    auto const seeded = seed(context, batch);
    auto const& predicted = [&]() -> auto const& {
      if constexpr (std::is_same_v<Prediction, TorchPrediction>)
        return prediction.tensor;
      else
        return prediction;
    }
    ();
    static_assert(std::is_same_v<decltype(std::invoke(loss_, predicted, batch)), TorchLoss>,
                  "Lockstep: the third argument of interop::Torch makes an interop::TorchLoss{sum, weight} of what was "
                  "predicted; see docs/how-to/train-a-torch-module.md");
    TorchLoss const loss = std::invoke(loss_, predicted, batch);
    if (loss.sum.numel() != 1)
      throw ShapeError(
          "interop::Torch: the loss has " + std::to_string(loss.sum.numel()) +
          " elements; return one sum over the batch, for instance by torch::Reduction::Sum, and its weight");
    if (training) {
      auto& replica = replica_of(context);
      replica.set_loss(context, loss.sum);
      auto const end = context.template variable<1>({1});
      context.on_backward(end, std::tuple{}, [&replica](Context& c) { replica.backward(c); });
      static_cast<void>(context.gradient(end));  // without it nobody would want the closure to run
    }
    return {loss.sum.template item<double>(), loss.weight};
  }

 private:
  [[nodiscard]] detail::TorchReplica& replica_of(detail::TorchContext& context) const {
    auto& replica = context.template kept<detail::TorchReplica>(source_.get());
    replica.bind(context, source_, parameters_, buffers_);
    return replica;
  }
  /// Another seed for every operation, pass and rank: the first sample's place in the epoch's order tells them apart.
  template <class Batch>
  [[nodiscard]] std::optional<detail::SeededGenerator> seed(detail::TorchContext& context, Batch const& batch) const {
    if (random_ == TorchRandom::as_is || !context.recording()) return std::nullopt;
    return std::optional<detail::SeededGenerator>(std::in_place,
                                                  mix(context.next_key(), static_cast<std::uint64_t>(first_of(batch))));
  }
  template <class Batch>
  static Index first_of(Batch const& batch) {
    if constexpr (requires { batch.positions()(Index{0}); })
      return batch.positions()(Index{0});
    else
      return 0;
  }

  std::shared_ptr<detail::TorchSource> source_;
  std::vector<nn::Parameter> parameters_;
  std::vector<nn::Buffer> buffers_;
  Predict predict_;
  LossFunction loss_;
  TorchRandom random_;
};
template <class From, class Predict, class LossFunction>
Torch(From, Predict, LossFunction) -> Torch<typename detail::ModuleFrom<From>::type, Predict, LossFunction>;
template <class From, class Predict, class LossFunction>
Torch(From, Predict, LossFunction, TorchRandom)
    -> Torch<typename detail::ModuleFrom<From>::type, Predict, LossFunction>;

/// Writes what a trainer has learned, and its buffers, into a module, for torch::save or for use without the trainer.
/// @throws ConfigError when the module is not like the trainer's; names the tensor
template <class Model, class Optimizer, class Policy>
void copy_trained(Trainer<Model, Optimizer, Policy> const& trainer, torch::nn::Module& module) {
  at::NoGradGuard const constant;
  std::unordered_map<std::string, std::pair<nn::ParameterLayout::Entry const*, float const*>> all;
  auto const add = [&](auto const& entries, float const* arena) {
    for (auto const& entry : entries) all.emplace(entry.name, std::pair(&entry, arena + entry.offset));
  };
  add(trainer.layout().entries(), trainer.values().data());
  add(trainer.layout().buffers(), trainer.buffers().data());
  std::unordered_set<void const*> done;
  auto const write = [&](std::string const& name, torch::Tensor tensor) {
    if (!done.insert(tensor.unsafeGetTensorImpl()).second) return;
    auto const found = all.find(name);
    if (found == all.end() || found->second.first->size != tensor.numel())
      throw ConfigError("copy_trained: the module's \"" + name + "\" of " + std::to_string(tensor.numel()) +
                        " elements is not among what was trained; give a module like the trainer's");
    tensor.copy_(torch::from_blob(const_cast<float*>(found->second.second), tensor.sizes(), torch::kFloat));
  };
  for (auto const& each : module.named_parameters()) write(each.key(), each.value());
  for (auto const& each : module.named_buffers()) write(each.key(), each.value());
}

}  // namespace lockstep::inline LOCKSTEP_ABI::interop
