// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/parallel/session.hpp>
#include <lockstep/train/trace/trace.hpp>
#include <lockstep/train/trainer/detail/any_loader.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Makes a session and a loader record into a Trace, if there is one, during the steps to record.
class Tracing {
 public:
  /// Plans the recording among the steps after `done` up to `all`. All arguments must outlive this object.
  Tracing(Trace* trace, int devices, parallel::AnySession& session, AnyLoader& loader, Index done, Index all);
  Tracing(Tracing const&) = delete;
  Tracing& operator=(Tracing const&) = delete;
  /// Ends the recording, also after an exception.
  ~Tracing();

  void before_step(Index step);
  void after_micro_step(double asked, double began, double queued, double sent);
  void after_step(Index step, double began, double updating, double ended);
  void add(char const* what, double began, double ended, Index number = -1);

 private:
  void start();
  void stop();

  Trace* trace_;
  int devices_;
  parallel::AnySession* session_;
  AnyLoader* loader_;
  Index first_ = 0;
  bool recording_ = false;
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/tracing.ipp>
#endif
