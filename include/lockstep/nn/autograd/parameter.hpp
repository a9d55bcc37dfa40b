// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Initial values of a parameter or buffer.
struct Initializer {
  /// Rule for the elements.
  enum class Kind {
    constant,  ///< every element is `scale`
    uniform,   ///< U(-scale, scale)
    normal,    ///< N(0, scale^2)
    given,     ///< the elements at `values`
  };
  Kind kind = Kind::constant;     ///< rule
  double scale = 0;               ///< constant, bound or deviation; unused for `given`
  float const* values = nullptr;  ///< for `given`

  /// Every element is `value`.
  [[nodiscard]] static constexpr Initializer constant(double value) { return {Kind::constant, value}; }
  /// U(-bound, bound).
  [[nodiscard]] static constexpr Initializer uniform(double bound) { return {Kind::uniform, bound}; }
  /// N(0, deviation^2).
  [[nodiscard]] static constexpr Initializer normal(double deviation) { return {Kind::normal, deviation}; }
  /// Copies the elements, row-major, from `values`, for example a pretrained table. `values` must stay valid as long as
  /// the model may be initialized.
  [[nodiscard]] static constexpr Initializer given(float const* values) { return {Kind::given, 0, values}; }
  /// U(-1/sqrt(fan_in), 1/sqrt(fan_in)): PyTorch's default for Linear weights and biases.
  [[nodiscard]] static Initializer fan_in(Index inputs) { return uniform(1 / std::sqrt(static_cast<double>(inputs))); }
};

/// Form of a parameter's gradient.
enum class GradientForm {
  dense,    ///< every element is written
  by_rows,  ///< table: a step writes only the rows that it touches; all other rows count as zero and are never read
};

/// A learned tensor of a model: a shape, an initializer and an offset in the arenas. It holds no pointer. A model is
/// therefore a plain immutable value that any number of replicas share. `ParameterLayout` fills in offset and name.
struct Parameter {
  std::vector<Index> shape;                          ///< extents; empty for a single number
  Initializer initializer;                           ///< initial values
  Index offset = -1;                                 ///< first element in the arena
  int ordinal = -1;                                  ///< number in forward order
  GradientForm gradient_form = GradientForm::dense;  ///< whether a step may write only some rows
  std::string name{};                                ///< path in its model: "encoder.0.attention.query.weight"
  bool frozen = false;                               ///< excluded from the optimizer: nn::Frozen

  /// Returns the number of elements.
  [[nodiscard]] Index size() const {
    Index elements = 1;
    for (auto extent : shape) elements *= extent;
    return elements;
  }
  /// Returns the name of a layer for messages: "Linear encoder.0.attention.query" for a weight of that layer. Returns
  /// `kind` alone if the parameter has no name yet.
  /// @param levels how far the layer is above the parameter
  [[nodiscard]] std::string layer(std::string const& kind, int levels = 1) const;
};

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/autograd/parameter.ipp>
#endif
