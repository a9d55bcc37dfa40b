#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# filter.sh FILE: prints a header as doxygen reads it. Lines keep their numbers.
# - The inline namespace of the library is left out of names: another block with braces takes its place.
# - A header belongs to the group of its folder (groups.sh).
[[ $1 == */include/lockstep/*/* ]] || exec cat "$1"
folder=${1#*/include/lockstep/}
folder=${folder%/*}
sed -e "/^namespace lockstep {.*{\$/s|\$| /** @addtogroup ${folder//\//_} */ /** @{ */|" \
  -e 's|^}}*  // namespace lockstep|/** @} */ &|' -e 's/inline namespace LOCKSTEP_ABI {/extern "C++" {/' "$1"
