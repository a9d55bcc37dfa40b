// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Removes run.json at the start of a resumed run, which is incomplete until it writes the file again.
struct RemoveRunJson final : train::Observer {
  explicit RemoveRunJson(std::string path) : run_json(std::move(path)) {}
  void start(train::StartReport const&) override {
    std::error_code error;
    std::filesystem::remove(run_json, error);
  }
  std::string run_json;
};

}}}  // namespace lockstep::app::detail
