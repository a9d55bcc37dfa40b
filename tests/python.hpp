// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "skip.hpp"

namespace lockstep_test {

/// Returns the Python interpreter that tests start: LOCKSTEP_PEER_PYTHON, else python3, or the system's python3 if only
/// that one has numpy. It is the program itself, not a script that selects one and takes longer than most tests.
inline std::string const& python() {
  static std::string const found = [] {
    char const* const named = std::getenv("LOCKSTEP_PEER_PYTHON");
    if (named && *named) return std::string(named);
    for (char const* const name : {"python3", "/usr/bin/python3"}) {
      auto const command = std::string(name) + " -c 'import sys, numpy; print(sys.executable)' 2>/dev/null";
      std::FILE* const output = ::popen(command.c_str(), "r");
      if (!output) continue;
      char path[4096] = "";
      bool const read = std::fgets(path, sizeof path, output);
      if (::pclose(output) == 0 && read) return std::string(path, std::strcspn(path, "\n"));
    }
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
