// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// For observers that leave a file, which is one fit's: a second one counts its steps from 1 anew, and would drop what
/// is there.
class OneFit {
 public:
  /// @throws ConfigError when a fit began before, unless this one goes on from a checkpoint
  void start(char const* who, std::string const& path, Index resumed) {
    if (std::exchange(begun_, true) && resumed == 0)
      throw ConfigError(std::string(who) + ": " + path +
                        " is of a fit that came before, and would be lost; give each fit a " + who +
                        " with a path of its own");
  }

 private:
  bool begun_ = false;
};

}}}  // namespace lockstep::train::detail
