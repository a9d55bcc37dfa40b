// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/session.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

LOCKSTEP_COLD_INLINE DeviceFacts AnySession::device_facts() { return {}; }

LOCKSTEP_COLD_INLINE AnySession::AnySession(Kind kind) : kind_(std::move(kind)) {}

}}}  // namespace lockstep::parallel
