// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss/ctc_best_path.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/nn/autograd/sequence.hpp>

using namespace lockstep;

TEST_CASE("repetitions are merged, and blanks separate labels and are removed") {
  std::vector<Index> const offsets{0, 7, 7, 9}, positions(3);
  std::vector<float> logits;
  for (int const best : {1, 1, 0, 1, 2, 2, 0, 0, 2})
    for (int k = 0; k < 3; ++k) logits.push_back(k == best ? 1.0f : 0.5f);
  nn::Sequence<float, HostSpace> const prediction{
      {{logits.data(), {9, 3}}, nullptr},
      nn::SequenceLayout<HostSpace>::ragged(9, 7, {offsets.data(), {4}}, {positions.data(), {3}})};
  using Read = std::vector<std::int32_t>;
  CHECK(nn::ctc_best_path(prediction, 0) == Read{1, 1, 2});
  CHECK(nn::ctc_best_path(prediction, 1) == Read{});
  CHECK(nn::ctc_best_path(prediction, 2) == Read{2});
  CHECK(nn::ctc_best_path(prediction, 0, 2) == Read{1, 0, 1, 0});
}
