#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the groups of the API reference: one per floor, from the table in docs/explanation/floors.md, and in it one per
# room, from the folders.
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit
sed 's/\[\([^]]*\)\]([^)]*)/\1/g' docs/explanation/floors.md | awk '
  BEGIN {
    FS = " *[|] *"
    print "/** @mainpage API reference"
    print "Docstrings of the public headers, by floor. A floor uses only itself and floors above it.\n"
    print "| floor | contains |\n|---|---|"
  }
  /^\| floor \| contains \| does not know/ { inside = 1; getline; next }
  !/^\|/ { inside = 0 }
  inside {
    floor = $2
    gsub(/`/, "", floor)
    print "| @ref " floor " | " $3 " |"
    brief = "\n@brief " toupper(substr($3, 1, 1)) substr($3, 2) ". */\n"
    groups = groups "/** @defgroup " floor " " floor brief
    groups = groups "/** @namespace lockstep" (floor == "core" ? "" : "::" floor) brief
  }
  END { print "*/\n" groups }'
find include/lockstep -mindepth 2 -type d ! -path '*/detail*' -printf '%P\n' | sort |
  awk -F/ '{ print "/** @defgroup " $1 "_" $2 " " $2 "\n@ingroup " $1 " */" }'
