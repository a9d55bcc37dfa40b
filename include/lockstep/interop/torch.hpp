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
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/interop/detail/torch_module.hpp>
#include <lockstep/nn/autograd/buffer.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/train/trainer/trainer.hpp>

// Adapter that trains a `torch::nn::Module`, under every policy, with Lockstep's loaders, optimizers and checkpoints,
// in float32. On the CPU; lockstep/interop/torch.cuh adds GPUs.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace interop {

/// Returns a torch tensor that shares the view's memory, without a copy. It is valid as long as that memory. Enums
/// become their integers. A view of a GPU's memory becomes a tensor on the calling thread's GPU.
/// @shape as the view
template <class Value, int Rank, class Space>
[[nodiscard]] torch::Tensor tensor_of(TensorView<Value, Rank, Space> view) {
  using Element = std::remove_const_t<Value>;
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
  return detail::tensor_over<Space>(view.data, sizes, type);
}

/// Returns a tensor of a batch's column: `tensor_of(batch[&Point::at])`.
template <class Column>
requires requires(Column const& column) { column.values; }
[[nodiscard]] torch::Tensor tensor_of(Column const& column) { return tensor_of(column.values); }

/// A loss as a sum and a weight (see nn::Loss), with the sum as a tensor: `TorchLoss{sum, batch.rows()}`.
struct TorchLoss {
  torch::Tensor sum;              ///< one element
  double weight = 0;              ///< number of samples or tokens, if `weight_tensor` is undefined
  torch::Tensor weight_tensor{};  ///< number of samples or tokens, one element

  /// @param of_sum the loss with reduction(torch::kSum)
  /// @param of_weight number of samples or tokens
  TorchLoss(torch::Tensor of_sum, std::convertible_to<double> auto of_weight)
      : sum(std::move(of_sum)), weight(static_cast<double>(of_weight)) {}
  /// Takes a weight that torch has computed, such as `mask.sum()`. On a GPU, no pass waits for it.
  /// @param of_sum the loss with reduction(torch::kSum)
  /// @param of_weight number of samples or tokens, one element
  TorchLoss(torch::Tensor of_sum, torch::Tensor of_weight)
      : sum(std::move(of_sum)), weight_tensor(std::move(of_weight)) {}
};

/// Result of a module's `predict` for metrics: a tensor, and its numbers as train::Accuracy reads them.
struct TorchPrediction {
  torch::Tensor tensor;  ///< undefined after a training pass without samples
  struct {
    float const* data = nullptr;  ///< first number
  } value{};                      ///< in evaluation, row-major
  torch::Tensor numbers;          ///< memory of `value`

  /// Returns an extent of the tensor.
  [[nodiscard]] Index extent(int axis) const { return tensor.size(axis); }
  /// Returns the prediction for metrics: its numbers are in host memory already.
  template <class Copy>
  [[nodiscard]] friend TorchPrediction copied(TorchPrediction const& prediction, Copy const&) {
    return prediction;
  }
};

/// Source of a module's random numbers, for example for dropout.
enum class TorchRandom {
  /// torch's generator, seeded for each forward pass, by the batch's `positions()`: a run repeats. Replicas of one
  /// process take turns
  seeded,
  as_is,  ///< torch's generator unchanged, for modules without random numbers: their forward passes run in parallel
};

namespace detail {
template <class From>
struct ModuleFrom {
  static_assert(std::is_invocable_v<From&>,
                "Lockstep: the first argument of interop::Torch is a std::shared_ptr to a torch::nn::Module, a module "
                "holder, or a function that makes one of these");
  using type = typename ModuleFrom<std::invoke_result_t<From&>>::type;
};
template <std::derived_from<torch::nn::Module> AnyModule>
struct ModuleFrom<std::shared_ptr<AnyModule>> {
  using type = AnyModule;
};
template <class Holder>
requires requires { typename Holder::ContainedType; }
struct ModuleFrom<Holder> {
  using type = typename Holder::ContainedType;
};

template <class AnyModule>
std::shared_ptr<torch::nn::Module> pointer_to(std::shared_ptr<AnyModule> const& module) {
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
    GeneratorLock const lock;  // a function that seeds torch makes equal modules in all ranks of a process
    return std::make_shared<TorchSource>(make(), true, make);
  } else if constexpr (std::derived_from<Module, torch::nn::Cloneable<Module>>) {
    auto const module = pointer_to(from);
    return std::make_shared<TorchSource>(module, false, [module] { return module->clone(); });
  } else {
    return std::make_shared<TorchSource>(pointer_to(from), true, nullptr);
  }
}
}  // namespace detail

