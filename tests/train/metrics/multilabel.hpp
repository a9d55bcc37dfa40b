// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <iterator>
#include <vector>

#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/variable.hpp>

/// Predictions with labels that do not exclude each other, the inputs of metrics.
namespace multilabel {
using namespace lockstep;

struct Mail {
  std::array<float, 3> tags;
  int is_spam;
};

/// Adds a batch with these logits, row by row.
inline void add(auto& metric, std::vector<Mail> const& mails, std::vector<float> logits) {
  data::Collated const batch{data::PadCollate{}, mails};
  Index const rows = std::ssize(mails);
  metric.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {rows, std::ssize(logits) / rows}}, nullptr},
             batch.batch());
}

}  // namespace multilabel
