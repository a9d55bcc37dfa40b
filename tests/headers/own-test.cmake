# SPDX-License-Identifier: Apache-2.0
# lockstep_own_test(tests header result): where the test beside a header, in the folder `tests`, includes it before all
# else, and so compiles it by itself, the name of that test, "folder/name" or "emulated/folder/name"; otherwise nothing.
function(lockstep_own_test tests header result)
  set(${result} "" PARENT_SCOPE)
  string(REGEX REPLACE "^lockstep/(.*)\\.(hpp|cuh)$" "\\1" name "${header}")
  set(test "${name}")
  set(file "${tests}/${name}.test.cpp")
  if(header MATCHES "\\.cuh$")
    set(test "emulated/${name}")
    set(file "${tests}/${name}.test.cu")
  endif()
  if(EXISTS "${file}")
    file(STRINGS "${file}" first REGEX "^#include" LIMIT_COUNT 1)
    if(first STREQUAL "#include <${header}>")
      set(${result} "${test}" PARENT_SCOPE)
    endif()
  endif()
endfunction()
