// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <iostream>

#include "skip.hpp"

namespace lockstep_test {
namespace {

std::atomic<bool> skipped = false;

char const* text(Need need) {
  switch (need) {
    case Need::gpu:
      return "a GPU";
    case Need::shared:
      return "../shared";
    case Need::nvcc:
      return "an nvcc of version 12 or later";
    case Need::torch:
      return "a Python with torch";
    case Need::python:
      return "a Python with the package";
    case Need::strace:
      return "an strace that may trace";
    case Need::latex:
      return "pdflatex";
  }
  return "?";
}

}  // namespace

void skip(Need need, std::string_view what) {
  skipped = true;
  std::cout << "skipped: needs " << text(need) << ": " << what << std::endl;
}

}  // namespace lockstep_test

int main(int argc, char** argv) {
  for (int const signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);  // a shell's & ignores SIGINT
  doctest::Context context(argc, argv);
  context.setOption("no-intro", true);
  int const failed = context.run();
  if (context.shouldExit() || failed != 0) return failed;
  return lockstep_test::skipped ? 77 : 0;
}
