// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/kernel/copy/copy.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/loss.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {
namespace detail {

/// Returns names in quotation marks, or "none".
[[nodiscard, gnu::cold]] inline std::string quoted_names(std::vector<std::string> const& names) {
  std::string all;
  for (auto const& name : names) all += (all.empty() ? "\"" : ", \"") + name + "\"";
  return all.empty() ? "none" : all;
}

/// The named losses of a batch's forward pass in an evaluation.
template <class Space>
class NamedLosses {
 public:
  void clear() noexcept { losses_.clear(); }
  void add(std::string_view name, Loss<Space> const& loss) {
    auto const at = find(name);
    if (at == losses_.end())
      losses_.emplace_back(name, loss);
    else
      at->second += loss;
  }
  /// @throws ConfigError if no loss has that name
  [[nodiscard]] Loss<Space> const& of(std::string_view name) {
    auto const at = find(name);
    if (at != losses_.end()) return at->second;
    std::vector<std::string> names;
    for (auto const& [other, loss] : losses_) names.push_back(other);
    throw ConfigError("train::LossPart: the model's loss of a batch has no part \"" + std::string(name) +
                      "\"; it names " + quoted_names(names) +
                      ". Name the part when the loss is computed, for every batch: nn::named_loss(context, \"" +
                      std::string(name) + "\", loss)");
  }

 private:
  [[nodiscard]] auto find(std::string_view name) {
    return std::find_if(losses_.begin(), losses_.end(), [&](auto const& named) { return named.first == name; });
  }

  std::vector<std::pair<std::string, Loss<Space>>> losses_;
};

template <class Context>
[[nodiscard]] NamedLosses<typename Context::Space>& named_losses(Context& context) {
  return context.template persistent<NamedLosses<typename Context::Space>>(nullptr);
}

/// Sums of the named losses of a training step, over its micro-batches, in the replica's space. Their addresses do not
/// change, so that recorded passes add to them.
template <class Space>
class StepLosses {
 public:
  static constexpr std::size_t max_names = 256;  // a task of a model may have a name of its own

  /// Sets all sums to zero.
  void begin_step(memory::Stream<Space> stream) {
    auto const used = 2 * static_cast<Index>(names_.size());
    if (used > 0) kernel::Copy<Space>::template run<double>(stream, zeros(), totals(0), used);
  }
  /// @throws ConfigError if it is the first loss of that name and there are max_names others
  void add(memory::Stream<Space> stream, std::string_view name, Loss<Space> const& loss) {
    auto const at = static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
    if (at == names_.size()) add_name(name);
    if constexpr (Space::host_accessible) {
      totals(at)[0] += loss.sum;
      totals(at)[1] += loss.weight;
    } else if (loss.totals) {
      kernel::BinaryOperation<Space>::template backward<kernel::FirstOperand, double>(stream, {loss.totals, {2}}, {},
                                                                                      {totals(at), {2}}, Write::add);
    }
  }
  /// Returns the names so far, in the order of their first losses.
  [[nodiscard]] std::vector<std::string> const& names() const noexcept { return names_; }
  /// Returns the sum of the losses with names()[i].
  [[nodiscard]] Loss<Space> operator[](std::size_t i) const noexcept {
    if constexpr (Space::host_accessible)
      return {totals(i)[0], totals(i)[1]};
    else
      return {totals(i), nullptr, nullptr};
  }

 private:
  [[gnu::cold]] void add_name(std::string_view name) {
    if (names_.size() == max_names)
      throw ConfigError("nn::named_loss: \"" + std::string(name) + "\" is one name more than the " +
                        std::to_string(max_names) + " that a model may have; the first is \"" + names_[0] +
                        "\". Give some losses equal names, which do not depend on the batch");
    if (names_.empty())
      numbers_ = memory::Buffer<double, Space>(4 * static_cast<Index>(max_names), memory::DefaultResource<Space>{});
    names_.emplace_back(name);
  }
  [[nodiscard]] double* totals(std::size_t i) const noexcept { return numbers_.data() + 2 * i; }
  [[nodiscard]] double const* zeros() const noexcept { return totals(max_names); }

  std::vector<std::string> names_;
  memory::Buffer<double, Space> numbers_;  // a sum and a weight for each name, then as many zeros
};

template <class Context>
[[nodiscard]] StepLosses<typename Context::Space>& step_losses(Context& context) {
  return context.template persistent<StepLosses<typename Context::Space>>(nullptr);
}

}  // namespace detail

/// Names a part of a model's loss: `reconstruction.with_auxiliary(nn::named_loss(context, "kl", kl))`. A
/// train::LossPart reports it in evaluations, FitOptions::loss_parts in training. Losses of equal name are added.
/// @returns the loss   @throws ConfigError for more than 256 names
template <class Context>
LossOf<Context> named_loss(Context& context, std::string_view name, LossOf<Context> const& loss) {
  if (context.mode() == Mode::evaluation)
    detail::named_losses(context).add(name, loss);
  else if (!context.recomputing())
    detail::step_losses(context).add(context.stream(), name, loss);
  return loss;
}

}}}  // namespace lockstep::nn
