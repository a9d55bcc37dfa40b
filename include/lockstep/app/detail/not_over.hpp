// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <lockstep/train/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// A run that goes on for longer than it was to is not over, until it says so again.
struct NotOver final : train::Observer {
  explicit NotOver(std::string path) : run_json(std::move(path)) {}
  void start(train::StartReport const&) override {
    std::error_code error;
    std::filesystem::remove(run_json, error);
  }
  std::string run_json;
};

}}}  // namespace lockstep::app::detail
