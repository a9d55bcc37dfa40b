// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/embedding/embedding_inputs.hpp>

#include <doctest/doctest.h>

#include <type_traits>

using namespace lockstep;
using Inputs = kernel::EmbeddingInputs<float, HostSpace>;

static_assert(std::is_trivially_copyable_v<Inputs>);  // it is passed to devices by value

TEST_CASE("gradients pass unchanged only through a plain sum") {
  Inputs const plain;
  CHECK(plain.is_plain_sum());
  Inputs scaled, normalized, dropped;
  scaled.scale = 2;
  normalized.norm = kernel::Norm::rms;
  dropped.mask = kernel::DropoutMask::of(1, 0.5);
  for (auto const* inputs : {&scaled, &normalized, &dropped}) CHECK_FALSE(inputs->is_plain_sum());
}
