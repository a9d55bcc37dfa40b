// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/row_dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Second summand of a normalization's input: x + dropout(value). A null value adds nothing.
template <class Scalar, class Space>
struct Residual {
  TensorView<Scalar const, 2, Space> value{};  ///< [rows, width], or null
  RowDropout<Space> dropout{};                 ///< applied to `value`
};

}}}  // namespace lockstep::kernel
