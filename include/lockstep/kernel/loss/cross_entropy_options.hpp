// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <concepts>
#include <optional>
#include <span>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/core/tensor_view.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// One weight for each class: a view of a std::vector<float>, std::array or std::span, which must outlive it.
class ClassWeights : public std::span<float const> {
 public:
  using std::span<float const>::span;
  constexpr ClassWeights() = default;
  /// Refers to the weights, which must outlive it.
  /// @shape weights [classes]
  template <class Floats>
  requires std::convertible_to<Floats const&, std::span<float const>>
  constexpr ClassWeights(Floats const& weights)  // NOLINT(google-explicit-constructor): converts by design
      : span(weights) {}
  /// Rejects weights of another type at compile time.
  template <class Others>
  requires(!std::convertible_to<Others const&, std::span<float const>> && requires(Others const& w) {
    w.begin();
  }) constexpr ClassWeights(Others const&) {  // NOLINT(google-explicit-constructor)
    static_assert(sizeof(Others) == 0,
                  "Lockstep: class_weights takes floats, one for each class, that the model keeps: a "
                  "std::vector<float> or a std::array of float; data::ClassBalance{labels, names}.weights() makes one");
  }
};

/// Options of the cross entropy with labels. The defaults give -log p[label].
struct CrossEntropyOptions {
  ClassWeights class_weights{};    ///< [classes] on the host, for any space; if empty, each class has weight 1
  double label_smoothing = 0;      ///< share of the label that is spread over all classes, in [0, 1]
  std::optional<Index> ignored{};  ///< rows with this label, inside the classes or not, are ignored
  double factor = 1;               ///< of loss and gradient, not of the weight: for an auxiliary loss

  /// Checks the number of factors.   @throws ShapeError unless each row of logits has a factor, or there are none
  template <class Factors>
  static void check_factors(Factors const& factors, Extents<2> logits) {
    expect<ShapeError>(!factors.data || factors.size() == logits[0], [&] {
      return "cross_entropy: logits are " + to_string(logits) + " and there are " + std::to_string(factors.size()) +
             " factors; each row of logits needs one, or leave them out";
    });
  }
  /// Checks the options for this number of classes.
  /// @throws ShapeError for another number of weights
  /// @throws ConfigError for a smoothing outside [0, 1], or a weight that is negative or not finite
  void check(Index classes) const {
    auto const weights = static_cast<Index>(class_weights.size());
    expect<ShapeError>(weights == 0 || weights == classes, [&] {
      return "cross_entropy: there are " + std::to_string(classes) + " classes and " + std::to_string(weights) +
             " class weights; each class needs one, or leave them out";
    });
    if constexpr (checks(Contract::normal))
      for (Index c = 0; c < weights; ++c) {
        auto const weight = class_weights[static_cast<std::size_t>(c)];
        expect<ConfigError>(weight >= 0 && std::isfinite(weight), [&] {
          return "cross_entropy: the weight of class " + std::to_string(c) + " is " + shortest(weight) +
                 "; each must be at least 0 and finite, even for a class without samples";
        });
      }
    expect<ConfigError>(label_smoothing >= 0 && label_smoothing <= 1, [&] {
      return "cross_entropy: label smoothing is " + shortest(label_smoothing) +
             "; it must be in [0, 1]; 0 turns it off";
    });
  }
};

}}}  // namespace lockstep::kernel
