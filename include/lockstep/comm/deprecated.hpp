// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/operation.hpp>

/// Former names of this folder's types, until the next version.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

using Operation [[deprecated("comm::Reduction")]] = Reduction;
using Piece [[deprecated("comm::CollectiveOperation")]] = CollectiveOperation;

}}}  // namespace lockstep::comm
