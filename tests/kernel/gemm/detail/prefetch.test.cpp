// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/gemm/detail/prefetch.hpp>

#include <doctest/doctest.h>

#include <vector>

using lockstep::Index;
using lockstep::kernel::detail::Prefetch;

TEST_CASE("a range is prefetched from the first byte to the last, range by range") {
  std::vector<float> const memory(4096);
  auto const* const bytes = static_cast<char const*>(static_cast<void const*>(memory.data()));
  for (Index first : {0, 1, 64, 1000})
    for (Index second : {0, 1, 64, 1000}) {
      auto prefetch = Prefetch::of(memory.data(), first, memory.data() + 2048, second);
      Index asked[2] = {0, 0};
      for (int i = 0; i < 1000; ++i) {
        prefetch.advance();
        auto const* const before = prefetch.at;
        prefetch.fetch();
        if (prefetch.at != before) asked[before < bytes + 2048 * 4 ? 0 : 1] += prefetch.at - before;
      }
      CHECK((asked[0] >= first * 4 && asked[0] < first * 4 + 256));
      CHECK((asked[1] >= second * 4 && asked[1] < second * 4 + 256));
    }
  Prefetch none;
  none.advance();
  none.fetch();
  CHECK(none.at == nullptr);
}
