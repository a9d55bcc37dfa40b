// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/autograd/pass.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/train/checkpoint/load_averages.hpp>
#include <lockstep/train/detail/copy_parameters.hpp>
#include <lockstep/train/detail/single_thread_guard.hpp>
#include <lockstep/train/detail/takes_context.hpp>
#include <lockstep/train/files/safetensors.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Selects the parameters of a checkpoint.
enum class Parameters {
  values,    ///< parameters that training continues with
  averages,  ///< averages of an optim::Averaged, which evaluations used
};

/// Model with parameters, for prediction without trainer, policy, optimizer, communicator or gradients. One thread at a
/// time may use a predictor; different predictors may run concurrently, also if they share parameters. After two
/// predictions of the largest batch, a prediction allocates nothing; convolutions plan memory for each new shape.
/// @throws ConfigError in a call that overlaps with another thread's call
template <class Model>
class Predictor {
  static_assert(nn::HasParameters<Model>,
                "Lockstep: the model has no visit(each) that names its layers and parameters in forward order; see "
                "docs/reference/model.md");

 public:
  using Context = nn::Context<nn::ActivationsOf<Model>, HostSpace>;  ///< what the model's functions receive

  /// Loads parameters of Lockstep, or of another program with `names`. `threads` compute together. Parameters that
  /// `names` leaves out have their initial values if these are constants or given, as of a norm without learned scale.
  /// @throws DataError if the file does not fit the model
  /// @throws ConfigError if `names` leaves out a buffer, or a parameter with random initial values, or has new rows
  Predictor(Model model, std::string const& path, NamesInFile const& names, int threads = 1)
      : Predictor(std::move(model), threads) {
    auto const refuse = [&](auto const& entry, char const* because) {
      throw ConfigError(path + ": the names leave out \"" + entry.name + "\", but a predictor needs all " + because +
                        "; name all, or train the rest first");
    };
    if (names.any_new_rows())
      throw ConfigError(path +
                        ": a predictor cannot have new rows, which would not be trained; load the file into a "
                        "trainer, train and save it");
    for (auto const& entry : layout_.entries()) {
      if (!names(entry.name).empty()) continue;
      auto const kind = entry.initializer.kind;
      if (kind != nn::Initializer::Kind::constant && kind != nn::Initializer::Kind::given)
        refuse(entry, "parameters whose initial values are random");
      nn::detail::write_initial_values(entry, Philox(0), values_->data() + entry.offset, 0, entry.size);
    }
    for (auto const& entry : layout_.buffers())
      if (names(entry.name).empty()) refuse(entry, "buffers");
    metadata_ = load_parameters(path, layout_, values_->span(), buffers_.span(), names);
  }
  /// Loads a file of `Trainer::save` or a checkpoint. `threads` compute together.
  /// @throws DataError if the file does not fit the model
  Predictor(Model model, std::string const& path, int threads = 1)
      : Predictor(std::move(model), path, NamesInFile{}, threads) {}
  /// Loads a file of a model that contains this one, such as a decoder. Names in the file have the prefix `in_file`,
  /// such as "decoder.". `threads` compute together.
  /// @throws DataError if the file does not fit the model
  template <std::convertible_to<std::string_view> Prefix>
  Predictor(Model model, std::string const& path, Prefix const& in_file, int threads = 1)
      : Predictor(std::move(model), path, NamesInFile{"", in_file}, threads) {}
  /// Loads a checkpoint.
  /// @throws DataError like above, and if `which` asks for averages and the file has none
  Predictor(Model model, std::string const& path, Parameters which, int threads = 1)
      : Predictor(std::move(model), threads) {
    metadata_ = which == Parameters::averages ? load_averages(path, layout_, values_->span(), buffers_.span())
                                              : load_parameters(path, layout_, values_->span(), buffers_.span());
  }
  /// Copies the parameters and buffers of a trainer, in the order of its arenas.
  /// @throws ShapeError if an arena's size differs from the model's
  Predictor(Model model, std::span<float const> values, std::span<float const> buffers = {}, int threads = 1)
      : Predictor(std::move(model), threads) {
    set(values, buffers);
  }

  /// Copies by name from a trainer whose model contains this one, like `set`.
  template <detail::HasNamedTensors Other>
  Predictor(Model model, Other const& other, std::string_view in_other = {}, int threads = 1)
      : Predictor(std::move(model), threads) {
    set(other, in_other);
  }

  /// Replaces the parameters and buffers, for example after more training steps. Call `begin` before the next `next`.
  /// @throws ShapeError if an arena's size differs from the model's
  void set(std::span<float const> values, std::span<float const> buffers = {}) {
    auto const turn = call();
    check("parameters", values, values_->span());
    check("buffers", buffers, buffers_.span());
    auto const to = writable_values();
    std::copy(values.begin(), values.end(), to->data());
    std::copy(buffers.begin(), buffers.end(), buffers_.data());
    use(to);
  }

