// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>

#include <lockstep/core/option_descriptor.hpp>
#include <lockstep/parallel/wire_format.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Options of DistributedDataParallel that flags set and run.json has, for those who keep them without a policy: a
/// trainer's options and the record of a run. The policy has members of equal names.
struct DistributedOptions {
  bool shard_optimizer = false;                    ///< each rank keeps only its part of the optimizer's state
  WireFormat gradient_wire = WireFormat::float32;  ///< element type in which ranks send gradients
};

/// Whether a type has the members of DistributedOptions.
template <class Owner>
concept HasDistributedOptions = requires(Owner& owner) {
  { owner.shard_optimizer } -> std::convertible_to<bool>;
  { owner.gradient_wire } -> std::convertible_to<WireFormat>;
};

namespace detail {
inline constexpr OptionWord wire_words[] = {
    {"fp32", WireFormat::float32}, {"bf16", WireFormat::bfloat16}, {"fp16", WireFormat::float16}};
}  // namespace detail

/// Describes the options. Flags, the comparison between ranks and run.json follow from it.
template <HasDistributedOptions Owner>
[[nodiscard, gnu::cold]] OptionList describe_distributed(Owner& owner) {
  return {"DistributedDataParallel",
          {
              {.name = "shard_optimizer",
               .variable = owner.shard_optimizer,
               .agreement = "sharded optimizer",
               .recorded = Recorded::if_changed,
               .flag = {.names = "--shard-optimizer",
                        .heading = "Parallelism",
                        .help = "Keep 1/n of the optimizer state on each of n ranks, with ddp; results are "
                                "bit-identical",
                        .compared = Compared::no}},
              {.name = "gradient_wire",
               .variable = {owner.gradient_wire, detail::wire_words},
               .agreement = "gradient wire",
               .recorded = Recorded::if_changed,
               .flag = {.names = "--gradient-wire",
                        .heading = "Parallelism",
                        .help = "Number format in which ddp sends gradients; fp16 requires --precision fp16"}},
          }};
}

}}}  // namespace lockstep::parallel
