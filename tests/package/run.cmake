# SPDX-License-Identifier: Apache-2.0
# run(COMMAND…) runs a command and sets `says` to what it prints. A command that fails ends the script.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE failed OUTPUT_VARIABLE says ERROR_VARIABLE says)
  if(failed)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${says}")
  endif()
  set(says "${says}" PARENT_SCOPE)
endfunction()
