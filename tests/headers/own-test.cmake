# SPDX-License-Identifier: Apache-2.0
# lockstep_own_test(tests header result): where the test beside a header, in the folder `tests`, includes it before all
# else, and so compiles it by itself, its name "folder/name"; otherwise nothing.
function(lockstep_own_test tests header result)
  set(${result} "" PARENT_SCOPE)
  string(REGEX REPLACE "^lockstep/(.*)\\.hpp$" "\\1" name "${header}")
  if(EXISTS "${tests}/${name}.test.cpp")
    file(STRINGS "${tests}/${name}.test.cpp" first REGEX "^#include" LIMIT_COUNT 1)
    if(first STREQUAL "#include <${header}>")
      set(${result} "${name}" PARENT_SCOPE)
    endif()
  endif()
endfunction()
