// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/train/trace/trace.hpp>
#include <lockstep/train/trainer/detail/any_loader.hpp>
#include <lockstep/train/trainer/detail/any_session.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Makes a session and a loader record into a Trace, if there is one, during the steps to record.
class Tracing {
 public:
  /// Plans the recording among the steps after `done` up to `all`. All arguments must outlive this object.
  Tracing(Trace* trace, int devices, AnySession& session, AnyLoader& loader, Index done, Index all)
      : trace_(trace), devices_(devices), session_(&session), loader_(&loader) {
    if (trace_) first_ = trace_->plan(done, all);
  }
  Tracing(Tracing const&) = delete;
  Tracing& operator=(Tracing const&) = delete;
  /// Ends the recording, also after an exception.
  ~Tracing() {
    try {
      stop();
    } catch (...) {  // a device that failed before
    }
  }

  void before_step(Index step) {
    if (!trace_ || step < first_) return;
    if (step == first_)
      start();
    else if (step >= first_ + trace_->options().steps)
      stop();
  }
  void after_micro_step(double asked, double began, double queued, double sent) {
    add("data wait", asked, began);
    add("micro-batch", began, queued);
    if (!session_->kind().on_host) add("next batch", queued, sent);
  }
  void after_step(Index step, double began, double updating, double ended) {
    if (!recording_) return;
    add("update", updating, ended);
    add("step", began, ended, step);
    trace_->count();
  }
  void add(char const* what, double began, double ended, Index number = -1) {
    if (recording_) trace_->training().add({.name = what, .begin = began, .end = ended, .number = number});
  }

 private:
  void start() {
    trace_->begin(first_, devices_, session_->kind().on_host);
    recording_ = true;
    session_->trace(trace_);
    loader_->trace(&trace_->loading());
  }
  void stop() {
    if (!recording_) return;
    recording_ = false;
    session_->trace(nullptr);
    loader_->trace(nullptr);
  }

  Trace* trace_;
  int devices_;
  AnySession* session_;
  AnyLoader* loader_;
  Index first_ = 0;
  bool recording_ = false;
};

}}}  // namespace lockstep::train::detail
