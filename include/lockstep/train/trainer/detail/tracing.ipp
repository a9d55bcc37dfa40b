// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/detail/tracing.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE Tracing::Tracing(Trace* trace, int devices, parallel::AnySession& session, AnyLoader& loader,
                                      Index done, Index all)
    : trace_(trace), devices_(devices), session_(&session), loader_(&loader) {
  if (trace_) first_ = trace_->plan(done, all);
}

LOCKSTEP_COLD_INLINE Tracing::~Tracing() {
  try {
    stop();
  } catch (...) {  // a device that failed before
  }
}

LOCKSTEP_INLINE void Tracing::before_step(Index step) {
  if (!trace_ || step < first_) return;
  if (step == first_)
    start();
  else if (step >= first_ + trace_->options().steps)
    stop();
}

LOCKSTEP_INLINE void Tracing::after_micro_step(double asked, double began, double queued, double sent) {
  add("data wait", asked, began);
  add("micro-batch", began, queued);
  if (!session_->kind().on_host) add("next batch", queued, sent);
}

LOCKSTEP_INLINE void Tracing::after_step(Index step, double began, double updating, double ended) {
  if (!recording_) return;
  add("update", updating, ended);
  add("step", began, ended, step);
  trace_->count();
}

LOCKSTEP_INLINE void Tracing::add(char const* what, double began, double ended, Index number) {
  if (recording_) trace_->training().add({.name = what, .begin = began, .end = ended, .number = number});
}

LOCKSTEP_COLD_INLINE void Tracing::start() {
  trace_->begin(first_, devices_, session_->kind().on_host);
  recording_ = true;
  std::vector<Timeline*> devices;
  devices.reserve(static_cast<std::size_t>(trace_->devices()));
  for (int device = 0; device < trace_->devices(); ++device) devices.push_back(&trace_->device(device));
  session_->trace(devices, &trace_->training());
  loader_->trace(&trace_->loading());
}

LOCKSTEP_COLD_INLINE void Tracing::stop() {
  if (!recording_) return;
  recording_ = false;
  session_->trace({}, nullptr);
  loader_->trace(nullptr);
}

}}}  // namespace lockstep::train::detail
