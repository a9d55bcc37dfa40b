// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/element_type.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/core/version.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/agreement.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

#define LOCKSTEP_TEXT(x) #x
#define LOCKSTEP_TEXT_OF(x) LOCKSTEP_TEXT(x)
inline constexpr char build[] = LOCKSTEP_TEXT_OF(LOCKSTEP_ABI);
#undef LOCKSTEP_TEXT_OF
#undef LOCKSTEP_TEXT

void add_entries(Agreement& agreement, char const* kind, std::vector<nn::ParameterLayout::Entry> const& entries);

/// Returns the values that must be equal on all ranks of a run, for any optimizer.
template <class Model>
[[nodiscard]] Agreement common_agreement(nn::ParameterLayout const& layout, char const* backend,
                                         std::size_t bucket_bytes) {
  Agreement agreement;
  agreement.add("version", version);
  agreement.add("build", build);
  agreement.add("backend", backend);
  agreement.add("instruction set", to_string(best_instruction_set()));
  agreement.add("activations", name(element_type_of<nn::ActivationsOf<Model>>));
  if constexpr (std::is_same_v<nn::ActivationsOf<Model>, bfloat16>)
    agreement.add("products of bfloat16", multiplies_bfloat16_tiles() ? "the processor's tiles"
                                          : multiplies_bfloat16()     ? "the processor's"
                                                                      : "in float");
  agreement.add("bytes of a bucket", static_cast<Index>(bucket_bytes));
  add_entries(agreement, "parameter ", layout.entries());
  add_entries(agreement, "buffer ", layout.buffers());
  return agreement;
}

}}}  // namespace lockstep::parallel::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/policy/detail/common_agreement.ipp>
#endif
