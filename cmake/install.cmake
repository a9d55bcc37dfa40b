# SPDX-License-Identifier: Apache-2.0
# `cmake --install`, and the package for find_package(lockstep). Optional targets are components:
# find_package(lockstep 0.1 COMPONENTS compiled compiled_cuda blas onednn zstd utf8proc hdf5 tensorboard mpi app sentencepiece torch cuda cudnn nccl).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(lockstep_package "${CMAKE_INSTALL_LIBDIR}/cmake/lockstep")
install(
  TARGETS lockstep
  EXPORT lockstep
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILE_SET cuda_headers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILE_SET leaf_headers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILE_SET bodies DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT lockstep NAMESPACE lockstep:: FILE lockstep-targets.cmake DESTINATION "${lockstep_package}")
# The libraries of the linked way, those that were built.
foreach(library compiled compiled_app compiled_cuda)
  if(TARGET lockstep_${library})
    string(REPLACE "_" "-" export "lockstep-${library}")
    install(TARGETS lockstep_${library} EXPORT ${export} ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" OPTIONAL)
    install(EXPORT ${export} NAMESPACE lockstep:: FILE ${export}-targets.cmake DESTINATION "${lockstep_package}")
  endif()
endforeach()
file(GLOB lockstep_package_files CONFIGURE_DEPENDS cmake/lockstep-*.cmake)
install(FILES ${lockstep_package_files} DESTINATION "${lockstep_package}")
write_basic_package_version_file(
  "${CMAKE_CURRENT_BINARY_DIR}/lockstep-config-version.cmake" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/lockstep-config-version.cmake" DESTINATION "${lockstep_package}")
# In a subdirectory, CMAKE_INSTALL_DOCDIR may be the folder of the project that contains Lockstep.
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/lockstep")

# The benchmarks of collate and all_reduce, to build against the installed package: cmake -S <share>/lockstep/benchmarks
if(LOCKSTEP_BUILD_BENCHMARKS)
  set(lockstep_benchmark_files
      CMakeLists.txt answer.hpp main.cpp peer.hpp probe.hpp python_peer.hpp ratios.py suite.hpp
      comm/collectives/all_reduce.bench.cpp comm/engine_ranks.hpp data/clips_file.hpp data/collate/collate.bench.cpp
      data/samples.hpp peers/all_reduce.py peers/loader.py peers/mkl_vendor.cpp peers/mpi_all_reduce.cpp peers/turns.py)
  foreach(file ${lockstep_benchmark_files})
    cmake_path(GET file PARENT_PATH folder)
    install(FILES "benchmarks/${file}" DESTINATION "${CMAKE_INSTALL_DATADIR}/lockstep/benchmarks/${folder}")
  endforeach()
endif()

# For builds without CMake: pkg-config --cflags lockstep, or --cflags --libs lockstep_compiled. The latter has the macros
# and libraries that lockstep::compiled was compiled with. An absolute folder has no prefix.
foreach(folder include lib)
  set(lockstep_${folder}dir "\${prefix}")
endforeach()
cmake_path(APPEND lockstep_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
cmake_path(APPEND lockstep_libdir "${CMAKE_INSTALL_LIBDIR}")
configure_file(cmake/lockstep.pc.in lockstep.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/lockstep.pc" DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig")

function(lockstep_install_pkg_config lockstep_pc_name lockstep_pc_requires lockstep_pc_cflags lockstep_pc_libraries)
  configure_file(cmake/lockstep_compiled.pc.in ${lockstep_pc_name}.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${lockstep_pc_name}.pc" DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig")
endfunction()
if(LOCKSTEP_BUILD_COMPILED)
  set(cflags -DLOCKSTEP_COMPILED)
  set(libraries "")
  if(LOCKSTEP_COMPILED_FOR_ONE_SET)
    list(APPEND cflags -DLOCKSTEP_ONE_INSTRUCTION_SET)
  endif()
  if("lockstep::blas" IN_LIST lockstep_compiled_link)
    list(APPEND cflags -DLOCKSTEP_BLAS)
    list(APPEND libraries "${LOCKSTEP_OPENBLAS}" -lm)
  endif()
  if("lockstep::onednn" IN_LIST lockstep_compiled_link)
    list(APPEND cflags -DLOCKSTEP_ONEDNN "-I${LOCKSTEP_ONEDNN_INCLUDE}")
    list(APPEND libraries "${LOCKSTEP_ONEDNN}" "${LOCKSTEP_GOMP}")
  endif()
  list(JOIN cflags " " cflags)
  list(JOIN libraries " " libraries)
  lockstep_install_pkg_config(lockstep_compiled lockstep "${cflags}" "${libraries}")
  if(TARGET lockstep_compiled_app)
    lockstep_install_pkg_config(lockstep_compiled_app lockstep_compiled "-I${LOCKSTEP_YAML_INCLUDE}" "${LOCKSTEP_YAML}")
  endif()
endif()