/// Model that wraps a torch module. `predict(module, batch)` returns a tensor, from which `loss(prediction, batch)`
/// computes a TorchLoss. Training starts from the module's values; with several ranks, from rank 0's. Names and order
/// are as in `named_parameters()`. Parameters without a gradient are treated like buffers. The set of learned
/// parameters is fixed in the constructor.
///
/// Each replica has its own module: a result of the given function, or a clone. A module that is not
/// torch::nn::Cloneable is trained in place and allows only one replica. Parts that the module has in evaluation mode
/// stay in it, unless all of it is. Gradients are copied to their bucket as torch's backward completes them; after the
/// first pass, they are also reported then. Each pass sets torch's number of threads and grad mode for the calling
/// thread, and then restores them.
/// Passes on a GPU run in the replica's stream and are not recorded as CUDA graphs. Torch keeps activations in memory
/// of its own.
/// @determinism as torch's operations. Results repeat, and are equal under DataParallel and DistributedDataParallel, if
/// the operations are bitwise deterministic for one number of threads. Dropout depends on how the batch is split.
template <class Module, class Predict, class LossFunction>
class Torch {
 public:
  /// @throws ConfigError for a module whose tensors are not on the CPU or a GPU, or not float32, or whose parameters
  /// are not leaves. Buffers may be integers up to 2^24
  template <class From>
  Torch(From from, Predict predict, LossFunction loss, TorchRandom random = TorchRandom::seeded)
      : source_(detail::source_of(std::move(from))),
        predict_(std::move(predict)),
        loss_(std::move(loss)),
        random_(random) {
    auto const extents = [](torch::Tensor const& t) { return std::vector<Index>(t.sizes().begin(), t.sizes().end()); };
    for (auto const& [name, initial] : source_->learned())
      parameters_.push_back({extents(initial), nn::Initializer::given(initial.template data_ptr<float>())});
    for (auto const& [name, initial] : source_->kept())
      buffers_.push_back({extents(initial), nn::Initializer::given(initial.template data_ptr<float>())});
  }

