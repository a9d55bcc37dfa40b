// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/core/tensor_view.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Tensor of a file from which a parameter is read, and how; `export_parameters` saves it there. By default the tensor
/// has the parameter's shape. The tensor is viewed in `shape`, then its axes are permuted by `axes`, then the
/// parameter's rows are taken.
struct TensorInFile {
  std::string name;              ///< name in the file; "" if the file does not have the parameter
  Index rows_before = 0;         ///< rows of the tensor before the parameter's, as of the query before a key's
  Index rows_after = 0;          ///< rows of the tensor after the parameter's
  std::vector<Index> axes = {};  ///< axis of the tensor for each axis of the result: {1, 0} transposes; none: unchanged
  std::vector<Index> shape = {};  ///< shape in which the tensor is viewed before `axes`; none: its own
};

}}}  // namespace lockstep::train