  /// Replaces the parameters by name from a trainer whose model may have more. Names there have the prefix `in_other`:
  /// use set(trainer, "encoder.") for an encoder that was trained as a part of a model.
  /// @throws ConfigError if the other model lacks a name, ShapeError if two shapes differ
  template <detail::HasNamedTensors Other>
  void set(Other const& other, std::string_view in_other = {}) {
    auto const turn = call();
    auto const to = writable_values();
    detail::copy_parameters({other.layout(), other.values(), other.buffers()}, {layout_, to->span(), buffers_.span()},
                            {}, in_other, 1);
    use(to);
  }

  /// Returns a predictor for another thread. Both read the same parameters, which are in memory once. Each has its own
  /// memory for activations, and state for `next`. `set` gives a predictor parameters of its own, and does not change
  /// the predictions of others. They may be destroyed in any order.
  [[nodiscard]] Predictor share(int threads = 1) {
    auto const turn = call();
    shared_ = true;
    return Predictor(*this, threads);
  }

  /// Sets the seed of random numbers in predictions, such as noise (0 by default), and restarts their sequence. Each
  /// prediction draws other numbers. Predictors with equal seeds draw equal numbers.
  void set_seed(std::uint64_t seed) noexcept {
    seed_ = seed;
    passes_ = 0;
  }

  /// Returns the model's prediction for a batch, in evaluation mode. The prediction is valid until the next call.
  /// @throws all that the model throws
  template <class Batch>
  [[nodiscard]] auto predict(Batch const& batch) {
    auto const turn = call();
    context_.cache().end_decoding();
    return run(batch);
  }

  /// Predicts like `predict` and keeps the state, so that `next` continues the sequences token by token. It keeps the
  /// state of causal attention, recurrent layers, causal convolutions and nn::encode_once, in place of any earlier
  /// state. Sequences may have unequal lengths.
  /// @throws ConfigError if the model has none of these layers, or has a layer that needs whole sequences, such as
  /// other attention or nn::mean_pool
  /// @throws ShapeError if a sequence has no tokens
  template <class Batch>
  [[nodiscard]] auto begin(Batch const& batch) {
    auto const turn = call();
    context_.cache().begin_sequences();
    return decode(batch);
  }
  /// Begins more sequences like `begin`, and returns their prediction. The next call of `next` continues the sequences
  /// that there are, followed by these. Without any, it is `begin`. After an exception, the others can continue.
  /// @throws as begin
  template <class Batch>
  [[nodiscard]] auto add(Batch const& batch) {
    auto const turn = call();
    context_.cache().begin_sequences(context_.cache().sequences());
    return decode(batch);
  }
  /// Predicts one more token for each sequence, without recomputing the earlier tokens. The result equals the last
  /// tokens of `predict` on the whole sequences; bits are equal except with a BLAS. Calls of `predict` in between
  /// change nothing.
  /// @throws ConfigError if there is no state to continue, as after an error
  /// @throws ShapeError unless the batch has one token per sequence
  /// @throws DataError if the model has no more positions
  template <class Batch>
  [[nodiscard]] auto next(Batch const& batch) {
    auto const turn = call();
    expect_sequences("next continues the sequences of begin");
    context_.cache().continue_sequences();
    return decode(batch);
  }

  /// Reorders, repeats or drops sequences, as a beam search needs. Sequence r of the next call of `next` continues
  /// sequence rows[r] of the last call. The last prediction stays valid.
  /// @throws ConfigError if there are no sequences to continue   @throws ShapeError for a row that does not exist
  /// Memory of sequences that are dropped is released. None may be left: then `add` begins others.
  /// @cost `next` copies the keys and values of repeated sequences; an encoder's output is copied if rows change
  /// between memories
  void select(std::span<Index const> rows) {
    auto const turn = call();
    expect_sequences("select chooses among the sequences of begin and next");
    context_.cache().select_rows(rows);
  }

  /// Returns the number of sequences that `next` continues.
  [[nodiscard]] Index sequences() noexcept { return context_.cache().sequences(); }

  /// Returns the strings that were saved with the parameters; empty without a file.
  [[nodiscard]] Metadata const& metadata() const noexcept { return metadata_; }
  /// Returns the predictor's copy of the model.
  [[nodiscard]] Model const& model() const noexcept { return *model_; }
  /// Returns the names and shapes of its parameters.
  [[nodiscard]] nn::ParameterLayout const& layout() const noexcept { return layout_; }

