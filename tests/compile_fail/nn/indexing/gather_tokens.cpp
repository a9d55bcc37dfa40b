// SPDX-License-Identifier: Apache-2.0
// CASE variable: Lockstep: a layer over tokens takes a Sequence: nn::sequence_of makes one of a batch's column
// CASE numbers: Lockstep: nn::gather_tokens takes places within each sample's sequence
// CASE group_variable: Lockstep: a layer over tokens takes a Sequence: nn::sequence_of makes one of a batch's column
// CASE group_numbers: Lockstep: nn::group_tokens takes the first token of each group
// CASE group_single: Lockstep: nn::group_tokens takes the first token of each group
#include <array>
#include <cstdint>
#include <vector>

#include <lockstep/data/columns.hpp>
#include <lockstep/nn/autograd/sequence_of.hpp>
#include <lockstep/nn/indexing/gather_tokens.hpp>
#include <lockstep/nn/indexing/group_tokens.hpp>

using namespace lockstep;

struct Graph {
  std::vector<std::array<float, 4>> nodes;
  std::vector<std::int32_t> sources, firsts;
  std::vector<float> weights;
  std::int32_t root;
};

void read(nn::Context<float, HostSpace>& context,
          data::Columns<Graph, HostSpace, data::Sequences::ragged> const& batch) {
  auto const nodes = nn::sequence_of(context, batch[&Graph::nodes], batch.positions());
#if defined(CASE_variable)
  static_cast<void>(nn::gather_tokens(context, nodes.tokens, batch[&Graph::sources]));
#elif defined(CASE_numbers)
  static_cast<void>(nn::gather_tokens(context, nodes, batch[&Graph::weights]));
#elif defined(CASE_group_variable)
  static_cast<void>(nn::group_tokens(context, nodes.tokens, batch[&Graph::firsts]));
#elif defined(CASE_group_numbers)
  static_cast<void>(nn::group_tokens(context, nodes, batch[&Graph::weights]));
#elif defined(CASE_group_single)
  static_cast<void>(nn::group_tokens(context, nodes, batch[&Graph::root]));
#endif
  static_cast<void>(nn::gather_tokens(context, nodes, batch[&Graph::root]));
  static_cast<void>(
      nn::group_tokens(context, nn::gather_tokens(context, nodes, batch[&Graph::sources]), batch[&Graph::firsts]));
}
