// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/embedding/embedding_inputs.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Destinations of the gradients of an embedding's inputs, except tables. Null ones are skipped.
template <class Scalar, class Space>
struct EmbeddingGradients {
  /// Where the gradients of one table or part are written.
  struct Target {
    Scalar* data = nullptr;          ///< null: no gradient is needed
    Write write = Write::overwrite;  ///< whether to overwrite or to add
  };
  Target dense[EmbeddingInputs<Scalar, Space>::max_parts]{};  ///< of each part that is not a table: [entries, width]
  Target position{};                                          ///< shape as the inputs' position
  Target type{};                                              ///< shape as the inputs' type
  Target weight{};                                            ///< of the norm, [width]
  Target bias{};                                              ///< of the norm, [width]
};

}}}  // namespace lockstep::kernel
