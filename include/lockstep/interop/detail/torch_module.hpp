// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/accumulate.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/autograd/buffer.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/parameter.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace interop::detail {

template <class Space>
using TorchContext = nn::Context<float, Space>;

/// Lets torch compute where a stream does, in the calling thread. Restores the former place at its end.
template <class Space>
class TorchPlace {
  static_assert(sizeof(Space) == 0, "Lockstep: interop::Torch on a GPU needs #include <lockstep/interop/torch.cuh>");
};
/// On the host: with as many threads as the stream's pool.
template <>
class TorchPlace<HostSpace> {
 public:
  explicit TorchPlace(memory::Stream<HostSpace> stream) : threads_before_(at::get_num_threads()) {
    if (stream.pool().threads() != threads_before_) at::set_num_threads(stream.pool().threads());
  }
  ~TorchPlace() {
    if (at::get_num_threads() != threads_before_) at::set_num_threads(threads_before_);
  }
  TorchPlace(TorchPlace const&) = delete;
  TorchPlace& operator=(TorchPlace const&) = delete;

  /// Returns torch's name of the device whose memory the calling thread uses.
  [[nodiscard]] static torch::Device device() noexcept { return torch::kCPU; }

 private:
  int threads_before_;
};

/// Sets torch's place and grad mode for a pass, in the calling thread. Restores them at its end.
template <class Space>
class TorchPass {
 public:
  TorchPass(memory::Stream<Space> stream, bool recording) : place_(stream), recording_(recording) {}

 private:
  TorchPlace<Space> place_;
  at::AutoGradMode recording_;
};

/// Returns a tensor over memory of a space.
template <class Space, class Element>
[[nodiscard]] torch::Tensor tensor_over(Element* data, torch::IntArrayRef sizes, torch::ScalarType type) {
  auto const options = torch::TensorOptions(type).device(TorchPlace<Space>::device());
  if (c10::multiply_integers(sizes) == 0) return torch::empty(sizes, options);  // a GPU does not know null pointers
  return torch::from_blob(const_cast<std::remove_const_t<Element>*>(data), sizes, options);
}

/// Locks torch's generators, which all threads of a process share.
class GeneratorLock {
 public:
  GeneratorLock() : lock_(mutex()) {}

 private:
  static std::mutex& mutex() {
    static std::mutex generator_mutex;
    return generator_mutex;
  }
  std::unique_lock<std::mutex> lock_;
};

/// Seeds a generator of torch. Restores its state at the end.
class SeededGenerator {
 public:
  SeededGenerator(at::Generator generator, std::uint64_t seed) : generator_(std::move(generator)) {
    std::scoped_lock const lock(generator_.mutex());
    before_ = generator_.get_state();
    generator_.set_current_seed(seed);
  }
  ~SeededGenerator() {
    std::scoped_lock const lock(generator_.mutex());
    generator_.set_state(before_);
  }
  SeededGenerator(SeededGenerator const&) = delete;
  SeededGenerator& operator=(SeededGenerator const&) = delete;

 private:
  at::Generator generator_;
  torch::Tensor before_;
};

/// Locks and seeds torch's generators of the host and of the device. Restores their states at the end.
class SeededGenerators {
 public:
  SeededGenerators(torch::Device device, std::uint64_t seed) : host_(at::detail::getDefaultCPUGenerator(), seed) {
    if (!device.is_cpu()) device_.emplace(at::globalContext().defaultGenerator(device), seed);
  }

 private:
  GeneratorLock lock_;
  SeededGenerator host_;
  std::optional<SeededGenerator> device_;
};

/// A module's tensors under Lockstep's names: learned parameters, and kept tensors (buffers, and parameters without a
/// gradient). Holds their initial values and creates the replicas' modules. All copies of a model share it.
class TorchSource {
 public:
  using Make = std::function<std::shared_ptr<torch::nn::Module>()>;
  struct Named {
    std::string name;
    torch::Tensor initial;  // float32, contiguous
  };
  struct Place {
    bool is_learned;
    std::size_t at;  // index in learned() or kept()
  };

