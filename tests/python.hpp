// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>
#include <string>

#include "skip.hpp"

namespace lockstep_test {

/// Returns the Python interpreter that tests start: LOCKSTEP_PEER_PYTHON, else python3, or the system's python3 if only
/// that one has numpy.
inline std::string const& python() {
  static std::string const found = [] {
    char const* const named = std::getenv("LOCKSTEP_PEER_PYTHON");
    if (named && *named) return std::string(named);
    for (char const* const name : {"python3", "/usr/bin/python3"})
      if (std::system((std::string(name) + " -c 'import numpy' >/dev/null 2>&1").c_str()) == 0)
        return std::string(name);
    return std::string("python3");
  }();
  return found;
}

/// Whether that Python can import a module; if not, the running case counts as skipped and should return.
inline bool has_python_module(std::string const& name) {
  auto const command = "'" + python() + "' -c 'import " + name + "' >/dev/null 2>&1";
  if (std::system(command.c_str()) == 0) return true;
  skip(Need::python, name);
  return false;
}

}  // namespace lockstep_test
