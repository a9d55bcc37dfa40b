// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>

namespace lockstep_test {

/// A parser, by the name of its format and of the folder of its corpus.
struct FuzzTarget {
  std::string_view name;
  void (*parse)(std::string_view input);
};

/// Every parser of files and texts that the library has.
std::span<FuzzTarget const> fuzz_targets();

/// Parses an input and uses what came of it. False when it was refused as it should be, with an error of the library
/// that says why.
bool parses(FuzzTarget const& target, std::string_view input);

}  // namespace lockstep_test