  /// @param first_available whether `first` may become a replica's own module
  /// @param make creates further modules; may be empty
  /// @throws ConfigError for tensors that Lockstep cannot train or keep, with their names
  TorchSource(std::shared_ptr<torch::nn::Module> first, bool first_available, Make make)
      : first_(std::move(first)), first_available_(first_available), make_(std::move(make)) {
    std::unordered_map<void const*, Place> seen;
    auto const add = [&](std::string const& name, torch::Tensor const& tensor, bool is_learned) {
      auto& list = is_learned ? learned_ : kept_;
      auto const [found, is_new] = seen.try_emplace(tensor.unsafeGetTensorImpl(), Place{is_learned, list.size()});
      places_.emplace(name, found->second);  // tensors with two names are tied: the first name is used
      if (is_new) list.push_back({name, initial_value(name, tensor, is_learned)});
    };
    for (auto const& each : first_->named_parameters()) add(each.key(), each.value(), each.value().requires_grad());
    for (auto const& each : first_->named_buffers()) add(each.key(), each.value(), false);
  }

  [[nodiscard]] std::vector<Named> const& learned() const noexcept { return learned_; }
  [[nodiscard]] std::vector<Named> const& kept() const noexcept { return kept_; }
  /// Returns null for a name that the first module does not have.
  [[nodiscard]] Place const* find(std::string const& name) const {
    auto const found = places_.find(name);
    return found == places_.end() ? nullptr : &found->second;
  }

  struct NextModule {
    std::shared_ptr<torch::nn::Module> module;
    bool is_users_module;
  };
  /// Returns a module for one more replica, on the given device. Thread-safe.
  /// @throws ConfigError if there is no further one
  [[nodiscard]] NextModule next(torch::Device device) {
    std::scoped_lock const lock(mutex_);
    if (std::exchange(first_available_, false)) return {first_, !make_};
    if (!make_)
      throw ConfigError(
          "interop::Torch: a second replica needs a module of its own, and this one cannot be cloned; derive it from "
          "torch::nn::Cloneable, or give a function that makes it: Torch{[] { return std::make_shared<Net>(); }, …}");
    SeededGenerators const unused(device, 0);  // its random values are not used: leaves the generators unchanged
    return {make_(), false};
  }
  /// Makes the user's module available again.
  void return_users_module() {
    std::scoped_lock const lock(mutex_);
    first_available_ = true;
  }

 private:
  static torch::Tensor initial_value(std::string const& name, torch::Tensor const& tensor, bool is_learned) {
    auto const what = "interop::Torch: " + std::string(is_learned ? "parameter \"" : "buffer \"") + name + "\"";
    if (!(tensor.is_cpu() || tensor.is_cuda()) || tensor.layout() != torch::kStrided)
      throw ConfigError(what + " is a " + tensor.toString() + " on " + tensor.device().str() +
                        "; modules are trained on the CPU or a GPU, as dense tensors: module->to(torch::kCPU)");
    if (is_learned && !tensor.is_leaf())
      throw ConfigError(what +
                        " is the result of an operation, through which no gradient could reach its inputs; "
                        "register its values, tensor.detach(), or compute it in forward");
    auto const on_host = tensor.detach().cpu();
    auto const values = on_host.to(torch::kFloat).contiguous();
    bool const is_exact =
        tensor.scalar_type() == torch::kFloat || (!is_learned && !tensor.is_floating_point() && !tensor.is_complex() &&
                                                  values.to(tensor.scalar_type()).equal(on_host));
    if (!is_exact)
      throw ConfigError(what + " is a " + tensor.toString() +
                        (tensor.is_floating_point() || tensor.is_complex()
                             ? "; parameters and buffers are kept as float32: module->to(torch::kFloat)"
                             : " of large numbers; buffers are kept as float32, in which integers are exact up to "
                               "2^24: keep constants in an ordinary member of the module"));
    return values;
  }

