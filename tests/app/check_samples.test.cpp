// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/check_samples.hpp>

#include <string>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

std::string refused(int nproc, int ranks, int devices, Index samples, std::string const& data = "") {
  app::Options options;
  options.data = data;
  options.nproc = nproc;
  options.ranks = ranks;
  options.devices = devices;
  try {
    app::check_samples(options, samples);
  } catch (ConfigError const& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a sample per rank or device is enough, and fewer samples are refused with the remedy") {
  CHECK(refused(1, 1, 1, 1).empty());
  CHECK(refused(3, 3, 1, 3).empty());
  CHECK(refused(1, 1, 4, 4).empty());
  CHECK(refused(4, 4, 1, 3).find("4 ranks for 3 training samples") == 0);
  CHECK(refused(4, 4, 1, 3).find("--nproc 3") != std::string::npos);
  CHECK(refused(1, 4, 1, 3).find("--devices 3") != std::string::npos);
  CHECK(refused(1, 1, 4, 3).find("4 devices for 3 training samples") == 0);
}

TEST_CASE("no samples are refused with the file, as no number of devices is a remedy") {
  CHECK(refused(1, 1, 1, 0) ==
        "there are no training samples; check the file, and the lengths and limits by which samples are made of it");
  CHECK(refused(2, 2, 1, 0, "a.txt").find("there are no training samples in a.txt; check") == 0);
}
