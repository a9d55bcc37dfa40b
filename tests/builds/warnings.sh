#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# warnings.sh COMPILER: all headers, and README's program, compile header-only without a warning of those that projects
# often enable, in GNU's dialect, with g++ of C++23, and after the macros of Xlib, GLib and loggers.
set -euo pipefail
compiler=$1
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
program=$(awk '/^```cpp$/ { block = 1; next } /^```$/ { if (block) exit } block' "$root/README.md")
[[ $program == *"int main()"* ]] || { echo "README.md has no program" >&2; exit 1; }
# Headers that the umbrella leaves out, except those of other libraries and of trainers' command lines.
headers=$(cd "$root/include" && find lockstep -name '*.hpp' | grep -v -E '/(detail|app|interop|mpi)/' | sort |
  sed 's/.*/#include <&>/')
if [[ $("$compiler" --version) == *clang* ]]; then
  standard=gnu++20 # libstdc++ and older versions of clang disagree about C++23
  own=(-Wcomma -Wformat-nonliteral -Wextra-semi-stmt -Wnewline-eof)
else
  standard=gnu++23
  own=(-Wuseless-cast -Wlogical-op -Wduplicated-cond -Wredundant-decls)
fi
macros=(Bool=int Status=int True=1 False=0 None=0L Success=0 Always=2 Above=0 Below=1 Unsorted=0 Complex=0 Convex=2
  KeyPress=2 FocusIn=9 CursorShape=0 Expose=12 GrayScale=1 ControlMask=4 ParentRelative=1L CurrentTime=0L
  TRUE=1 FALSE=0 'MIN(a,b)=((a)<(b)?(a):(b))' 'MAX(a,b)=((a)>(b)?(a):(b))' 'ABS(a)=(a)' 'CLAMP(x,l,h)=(x)'
  emit= foreach=for 'forever=for(;;)' ERROR=3 WARNING=2 INFO=1 DEBUG=0 FATAL=4 'CHECK(x)=(x)' 'LOG(x)=(x)'
  'ASSERT(x)=(x)' 'VERIFY(x)=(x)' 'likely(x)=(x)' 'unlikely(x)=(x)' PI=3 EPS=1e-6 OK=0 PAGE_SIZE=4096 BLOCK_SIZE=512
  VERSION='"1"' PACKAGE='"app"' 'major(d)=gnu_dev_major(d)' 'minor(d)=gnu_dev_minor(d)' complex=_Complex I=1.0i B0=0 B1=1
  HIGH=1 LOW=0 INPUT=0 OUTPUT=1 'BIT(x)=(1<<(x))' IN= OUT= interface=struct 'min(a,b)=((a)<(b)?(a):(b))' STATUS=1 NONE=0)
"$compiler" -std=$standard -fsyntax-only -DLOCKSTEP_ONE_INSTRUCTION_SET -I "$root/include" -Wall -Wextra -Wpedantic \
  -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wcast-align -Woverloaded-virtual -Wnon-virtual-dtor \
  -Wdouble-promotion -Wextra-semi -Wundef -Wformat=2 -Wfloat-conversion -Wimplicit-fallthrough -Wsuggest-override \
  "${own[@]}" -Werror "${macros[@]/#/-D}" -x c++ - <<<"$headers
$program"
