// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/embedding/embedding_gradients.hpp>

#include <doctest/doctest.h>

#include <type_traits>

using Gradients = lockstep::kernel::EmbeddingGradients<float, lockstep::HostSpace>;

static_assert(std::is_trivially_copyable_v<Gradients>);  // it is passed to devices by value

TEST_CASE("only named gradients are requested") {
  Gradients const none;
  for (auto const& target : {none.position, none.type, none.weight, none.bias}) CHECK(target.data == nullptr);
  for (auto const& target : none.dense) CHECK(target.data == nullptr);
}