  std::shared_ptr<torch::nn::Module> first_;
  bool first_available_;
  Make make_;
  std::mutex mutex_;
  std::vector<Named> learned_, kept_;
  std::unordered_map<std::string, Place> places_;
};

/// A replica's module. Its parameters share the replica's memory, and backward writes each gradient to the replica's
/// arena once it is complete. Used by one thread at a time: on a GPU, torch's thread for it writes the gradients while
/// the thread that called `backward` waits.
template <class Space>
class TorchReplica {
  using Context = TorchContext<Space>;

 public:
  TorchReplica() = default;
  TorchReplica(TorchReplica const&) = delete;
  TorchReplica& operator=(TorchReplica const&) = delete;
  /// Copies the learned values into the user's own module, which outlives the replica. Waits for the stream and for the
  /// copies. Removes the hooks, which graphs that the user keeps would still call.
  ~TorchReplica() {
    for (auto& each : learned_)
      if (each.accumulator) each.accumulator->del_post_hook(each.hook);
    if (!is_users_module_) return;
    try {
      if (!modes_.empty()) set_mode(true);  // for the next trainer
      stream_->synchronize();
      for_each_tensor([](torch::Tensor& tensor) { tensor.set_data(tensor.detach().clone()); });
      for (auto& each : learned_) forget_accumulator(each.tensor);
      if (device_ != torch::kCPU) c10::impl::VirtualGuardImpl(device_.type()).getStream(device_).synchronize();
    } catch (std::exception const&) {  // the device has failed: its memory cannot be read, and is freed soon
      for_each_tensor([](torch::Tensor& tensor) { tensor.set_data(torch::empty({0}, tensor.dtype())); });
    }
    source_->return_users_module();
  }

  /// Binds a module to the replica's memory at the first call; later calls do nothing.
  /// @throws ConfigError if the replica's module does not match the first
  void bind(Context& context, std::shared_ptr<TorchSource> const& source, std::vector<nn::Parameter> const& parameters,
            std::vector<nn::Buffer> const& buffers) {
    if (module_) return;
    stream_ = context.stream();
    device_ = TorchPlace<Space>::device();
    auto next = source->next(device_);
    learned_.clear();
    kept_.clear();
    std::size_t found = 0;
    std::unordered_map<void const*, bool> seen;
    auto const bind_one = [&](std::string const& name, torch::Tensor tensor) {
      auto const* const place = source->find(name);
      auto const& list = place && !place->is_learned ? source->kept() : source->learned();
      if (!place || list[place->at].initial.sizes() != tensor.sizes())
        throw ConfigError("interop::Torch: a replica's module has \"" + name + "\" of shape " + shape(tensor) +
                          ", but the first one has not; modules must have the same structure");
      ++found;
      if (!seen.emplace(tensor.unsafeGetTensorImpl(), true).second) return;
      if (place->is_learned)
        add_learned(context, parameters[place->at], name, tensor);
      else
        add_kept(context, buffers[place->at], name, tensor);
    };
    for (auto const& each : next.module->named_parameters()) bind_one(each.key(), each.value());
    for (auto const& each : next.module->named_buffers()) bind_one(each.key(), each.value());
    if (found < source->learned().size() + source->kept().size())
      throw ConfigError("interop::Torch: a replica's module has " + std::to_string(found) +
                        " parameters and buffers, fewer than the first one; modules must have the same structure");
    for (std::size_t i = 0; i < learned_.size(); ++i) add_gradient_hook(i);
    module_ = std::move(next.module);
    keep_modes();
    source_ = source;
    is_users_module_ = next.is_users_module;
  }

