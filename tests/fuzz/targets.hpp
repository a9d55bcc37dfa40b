// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>

namespace lockstep_test {

/// A parser, with the name of its format and of its corpus folder.
struct FuzzTarget {
  std::string_view name;
  void (*parse)(std::string_view input);
};

/// All parsers of files and texts in the library.
std::span<FuzzTarget const> fuzz_targets();

/// Parses an input and uses the result. Returns false if it was refused by an error of the library with a reason.
bool parses(FuzzTarget const& target, std::string_view input);

}  // namespace lockstep_test
