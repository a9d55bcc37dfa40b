// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <string>

#include "skip.hpp"

namespace lockstep_test {

/// The Python interpreter that tests start: LOCKSTEP_PEER_PYTHON, else python3.
inline std::string python() {
  char const* const named = std::getenv("LOCKSTEP_PEER_PYTHON");
  return named && *named ? named : "python3";
}

/// Whether that Python can import a module; if not, the running case counts as skipped and should return.
inline bool has_python_module(std::string const& name) {
  auto const command = "'" + python() + "' -c 'import " + name + "' >/dev/null 2>&1";
  if (std::system(command.c_str()) == 0) return true;
  skip(Need::python, name);
  return false;
}

}  // namespace lockstep_test
