// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <lockstep/core/crc32.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/optim/decay_rule.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/optim/rate_rule.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

namespace detail {

/// Rule of optim::Partitioned: whether its first optimizer updates a parameter.
class PartitionRule : public ParameterRule<PartitionRule> {
 public:
  static constexpr char const* setting = "rule";

  template <class Function>
  requires std::is_invocable_v<Function, std::string_view, std::span<Index const>>
  constexpr PartitionRule(Function function)  // NOLINT(google-explicit-constructor): converts by design
      : ParameterRule(function) {
    static_assert(
        std::is_same_v<std::invoke_result_t<Function, std::string_view, std::span<Index const>>, bool>,
        "Lockstep: the rule of optim::Partitioned returns a bool: true for parameters of the first optimizer");
  }
};

}  // namespace detail

/// Two optimizers, each for its own parameters: `rule(name, shape)` returns true for parameters that `first` updates.
/// `second` updates all others, and may itself be Partitioned. Example:
/// `Partitioned{Muon{.learning_rate = 0.02}, AdamW{.learning_rate = 1e-3}, [](std::string_view name,
/// std::span<Index const> shape) { return shape.size() == 2 && name.starts_with("h."); }}`.
///
/// Both have a base rate, their own rules `rates` and `decays`, and their own settings. Schedules, scaling and a change
/// of `learning_rate` multiply both rates by the same factor. Gradients of all parameters are clipped together. Each
/// parameter takes the memory of the optimizer with more states; its last states are those of its optimizer, and the
/// others stay zero. To average the parameters, average both: `Partitioned{Averaged{SGD{}}, Averaged{AdamW{}}, rule}`.
template <class First, class Second>
struct Partitioned {
  First first;           ///< updates the parameters that the rule selects
  Second second;         ///< updates all others
  double learning_rate;  ///< rate of `first`, which schedules and scaling multiply; that of `second` keeps its ratio

  /// @param rule function of a parameter's name and shape, or a lambda that captures at most 16 bytes; returns whether
  /// `first_optimizer` updates the parameter
  Partitioned(First first_optimizer, Second second_optimizer, detail::PartitionRule rule)
      : first(std::move(first_optimizer)),
        second(std::move(second_optimizer)),
        learning_rate(first.learning_rate),
        rule_(rule) {}

  static_assert(optim::parts<First>() == 1,
                "Lockstep: the first optimizer of optim::Partitioned is a single one; nest the second: "
                "Partitioned{Muon{}, Partitioned{SGD{}, AdamW{}, rule}, rule}");
  static_assert(optim::averages<First> == optim::averages<Second>,
                "Lockstep: one optimizer of optim::Partitioned is optim::Averaged and the other is not; average both");

  static constexpr int parts = 1 + optim::parts<Second>();                ///< number of optimizers
  static constexpr int states = std::max(First::states, Second::states);  ///< of the optimizer with more
  static constexpr bool averages = optim::averages<First>;                ///< evaluations use the average
  /// whether one of them takes slices of whole parameters
  static constexpr bool whole_parameters = steps_whole_parameters<First>() || steps_whole_parameters<Second>();

  /// Returns both names, as in checkpoints: "Muon and AdamW".
  [[nodiscard]] static std::string name() { return name_of<First>() + " and " + name_of<Second>(); }
  /// Returns the name in checkpoints for a layout, with the number of parameters of each optimizer and a checksum of
  /// their choice: a run does not resume with a rule that chooses others.
  [[nodiscard, gnu::cold]] std::string name_for(auto const& layout) const {
    std::array<int, static_cast<std::size_t>(parts)> counts{};
    std::string choice;
    for (auto const& entry : layout.entries()) {
      auto const part = part_of(entry);
      ++counts[static_cast<std::size_t>(part)];
      choice += static_cast<char>('0' + part);
    }
    std::string numbers;
    for (auto const count : counts) numbers += (numbers.empty() ? "" : " and ") + std::to_string(count);
    Crc32 checksum;
    checksum.add(std::as_bytes(std::span(choice)));
    return name() + " for " + numbers + " parameters (checksum " + std::to_string(checksum.sum()) + ")";
  }
  /// Returns the learning rate that `learning_rate` has unless a program sets it.
  [[nodiscard]] static constexpr double default_learning_rate() requires std::default_initializable<First> {
    return First{}.learning_rate;
  }
  /// Calls each(name, value) for the settings that must be equal on all ranks.
  void describe(auto&& each) const {
    auto const with = [&](std::string const& prefix) {
      return [&each, prefix](std::string_view setting, auto value) {
        each((prefix + std::string(setting)).c_str(), value);
      };
    };
    optim::describe(first, with("first "));
    optim::describe(second, with("second "));
  }
  /// Checks the settings of both.   @throws ConfigError for a setting out of range, or if first.learning_rate is 0
  void check() const {
    check_settings(first);
    check_settings(second);
    if (!(ratio() >= 0) || !std::isfinite(ratio()))
      throw ConfigError("Partitioned: the learning rate of the first optimizer is " + shortest(first.learning_rate) +
                        ", and that of the second " + shortest(second.learning_rate) +
                        "; the first must be above 0, since rates keep their ratio; to change none of its parameters, "
                        "use its `rates`");
  }

  /// Returns the number of the optimizer that updates a parameter: 0 for `first`.
  [[nodiscard]] int part_of(auto const& entry) const { return takes(entry) ? 0 : 1 + optim::part_of(second, entry); }
  /// Returns f(optimizer of this number).
  template <class Function>
  decltype(auto) with_part(int part, Function const& f) const {
    if (part == 0) return f(first);
    return optim::with_part(second, part - 1, f);
  }
  /// Returns the factor on `learning_rate` for a parameter.
  [[nodiscard]] double rate_of(auto const& entry) const {
    return takes(entry) ? optim::rate_of(first, entry) : ratio() * optim::rate_of(second, entry);
  }
  /// Returns the factor on the weight decay of a parameter.
  [[nodiscard]] double decay_of(auto const& entry) const {
    return takes(entry) ? optim::decay_of(first, entry) : optim::decay_of(second, entry);
  }

 private:
  [[nodiscard]] bool takes(auto const& entry) const { return rule_(entry.name, entry.shape) != 0; }
  [[nodiscard]] double ratio() const { return second.learning_rate / first.learning_rate; }

  detail::PartitionRule rule_;
};

}}}  // namespace lockstep::optim
