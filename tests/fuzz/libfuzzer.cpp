// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry point. LOCKSTEP_FUZZ names the parser:
//   LOCKSTEP_FUZZ=tar fuzz -max_total_time=60 NEW_INPUTS tests/fuzz/corpus/tar
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/targets.hpp"

namespace {

lockstep_test::FuzzTarget const& chosen() {
  auto const* const name = std::getenv("LOCKSTEP_FUZZ");
  for (auto const& target : lockstep_test::fuzz_targets())
    if (name != nullptr && target.name == name) return target;
  std::fputs("LOCKSTEP_FUZZ must name one of:", stderr);
  for (auto const& target : lockstep_test::fuzz_targets()) std::fprintf(stderr, " %s", target.name.data());
  std::fputc('\n', stderr);
  std::_Exit(2);  // libFuzzer takes any other end for a crash
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static auto const& target = chosen();
  lockstep_test::parses(target, {reinterpret_cast<char const*>(data), size});
  return 0;
}