  /// Names the learned parameters and then the buffers, as the module does.
  void visit(auto&& each) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) each(source_->learned()[i].name, parameters_[i]);
    for (std::size_t i = 0; i < buffers_.size(); ++i) each(source_->kept()[i].name, buffers_[i]);
  }

  /// Returns a tensor as a TorchPrediction, and any other prediction unchanged.
  template <class Context, class Batch>
  [[nodiscard]] auto predict(Context& context, Batch const& batch) const {
    static_assert(std::is_same_v<Context, detail::TorchContext<typename Context::Space>>,
                  "Lockstep: interop::Torch trains in float32; leave InBfloat16 and InFloat16 out, and use torch's "
                  "autocast in predict");
    static_assert(std::is_invocable_v<Predict const&, Module&, Batch const&>,
                  "Lockstep: the second argument of interop::Torch cannot be called as predict(module, batch), const, "
                  "with the batch that this loader yields; see docs/how-to/train-a-torch-module.md");
    using Predicted = std::invoke_result_t<Predict const&, Module&, Batch const&>;
    using MetricPrediction = std::conditional_t<std::is_same_v<Predicted, torch::Tensor>, TorchPrediction, Predicted>;
    auto const training = context.recording();
    detail::TorchPass<typename Context::Space> const pass(context.stream(), training);
    auto& replica = replica_of(context);
    if (training && batch.rows() == 0) return MetricPrediction{};
    if constexpr (!requires { batch.positions(); })
      if (training && random_ == TorchRandom::seeded)
        throw ConfigError(
            "interop::Torch: the batch has no positions(), by which torch's generator is seeded; see "
            "docs/how-to/custom-collate.md, or pass TorchRandom::as_is for a module that draws no random numbers");
    auto const seeded = seed(context);
    auto& module = static_cast<Module&>(replica.begin(training));
    auto predicted = std::invoke(predict_, module, batch);
    replica.end();
    if constexpr (std::is_same_v<Predicted, torch::Tensor>) {
      MetricPrediction result{std::move(predicted), {}, {}};
      if (training) return result;
      result.numbers = result.tensor.to(torch::kCPU, torch::kFloat).contiguous();
      result.value.data = result.numbers.template data_ptr<float>();
      return result;
    } else {
      return predicted;
    }
  }

  /// Returns sum and weight of a prediction's TorchLoss. While recording, also adds torch's backward pass to the tape.
  /// A batch without samples has loss and weight 0 in training.
  /// @throws ShapeError unless the sum has one element
  template <class Context, class Prediction, class Batch>
  [[nodiscard]] nn::LossOf<Context> loss(Context& context, Prediction const& prediction, Batch const& batch) const {
    using Space = typename Context::Space;
    auto const training = context.recording();
    detail::TorchPass<Space> const pass(context.stream(), training);
    if (training && batch.rows() == 0)
      return loss_of(context, TorchLoss(torch::zeros({1}, detail::TorchPlace<Space>::device()), 0));
    auto const seeded = seed(context);
    auto const& predicted = [&]() -> auto const& {
      if constexpr (std::is_same_v<Prediction, TorchPrediction>)
        return prediction.tensor;
      else
        return prediction;
    }
    ();
    static_assert(std::is_same_v<decltype(std::invoke(loss_, predicted, batch)), TorchLoss>,
                  "Lockstep: the third argument of interop::Torch makes an interop::TorchLoss{sum, weight} from the "
                  "prediction; see docs/how-to/train-a-torch-module.md");
    TorchLoss const loss = std::invoke(loss_, predicted, batch);
    if (loss.weight_tensor.defined() && loss.weight_tensor.numel() != 1)
      throw ShapeError("interop::Torch: the weight of the loss has " + std::to_string(loss.weight_tensor.numel()) +
                       " elements; return their sum: TorchLoss{sum, weights.sum()}");
    if (loss.sum.numel() != 1)
      throw ShapeError(
          "interop::Torch: the loss has " + std::to_string(loss.sum.numel()) +
          " elements; return one sum over the batch, for instance by torch::Reduction::Sum, and its weight");
    if (training) {
      auto& replica = replica_of(context);
      replica.set_loss(context, loss.sum);
      auto const end = context.template variable<1>({1});
      context.on_backward(end, std::tuple{}, [&replica](Context& c) { replica.backward(c); });
      static_cast<void>(context.gradient(end));  // marks the gradient as used, so that the closure runs
    }
    return loss_of(context, loss);
  }

 private:
  template <class Context>
  [[nodiscard]] auto& replica_of(Context& context) const {
    auto& replica = context.template persistent<detail::TorchReplica<typename Context::Space>>(source_.get());
    replica.bind(context, source_, parameters_, buffers_);
    return replica;
  }
  /// Returns a loss in the context's space. On a device nothing waits for its value.
  template <class Context>
  [[nodiscard]] static nn::LossOf<Context> loss_of(Context& context, TorchLoss const& loss) {
    using Space = typename Context::Space;
    if constexpr (Space::host_accessible) {
      return {loss.sum.template item<double>(),
              loss.weight_tensor.defined() ? loss.weight_tensor.template item<double>() : loss.weight};
    } else {
      at::NoGradGuard const constant;
      auto const sum = context.template temporary<double>(Extents<1>{1});
      auto const weight = context.template temporary<double>(Extents<1>{1});
      detail::tensor_over<Space>(sum.data, {1}, torch::kDouble).copy_(loss.sum.reshape({1}));
      auto weight_there = detail::tensor_over<Space>(weight.data, {1}, torch::kDouble);
      if (loss.weight_tensor.defined())
        weight_there.copy_(loss.weight_tensor.reshape({1}));
      else
        weight_there.fill_(loss.weight);
      return nn::LossOf<Context>::of(context, sum, weight);
    }
  }
  /// Seeds torch differently for every operation, pass and rank, by the first sample's position in the epoch.
  template <class Context>
  [[nodiscard]] std::optional<detail::SeededGenerators> seed(Context& context) const {
    if (random_ == TorchRandom::as_is || !context.recording()) return std::nullopt;
    return std::optional<detail::SeededGenerators>(std::in_place, detail::TorchPlace<typename Context::Space>::device(),
                                                   context.parts().random.next_of_batch());
  }

  std::shared_ptr<detail::TorchSource> source_;
  std::vector<nn::Parameter> parameters_;
  std::vector<nn::Buffer> buffers_;
  Predict predict_;
  LossFunction loss_;
  TorchRandom random_;
};
/// Takes the type of the module from the first argument.
template <class From, class Predict, class LossFunction>
Torch(From, Predict, LossFunction) -> Torch<typename detail::ModuleFrom<From>::type, Predict, LossFunction>;
/// Takes the type of the module from the first argument.
template <class From, class Predict, class LossFunction>
Torch(From, Predict, LossFunction, TorchRandom)
    -> Torch<typename detail::ModuleFrom<From>::type, Predict, LossFunction>;

/// Copies a trainer's parameters and buffers into a module, for torch::save or for use without the trainer.
/// @throws ConfigError if the module does not match the trainer's, with the tensor's name
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
                        " elements was not trained; give a module like the trainer's");
    tensor.copy_(torch::from_blob(const_cast<float*>(found->second.second), tensor.sizes(), torch::kFloat));
  };
  for (auto const& each : module.named_parameters()) write(each.key(), each.value());
  for (auto const& each : module.named_buffers()) write(each.key(), each.value());
}

}}}  // namespace lockstep::interop
