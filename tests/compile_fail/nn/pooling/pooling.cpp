// SPDX-License-Identifier: Apache-2.0
// CASE mean: Lockstep: a layer over tokens takes a Sequence: nn::sequence_of makes one of a batch's column
// CASE first: Lockstep: a layer over tokens takes a Sequence: nn::sequence_of makes one of a batch's column
// CASE last: Lockstep: a layer over tokens takes a Sequence: nn::sequence_of makes one of a batch's column
// CASE max: Lockstep: a layer over tokens takes a Sequence: nn::sequence_of makes one of a batch's column
// CASE ctc: Lockstep: a layer over tokens takes a Sequence: nn::sequence_of makes one of a batch's column
#include <array>
#include <cstdint>
#include <vector>

#include <lockstep/data/columns.hpp>
#include <lockstep/nn/autograd/sequence_of.hpp>
#include <lockstep/nn/loss/ctc_loss.hpp>
#include <lockstep/nn/pooling/pooling.hpp>

using namespace lockstep;

struct Clip {
  std::vector<std::array<float, 4>> frames;
  std::vector<std::int32_t> signs;
};

void read(nn::Context<float, HostSpace>& context, data::Columns<Clip> const& batch) {
  auto const series = context.input(batch[&Clip::frames].values);
  auto const sequence = nn::sequence_of(context, batch[&Clip::frames], batch.positions());
#if defined(CASE_mean)
  static_cast<void>(nn::mean_pool(context, series));
#elif defined(CASE_first)
  static_cast<void>(nn::first_token(context, series));
#elif defined(CASE_last)
  static_cast<void>(nn::last_token(context, series));
#elif defined(CASE_max)
  static_cast<void>(nn::max_pool(context, series));
#elif defined(CASE_ctc)
  static_cast<void>(nn::ctc_loss(context, series, batch[&Clip::signs]));
#endif
  static_cast<void>(nn::mean_pool(context, sequence));
  static_cast<void>(nn::ctc_loss(context, sequence, batch[&Clip::signs]));
  static_cast<void>(series);
}
