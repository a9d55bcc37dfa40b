// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/detail/hints.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

LOCKSTEP_INLINE std::string note_on_gpus(Options const& options, launch::Environment const& place) {
  bool const elsewhere = place.size > 1 && place.launcher != launch::Launcher::lockstep;
  if (options.backend != Backend::cuda || elsewhere) return "";
  auto const devices = static_cast<std::size_t>(options.all_devices()), gpus = options.gpus.size();
  auto const counted = [](std::size_t count) { return std::to_string(count) + (count == 1 ? " GPU" : " GPUs"); };
  if (devices < gpus)
    return std::to_string(devices) + " of " + counted(gpus) + (devices == 1 ? " is" : " are") +
           " used; --parallel ddp --nproc auto uses all, and --gpu-ids chooses";
  if (devices > gpus)
    return std::to_string(devices) + " ranks or devices share " + counted(gpus) +
           ", which is slower than one GPU each; CUDA_VISIBLE_DEVICES decides which GPUs a program sees";
  return "";
}

LOCKSTEP_INLINE std::string note_on_quota(std::optional<int> quota, int allowed) {
  if (!quota || *quota >= allowed) return "";
  return "a quota of the control group (container) gives this run " + std::to_string(*quota) + " of " +
         std::to_string(allowed) + " processors; the defaults of --threads and --nproc auto follow it";
}

LOCKSTEP_INLINE std::string note_on_shared_processors(Options const& options, int ranks_here) {
  constexpr int many = 4;
  auto const threads = Index{ranks_here} * options.devices * options.threads;
  if (options.backend != Backend::host || threads <= many * Index{options.cores}) return "";
  return std::to_string(threads) + " training threads share " + std::to_string(options.cores) +
         (options.cores == 1 ? " processor" : " processors") +
         " and take turns; fewer ranks, devices or --threads are faster, and --nproc auto starts a rank for each "
         "processor";
}

LOCKSTEP_INLINE std::string note_on_slow_start(double seconds) {
  constexpr double slow = 10;
  if (seconds < slow) return "";
  return "this rank took " + std::to_string(std::llround(seconds)) +
         " s to open its data and to make the model; docs/how-to/troubleshooting.md lists ways to shorten it";
}

LOCKSTEP_INLINE std::string note_on_lost_output(std::FILE* out) {
  bool const lost = std::fflush(out) != 0 || std::ferror(out) != 0;
  pollfd polled{::fileno(out), POLLOUT, 0};
  bool const unread = ::poll(&polled, 1, 0) > 0 && (polled.revents & POLLERR) != 0;
  if (!lost || unread) return "";
  return "some of the standard output could not be written and is lost; redirect it to a disk with free space";
}

LOCKSTEP_INLINE std::string message_of(std::exception const& error) {
  if (auto const* const lookup = dynamic_cast<std::filesystem::filesystem_error const*>(&error))
    return lookup->path1().string() + ": " + lookup->code().message() + "; check the path and its permissions";
  if (dynamic_cast<std::bad_alloc const*>(&error) == nullptr) return error.what();
  auto const* const large = dynamic_cast<memory::OutOfMemory const*>(&error);
  auto const refused = large ? memory_size(static_cast<double>(large->bytes())) : std::string("memory");
  auto const memory = FreeMemory::of_host();
  return "out of memory: the host, or a limit such as ulimit -v, refused " + refused +
         (memory ? " (" + memory_size(static_cast<double>(memory->total_bytes)) + " in all)" : std::string()) +
         "; a smaller --batch-size with more --grad-accum-steps, --precision bf16 or a smaller --prefetch need less, "
         "and --dry-run prints how much a device takes";
}

LOCKSTEP_INLINE std::string with_memory_hint(std::string const& report) {
  if (report.find("was killed by signal 9") == std::string::npos) return report;
  return report + "; the kernel does that when memory runs out, which dmesg reports";
}

LOCKSTEP_INLINE std::string note_on_attention(parallel::DeviceFacts const& gpu) {
  if (gpu.attention_kernels != name(parallel::AttentionKernels::cudnn)) return {};
  auto const others = gpu.attention_not_by_cudnn, all = gpu.attention_by_cudnn + others;
  if (all == 0) return "cuDNN computed no attention, because the model has none in 16 bits";
  if (others == 0) return {};
  return "cuDNN did not compute " + std::to_string(others) + " of the " + std::to_string(all) +
         " passes of attention that were queued or recorded, but Lockstep's kernels did: " + gpu.attention_reason;
}

}}}  // namespace lockstep::app::detail
