// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/half_precision.hpp>
#include <lockstep/nn/initialize.hpp>
#include <lockstep/nn/model.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/train/detail/one_thread.hpp>
#include <lockstep/train/detail/take_parameters.hpp>
#include <lockstep/train/load_averages.hpp>
#include <lockstep/train/safetensors.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Which parameters of a checkpoint are taken.
enum class Parameters {
  values,    ///< those that training goes on from
  averages,  ///< those that an optim::Averaged kept, by which evaluations were made
};

/// A model with its parameters that predicts: no trainer, policy, optimizer or communicator. It holds no gradients.
/// Used by one thread at a time; several predictors may run at once.   @throws ConfigError in a call that meets another
template <class Model>
class Predictor {
  static_assert(nn::HasParameters<Model>,
                "Lockstep: the model has no visit(each) that names its layers and parameters in forward order; see "
                "docs/reference/model.md");

 public:
  using Context = nn::Context<nn::ActivationsOf<Model>, HostSpace>;

  /// Loads what training saved, or what others did under `names` of their own; `threads` share the work.
  /// @throws DataError when the file is not one of this model's parameters; ConfigError when `names` leaves one out
  Predictor(Model model, std::string const& path, NamesInFile const& names, int threads = 1)
      : Predictor(std::move(model), threads) {
    auto const expect_named = [&](auto const& entries) {
      for (auto const& entry : entries)
        if (names(entry.name).empty())
          throw ConfigError(path + ": the names leave out \"" + entry.name +
                            "\", and a predictor has nothing else to take it from; name all, or train the rest first");
    };
    expect_named(layout_.entries()), expect_named(layout_.buffers());
    metadata_ = load_parameters(path, layout_, values_.span(), buffers_.span(), names);
  }
  Predictor(Model model, std::string const& path, int threads = 1)
      : Predictor(std::move(model), path, NamesInFile{}, threads) {}
  /// Loads what training saved in a checkpoint.   @throws DataError also when averages are wanted and there are none
  Predictor(Model model, std::string const& path, Parameters which, int threads = 1)
      : Predictor(std::move(model), threads) {
    metadata_ = which == Parameters::averages ? load_averages(path, layout_, values_.span(), buffers_.span())
                                              : load_parameters(path, layout_, values_.span(), buffers_.span());
  }
  /// Takes the parameters (and buffers) of a trainer at hand, in the order of its arenas.
  /// @throws ShapeError when an arena is not of this model's size
  Predictor(Model model, std::span<float const> values, std::span<float const> buffers = {}, int threads = 1)
      : Predictor(std::move(model), threads) {
    set(values, buffers);
  }

  /// Takes those of a trainer whose model has this one as a part, by name, as `set` does.
  template <detail::HasNamedNumbers Other>
  Predictor(Model model, Other const& other, std::string_view in_other = {}, int threads = 1)
      : Predictor(std::move(model), threads) {
    set(other, in_other);
  }

  /// Takes others, such as those that a trainer has after a few steps more. `next` then begins anew.
  /// @throws ShapeError when an arena is not of this model's size
  void set(std::span<float const> values, std::span<float const> buffers = {}) {
    auto const turn = call();
    check("parameters", values, values_.span());
    check("buffers", buffers, buffers_.span());
    std::copy(values.begin(), values.end(), values_.data());
    std::copy(buffers.begin(), buffers.end(), buffers_.data());
    tokens_ = 0;
  }

  /// The same by name, of a trainer whose model may have more: names begin with `in_other` there, as an encoder's do in
  /// what it was trained in: set(trainer, "encoder.").
  /// @throws ConfigError when the other model lacks one of the names, ShapeError when two shapes differ
  template <detail::HasNamedNumbers Other>
  void set(Other const& other, std::string_view in_other = {}) {
    auto const turn = call();
    detail::take_parameters({other.layout(), other.values(), other.buffers()},
                            {layout_, values_.span(), buffers_.span()}, {}, in_other, 1);
    tokens_ = 0;
  }

  /// What models draw in their predictions, such as noise, follows from this and from how many predictions there have
  /// been since: each has other draws. Predictors of one seed have the same; it is 0 at first.
  void set_seed(std::uint64_t seed) noexcept { seed_ = seed, passes_ = 0; }

  /// What the model predicts for a batch, in evaluation mode. What it refers to stays until the next call.
  /// @throws what the model throws
  template <class Batch>
  [[nodiscard]] auto predict(Batch const& batch) {
    auto const turn = call();
    context_.keep_no_tokens();
    return run(batch);
  }

