// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/atomic_file.ipp>
#include <lockstep/core/base64.ipp>
#include <lockstep/core/checksum.ipp>
#include <lockstep/core/crc32.ipp>
#include <lockstep/core/error.ipp>
#include <lockstep/core/folder.ipp>
#include <lockstep/core/free_memory.ipp>
#include <lockstep/core/hmac_sha256.ipp>
#include <lockstep/core/json.ipp>
#include <lockstep/core/json_value.ipp>
#include <lockstep/core/json_writer.ipp>
#include <lockstep/core/keyed_permutation.ipp>
#include <lockstep/core/mix.ipp>
#include <lockstep/core/nearest.ipp>
#include <lockstep/core/option_descriptor.ipp>
#include <lockstep/core/out_of_memory.ipp>
#include <lockstep/core/parse_real.ipp>
#include <lockstep/core/persistent_objects.ipp>
#include <lockstep/core/processors.ipp>
#include <lockstep/core/progress.ipp>
#include <lockstep/core/regular_file.ipp>
#include <lockstep/core/safetensors_layout.ipp>
#include <lockstep/core/segment_plan.ipp>
#include <lockstep/core/sha256.ipp>
#include <lockstep/core/shortest.ipp>
#include <lockstep/core/start_thread.ipp>
#include <lockstep/core/tensor_view.ipp>
#include <lockstep/core/thread_pool.ipp>
#include <lockstep/core/tree_sum.hpp>
#include <lockstep/memory/free_list.ipp>
#include <lockstep/memory/scratch.hpp>

#if !defined(LOCKSTEP_COMPILED)
#error "Lockstep: compile the library and the programs that are linked with it with -DLOCKSTEP_COMPILED"
#endif

char lockstep_is_linked_in_one_file_and_header_only_in_another;
[[LOCKSTEP_MIX_SECTION]] static char lockstep_is_linked;

namespace lockstep { inline namespace LOCKSTEP_ABI {

template void tree_sum_into_first<float>(std::span<float* const> sources, Index begin, Index end) noexcept;
template void tree_sum_into_first<double>(std::span<double* const> sources, Index begin, Index end) noexcept;

namespace memory {
template class Scratch<HostResource>;
template class Scratch<AnyHostResource>;
}

}}  // namespace lockstep
