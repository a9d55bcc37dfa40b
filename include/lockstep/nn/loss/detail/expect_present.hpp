// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/shortest.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Rejects rows whose std::optional is empty: such a row reads like padding and would be learned as that number. Checks
/// only columns of optionals, on the host.
/// @throws RowError (at Contract::normal, on the host) for an empty row, unless `is_left_out(row)`; `remedy` tells the
/// user how to exclude it
template <class Space, class Column, class IsLeftOut>
void expect_present(char const* who, Column const& column, IsLeftOut const& is_left_out, char const* remedy) {
  if constexpr (Space::host_accessible && requires { column.present; }) {
    if constexpr (!checks(Contract::normal)) return;
    for (Index row = 0; row < column.present.size(); ++row)
      if (!column.present(row) && !is_left_out(row))
        throw RowError(std::string(who) + ": row " + std::to_string(row) +
                           " of the batch has no value: its std::optional is empty, and training would use " +
                           shortest(static_cast<double>(column.values(row))) + "; " + remedy,
                       row);
  }
}

}}}  // namespace lockstep::nn::detail