  /// The same, for sequences that are to go on token by token: what causal attention, recurrent layers and causal
  /// convolutions have made of these tokens is kept, and what nn::encode_once made, in place of what was kept before.
  /// The sequences are equally long.
  /// @throws ConfigError when the model has none of these, or a layer that takes whole
  /// sequences, such as another attention or nn::mean_pool   @throws ShapeError when the sequences' lengths differ
  template <class Batch>
  [[nodiscard]] auto begin(Batch const& batch) {
    auto const turn = call();
    return go_on(batch, 0);
  }
  /// What the model predicts for one more token of each of those sequences, which is all of them that the batch has: as
  /// `predict` for the last tokens of all, with the same bits unless a BLAS multiplies, without computing the others
  /// again. Calls of `predict` in between change nothing.
  /// @throws ConfigError when there is nothing to go on with, as after an error   @throws ShapeError unless the batch
  /// has one token of each   @throws DataError when there are no more positions
  template <class Batch>
  [[nodiscard]] auto next(Batch const& batch) {
    auto const turn = call();
    expect<ConfigError>(tokens_ > 0, [] {
      return "Predictor: next goes on with the sequences of begin, and there are none; call begin first, and again "
             "after an error";
    });
    return go_on(batch, tokens_);
  }

  /// Sequence r of the next call of `next` continues sequence rows[r] of the last call: beams of a search are
  /// reordered, repeated and left out this way. What the last call predicted stays valid.
  /// @throws ConfigError when there are no sequences to continue   @throws ShapeError for a row that does not exist
  /// @cost a copy of the kept keys and values; those of a memory are copied only if rows change between memories
  void select(std::span<Index const> rows) {
    auto const turn = call();
    expect<ConfigError>(tokens_ > 0, [] {
      return "Predictor: select chooses among the sequences of begin and next, and there are none; call begin first";
    });
    context_.select_rows(rows);
  }

  /// The texts that were saved with the parameters; empty without a file.
  [[nodiscard]] Metadata const& metadata() const noexcept { return metadata_; }
  [[nodiscard]] Model const& model() const noexcept { return *model_; }
  [[nodiscard]] nn::ParameterLayout const& layout() const noexcept { return layout_; }

 private:
  /// What it predicts lies in its memory.
  [[nodiscard]] detail::OneThread::Call call() {
    return {user_, "Predictor", "make one for each thread, or hold a lock until the prediction is read"};
  }

  /// Behind so many tokens of each sequence.
  template <class Batch>
  [[nodiscard]] auto go_on(Batch const& batch, Index earlier) {
    tokens_ = 0;  // unless this pass comes to its end
    context_.keep_tokens(earlier);
    auto prediction = run(batch);
    expect<ConfigError>(context_.added_tokens() > 0, [] {
      return "Predictor: nothing was kept of this batch that others could go on with, for the model has neither "
             "causal attention nor a recurrent layer nor a causal convolution, or the sequences have no tokens; use "
             "predict";
    });
    tokens_ = earlier + context_.added_tokens();
    return prediction;
  }
  template <class Batch>
  [[nodiscard]] auto run(Batch const& batch) {
    static_assert(
        requires { batch.rows(); },
        "Lockstep: predict takes a batch, and of samples at hand data::Collated{data::PadCollate{}, "
        "samples}.batch(); see docs/how-to/predict.md");
    static_assert(nn::HasPredict<Model, Context, Batch>,
                  "Lockstep: the model has no predict(context, batch) const for this batch type; see "
                  "docs/reference/model.md");
    context_.begin_micro_batch(nn::Mode::evaluation, mix(seed_, passes_++));
    return model_->predict(context_, batch);
  }

  Predictor(Model model, int threads)
      : model_(std::make_unique<Model>(std::move(model))),
        layout_(nn::ParameterLayout::of(*model_)),
        pool_(std::make_unique<ThreadPool>(threads)),
        values_(layout_.size()),
        buffers_(layout_.buffer_size()),
        context_(memory::Stream<HostSpace>(*pool_)) {
    context_.bind(values_.data(), nullptr, layout_.entries().size());
    context_.bind_buffers(buffers_.data());
  }

  static void check(char const* what, std::span<float const> from, std::span<float const> to) {
    expect<ShapeError>(from.size() == to.size(), [&] {
      return "Predictor: the arena of " + std::string(what) + " has " + std::to_string(from.size()) +
             " elements and the model's " + std::to_string(to.size()) + "; give those of the same model";
    });
  }

  std::unique_ptr<Model> model_;  // stays where it is when this moves: the context keeps things by layers' addresses
  nn::ParameterLayout layout_;
  std::unique_ptr<ThreadPool> pool_;
  memory::Buffer<float> values_, buffers_;
  Context context_;
  Metadata metadata_;
  detail::OneThread user_;
  Index tokens_ = 0;  // of each sequence that `next` goes on with
  std::uint64_t seed_ = 0, passes_ = 0;
};

}}}  // namespace lockstep::train
