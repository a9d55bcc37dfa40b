// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Guard of observers that write one fit's file. A second fit counts steps from 1 again and would remove the first
/// fit's lines.
class SingleFitGuard {
 public:
  /// @throws ConfigError if a fit started before and this one does not resume from a checkpoint
  void start(char const* who, std::string const& path, Index resumed);

 private:
  bool begun_ = false;
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/detail/single_fit_guard.ipp>
#endif