 private:
  using Values = memory::Buffer<typename Context::Real>;

  /// Marks the predictor as in use until the end of a call: predictions are in its memory.
  [[nodiscard]] detail::SingleThreadGuard::Call call() {
    return {guard_, "Predictor", "make one for each thread by share(), or hold a lock until the prediction is read"};
  }

  void expect_sequences(char const* what) {
    expect<ConfigError>(context_.cache().sequences() > 0, [&] {
      return "Predictor: " + std::string(what) + ", but there are none; call begin first, and again after an error";
    });
  }
  /// Runs a pass that begins or continues sequences.
  template <class Batch>
  [[nodiscard]] auto decode(Batch const& batch) {
    try {
      auto prediction = run(batch);
      expect<ConfigError>(context_.cache().end_decoding_pass(), [] {
        return "Predictor: this batch left no state to continue from, because the model has neither "
               "causal attention nor a recurrent layer nor a causal convolution, or the batch has no sequences; use "
               "predict";
      });
      return prediction;
    } catch (...) {
      context_.cache().cancel_decoding_pass();
      throw;
    }
  }
  template <class Batch>
  [[nodiscard]] auto run(Batch const& batch) {
    static_assert(
        requires { batch.rows(); },
        "Lockstep: predict takes a batch; for samples in memory, pass data::Collated{data::PadCollate{}, "
        "samples}.batch(); see docs/how-to/predict.md");
    if constexpr (detail::takes_context<Model, Context, Batch>()) {
      constexpr bool predicts = nn::HasPredict<Model, Context, Batch>;
      static_assert(predicts || nn::detail::PredictFits<Model, Context, Batch>,
                    "Lockstep: the model has no predict(context, batch) const for this batch type; see "
                    "docs/reference/model.md");
      if constexpr (predicts) {
        if (passes_ == 0) expect_stack("Predictor");
        nn::Pass(context_).begin_micro_batch(nn::Mode::evaluation, mix(seed_, passes_++));
        return model_->predict(context_, batch);
      } else if constexpr (nn::detail::PredictFits<Model, Context, Batch>) {
        return model_->predict(context_, batch);  // the compiler says why not, unless it has reported the body
      }
    }
  }

  Predictor(Model model, int threads)
      : model_(std::make_shared<Model>(std::move(model))),
        layout_(nn::ParameterLayout::of(*model_)),
        values_(std::make_shared<Values>(layout_.size())),
        buffers_(layout_.buffer_size()),
        pool_(std::make_unique<ThreadPool>(threads)),
        context_(memory::Stream<HostSpace>(*pool_)) {
    bind();
  }
  Predictor(Predictor const& other, int threads)
      : model_(other.model_),
        layout_(other.layout_),
        values_(other.values_),
        buffers_(layout_.buffer_size()),
        pool_(std::make_unique<ThreadPool>(threads)),
        context_(memory::Stream<HostSpace>(*pool_)),
        metadata_(other.metadata_),
        shared_(true),
        seed_(other.seed_) {
    std::copy_n(other.buffers_.data(), buffers_.size(), buffers_.data());
    bind();
  }

  void bind() {
    context_.parameters().bind(values_->data(), nullptr, layout_.entries().size());
    context_.parameters().bind_buffers(buffers_.data());
  }
  /// Returns memory for other values, which no other predictor reads.
  [[nodiscard]] std::shared_ptr<Values> writable_values() const {
    return shared_ ? std::make_shared<Values>(layout_.size()) : values_;
  }
  /// Makes values current that were written.
  void use(std::shared_ptr<Values> const& written) {
    if (written != values_) {
      values_ = written;
      shared_ = false;
      bind();
    }
    context_.cache().forget_sequences();
  }

  static void check(char const* what, std::span<float const> from, std::span<float const> to) {
    expect<ShapeError>(from.size() == to.size(), [&] {
      return "Predictor: the arena of " + std::string(what) + " has " + std::to_string(from.size()) +
             " elements and the model's " + std::to_string(to.size()) +
             "; give those of the same model: values() and buffers() of a trainer, or the trainer itself";
    });
  }

  std::shared_ptr<Model> model_;  // fixed address, also if this moves: the context keys its state by the addresses of
                                  // layers
  nn::ParameterLayout layout_;
  std::shared_ptr<Values> values_;
  Values buffers_;  // not shared, because a layer may write them
  std::unique_ptr<ThreadPool> pool_;
  Context context_;
  Metadata metadata_;
  bool shared_ = false;  // another predictor may read the values
  detail::SingleThreadGuard guard_;
  std::uint64_t seed_ = 0, passes_ = 0;
};

}}}  // namespace lockstep::train