  /// Returns the module. Call it before the module predicts.
  /// @throws ConfigError if a parameter's memory has changed
  [[nodiscard]] torch::nn::Module& begin(bool training) {
    loss_.reset();
    for (auto const& each : learned_)
      expect<ConfigError>(each.tensor.data_ptr() == each.values || each.tensor.numel() == 0, [&] {
        return "interop::Torch: parameter \"" + each.name +
               "\" is no longer in its trainer's memory; do not change the data type or device of a module that a "
               "trainer uses, and use a module in one trainer only";
      });
    set_mode(training);
    for (auto& each : kept_) each.copy_from_arena();
    return *module_;
  }
  /// Call it after the module has predicted.
  /// @throws ConfigError for a buffer of integers that float32 rounds
  void end() {
    for (auto& each : kept_) each.copy_to_arena();
  }

  /// Sets the loss from which `backward` starts.
  /// @throws ConfigError if the module learns nothing
  void set_loss(Context& context, torch::Tensor loss) {
    expect<ConfigError>(!learned_.empty(), [] {
      return std::string("interop::Torch: no parameter of the module requires a gradient, so nothing can be learned");
    });
    loss_ = std::move(loss);
    for (auto const& each : learned_) context.parameters().gradients().add_use(*each.parameter);
  }
  void backward(Context& context) {
    auto const loss = std::exchange(loss_, torch::Tensor());
    if (!loss.requires_grad()) return;
    TorchPass<Space> const pass(context.stream(), true);
    context_ = &context;
    try {
      loss.backward();
    } catch (...) {
      error_ = std::current_exception();
    }
    context_ = nullptr;
    for (auto& each : learned_) each.most = std::max(each.most, std::exchange(each.now, 0));
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  using Accumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<torch::Tensor const&>()));

  struct Learned {
    std::string name;
    torch::Tensor tensor;
    float const* values;
    nn::Parameter const* parameter;
    torch::Tensor gradient{};   // in the arena
    Accumulator accumulator{};  // keeps torch's accumulator and its hook alive
    std::uintptr_t hook = 0;    // the hook's key
    int now = 0;                // gradients in this pass
    int most = 0;               // gradients in any earlier pass
  };
  /// Kept tensors may be integers, which are float32 in the arena. They are copied before each pass, and after a pass
  /// that changed them.
  struct Kept {
    std::string name;
    torch::Tensor tensor, in_arena;
    std::int64_t version = 0;

    [[nodiscard]] bool shares_arena() const { return tensor.scalar_type() == torch::kFloat; }
    void copy_from_arena() {
      if (shares_arena()) return;
      at::NoGradGuard const constant;
      tensor.variable_data().copy_(in_arena);  // no change of the version, for a backward that saved the tensor
      version = tensor._version();
    }
    void copy_to_arena() {
      if (shares_arena() || tensor._version() == version) return;
      at::NoGradGuard const constant;
      in_arena.copy_(tensor);
      if (name.ends_with("num_batches_tracked")) return;  // counts to 2^24, then stays: BatchNorm rarely reads it
      expect<ConfigError>(in_arena.to(tensor.scalar_type()).equal(tensor), [&] {
        return "interop::Torch: buffer \"" + name +
               "\" has integers that float32 rounds; buffers are kept as float32, in which integers are exact up to "
               "2^24: count in larger units, or in several buffers";
      });
    }
  };

  template <class Function>
  void for_each_tensor(Function const& f) {
    for (auto& each : learned_) f(each.tensor);
    for (auto& each : kept_) f(each.tensor);
  }
  template <class Weak>
  static Weak no_accumulator(void (*)(torch::Tensor const&, Weak)) {
    return Weak(Accumulator());
  }
  /// Lets the tensor's next use make an accumulator, in the stream of that use. A graph keeps an earlier one alive.
  static void forget_accumulator(torch::Tensor const& tensor) {
    namespace impl = torch::autograd::impl;
    impl::set_grad_accumulator(tensor, no_accumulator(&impl::set_grad_accumulator));
  }
  static std::string shape(torch::Tensor const& tensor) {
    std::string text = "[";
    for (auto const extent : tensor.sizes()) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
    return text + "]";
  }
  /// Remembers the modes of a module of which parts are in evaluation mode, such as a frozen part with BatchNorm.
  void keep_modes() {
    auto const parts = module_->modules();
    bool const is_mixed = module_->is_training() && std::any_of(parts.begin(), parts.end(),
                                                                [](auto const& part) { return !part->is_training(); });
    modes_.clear();
    if (!is_mixed) return;
    for (auto const& part : parts) modes_.emplace_back(part, part->is_training());
  }
  /// Sets the mode of a pass. In training, parts have the modes that the module had when it was bound.
  void set_mode(bool training) {
    if (module_->is_training() == training) return;
    module_->train(training);
    if (!training) return;
    for (auto const& [part, was_training] : modes_)  // a part comes before its own parts, whose modes it sets
      if (part->is_training() != was_training) part->train(was_training);
  }
  void add_learned(Context& context, nn::Parameter const& parameter, std::string const& name, torch::Tensor& tensor) {
    auto* const values = const_cast<float*>(context.template value<0>(parameter).data);
    tensor.set_data(tensor_over<Space>(values, tensor.sizes(), torch::kFloat));
    tensor.mutable_grad().reset();  // torch would add to it, where it is
    tensor.requires_grad_(true);
    learned_.push_back({name, tensor, values, &parameter});
  }
  void add_kept(Context& context, nn::Buffer const& buffer, std::string const& name, torch::Tensor& tensor) {
    auto const in_arena = tensor_over<Space>(context.template value<0>(buffer).data, tensor.sizes(), torch::kFloat);
    tensor.set_data(tensor.scalar_type() == torch::kFloat ? in_arena : tensor.to(in_arena.device()));
    tensor.requires_grad_(false);
    kept_.push_back({name, tensor, in_arena});
  }
  void add_gradient_hook(std::size_t i) {
    auto& each = learned_[i];
    forget_accumulator(each.tensor);
    each.accumulator = torch::autograd::impl::grad_accumulator(each.tensor);
    each.hook = each.accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [this, i](torch::autograd::variable_list const& outputs, torch::autograd::variable_list const& inputs) {
          if (context_) take_gradient(learned_[i], inputs[0]);
          return outputs;
        }));
  }
  /// Takes a gradient, on backward's thread. It is complete, unless a function of the user runs a backward pass of its
  /// own within its `backward`, as activation checkpointing does: then a parameter may receive several gradients in one
  /// pass. A parameter is reported early if each earlier pass had one gradient of it, otherwise at the end of the pass.
  void take_gradient(Learned& of, torch::Tensor const& gradient) {
    of.tensor.mutable_grad().reset();
    ++of.now;
    if (error_) return;
    try {
      if (gradient.defined()) {
        at::NoGradGuard const constant;
        auto const to = context_->gradient(*of.parameter);
        if (!of.gradient.defined() || of.gradient.data_ptr() != to.data)
          of.gradient = tensor_over<Space>(to.data, of.tensor.sizes(), torch::kFloat);
        auto const dense = gradient.is_sparse() ? gradient.to_dense() : gradient;
        if (to.write == Write::overwrite)
          of.gradient.copy_(dense);
        else
          of.gradient.add_(dense);
      }
      if (of.most != 1) return;
      expect<ConfigError>(of.now == 1, [&] {
        return "interop::Torch: parameter \"" + of.name +
               "\" received a second gradient in one backward pass, for the first time: some "
               "torch::autograd::Function runs a backward pass of its own. Use the parameter in such functions equally "
               "often in every pass";
      });
      context_->parameters().gradients().finish_use(*of.parameter);
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  std::shared_ptr<torch::nn::Module> module_;
  std::shared_ptr<TorchSource> source_;
  bool is_users_module_ = false;
  std::optional<memory::Stream<Space>> stream_;
  torch::Device device_ = torch::kCPU;
  std::vector<Learned> learned_;
  std::vector<Kept> kept_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> modes_;  // parts, and whether they train
  torch::Tensor loss_;
  Context* context_ = nullptr;  // set while backward runs
  std::exception_ptr error_;
};

}}}  // namespace lockstep::interop::detail
