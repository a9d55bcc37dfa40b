// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <lockstep/core/utf8.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Returns text of another process in a form that can be shown: cut after `most` bytes, with `\xHH` for bytes that are
/// no UTF-8 and for control characters, which could change a terminal or forge a line of a log.
[[nodiscard]] std::string peer_text(std::string_view text, std::size_t most = 480);

}}}  // namespace lockstep::launch

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/peer_text.ipp>
#endif
