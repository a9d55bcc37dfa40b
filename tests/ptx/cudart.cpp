// SPDX-License-Identifier: Apache-2.0
/// Replaces the CUDA runtime for programs compiled by nvcc: the emulation of tests/cuda_emulation/ with the runtime's
/// names and layouts, and kernels executed from their PTX. PTX_FOLDER names a folder for the PTX text, PTX_COUNTS a
/// file for the counts (counts.hpp).
#include <zstd.h>

#include "cuda_emulation/cuda_runtime.h"
#include "exported.hpp"
#include "machine.hpp"

namespace {

struct Launch {  // cudaLaunchConfig_t
  ptx::Extent grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
  void* attributes;
  unsigned attribute_count;
};
std::map<void const*, ptx::Function const*>& kernels() {
  static std::map<void const*, ptx::Function const*> all;
  return all;
}
std::vector<std::unique_ptr<ptx::Module>>& modules() {
  static std::vector<std::unique_ptr<ptx::Module>> all;
  return all;
}

/// Compute capability of the compiled program, such as 80 for 8.0.
unsigned capability() { return modules().empty() ? 80 : modules().front()->target; }
/// Shared memory limit of a block at that compute capability.
std::size_t most_shared_bytes() {
  switch (capability()) {
    case 75:
      return std::size_t{64} << 10;
    case 80:
    case 87:
      return std::size_t{163} << 10;
    case 86:
    case 89:
    case 120:
    case 121:
      return std::size_t{99} << 10;
    default:
      return std::size_t{227} << 10;
  }
}
/// Limit of a kernel's dynamic shared memory: 48 KB minus its static shared memory, unless more is allowed.
std::size_t allowed_shared(ptx::Function const& kernel) {
  auto const allowed = cuda_emulation::Device::instance().allowed_shared(cuda_emulation::current_device,
                                                                         reinterpret_cast<std::uintptr_t>(&kernel));
  auto const most = cuda_emulation::default_shared_bytes;
  return allowed.value_or(most - std::min(most, kernel.static_shared_bytes()));
}

/// Returns the PTX in a fat binary.
std::string ptx_in(std::byte const* fat) {
  auto const read = [](std::byte const* from, auto value) { return std::memcpy(&value, from, sizeof value), value; };
  if (read(fat, std::uint32_t{}) != 0xba55ed50u) ptx::fail("a fat binary was expected");
  auto const* at = fat + read(fat + 6, std::uint16_t{});
  auto const* const end = at + read(fat + 8, std::uint64_t{});
  while (at < end) {
    auto const kind = read(at, std::uint16_t{});
    auto const header = read(at + 4, std::uint32_t{});
    auto const bytes = read(at + 8, std::uint64_t{});
    auto const compressed = read(at + 16, std::uint32_t{});
    auto const whole = read(at + 56, std::uint64_t{});
    if (kind == 1) {
      auto const* const text = at + header;
      if (read(text, std::uint32_t{}) != 0xfd2fb528u) {
        if (compressed != 0) ptx::fail("PTX is compressed in another way than zstd's");
        return {reinterpret_cast<char const*>(text), bytes};
      }
      std::string out(whole, '\0');
      auto const size = ZSTD_decompress(out.data(), out.size(), text, compressed);
      if (ZSTD_isError(size)) ptx::fail("PTX cannot be decompressed");
      out.resize(size);
      return out;
    }
    at += header + bytes;
  }
  ptx::fail("there is no PTX in a fat binary");
}

/// Returns null for cudaStreamLegacy, the default stream's handle, which Thrust uses.
cudaStream_t null_if_legacy(cudaStream_t stream) {
  return reinterpret_cast<std::uintptr_t>(stream) == 1 ? nullptr : stream;
}

cudaError_t launch(ptx::Function const& kernel, ptx::Extent grid, ptx::Extent block, void** arguments,
                   std::size_t shared_bytes, cudaStream_t stream) {
  bool const valid = grid.x > 0 && grid.x < 1u << 31 && grid.y > 0 && grid.y < 1u << 16 && grid.z > 0 &&
                     grid.z < 1u << 16 && block.x > 0 && block.y > 0 && block.z > 0 && block.z <= 64 &&
                     std::uint64_t{block.x} * block.y * block.z <= cuda_emulation::max_threads;
  if (!valid) return cuda_emulation::refuse(cudaErrorInvalidConfiguration);
  if (shared_bytes > allowed_shared(kernel)) return cuda_emulation::refuse(cudaErrorInvalidValue);
  std::vector<std::byte> parameters(kernel.parameter_bytes);
  for (auto const& parameter : kernel.parameters) std::memcpy(&parameters[parameter.at], *arguments++, parameter.bytes);
  return cuda_emulation::queue(null_if_legacy(stream), [=, &kernel] {
    ptx::Machine::instance().run(kernel, grid, block, parameters, shared_bytes);
  });
}
ptx::Function const& kernel_of(void const* host) {
  auto const found = kernels().find(host);
  if (found == kernels().end()) ptx::fail("a kernel is launched that was not registered");
  return *found->second;
}

struct AtEnd {
  AtEnd() {
    cuda_emulation::driver = 13000;
    static_cast<void>(ptx::Findings::instance());  // so that they outlive the work at exit
    std::atexit([] {
      ptx::Counts::instance().write();
      if (!ptx::Findings::instance().any()) return;
      std::fflush(nullptr);
      std::_Exit(66);
    });
  }
} const at_end;

}  // namespace

// NOLINTBEGIN: the names and types are CUDA's
#define SAME(type, name, parameters, ...) \
  PTX_EXPORTED(type, name, parameters) { return name(__VA_ARGS__); }

SAME(cudaError_t, cudaGetLastError, (), )
SAME(cudaError_t, cudaPeekAtLastError, (), )
SAME(char const*, cudaGetErrorString, (cudaError_t error), error)
SAME(char const*, cudaGetErrorName, (cudaError_t error), error)
SAME(cudaError_t, cudaDeviceGetPCIBusId, (char* to, int bytes, int device), to, bytes, device)
SAME(cudaError_t, cudaDriverGetVersion, (int* version), version)
SAME(cudaError_t, cudaGetDeviceCount, (int* devices), devices)
SAME(cudaError_t, cudaGetDevice, (int* device), device)
SAME(cudaError_t, cudaSetDevice, (int device), device)
SAME(cudaError_t, cudaDeviceCanAccessPeer, (int* can, int device, int peer), can, device, peer)
SAME(cudaError_t, cudaDeviceEnablePeerAccess, (int peer, unsigned flags), peer, flags)
SAME(cudaError_t, cudaDeviceSynchronize, (), )
SAME(cudaError_t, cudaMalloc, (void** to, std::size_t bytes), to, bytes)
SAME(cudaError_t, cudaMallocHost, (void** to, std::size_t bytes), to, bytes)
SAME(cudaError_t, cudaMemGetInfo, (std::size_t * free, std::size_t* total), free, total)
SAME(cudaError_t, cudaMemset, (void* to, int value, std::size_t bytes), to, value, bytes)
SAME(cudaError_t, cudaMemsetAsync, (void* to, int value, std::size_t bytes, cudaStream_t stream), to, value, bytes,
     null_if_legacy(stream))
SAME(cudaError_t, cudaStreamSynchronize, (cudaStream_t stream), null_if_legacy(stream))
SAME(cudaError_t, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), stream, flags)
SAME(cudaError_t, cudaDeviceGetStreamPriorityRange, (int* least, int* greatest), least, greatest)
SAME(cudaError_t, cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority), stream, flags,
     priority)
SAME(cudaError_t, cudaStreamGetPriority, (cudaStream_t stream, int* priority), stream, priority)
SAME(cudaError_t, cudaHostRegister, (void* data, std::size_t bytes, unsigned flags), data, bytes, flags)
SAME(cudaError_t, cudaHostUnregister, (void* data), data)
SAME(cudaError_t, cudaStreamDestroy, (cudaStream_t stream), stream)
SAME(cudaError_t, cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), event, flags)
SAME(cudaError_t, cudaEventDestroy, (cudaEvent_t event), event)
SAME(cudaError_t, cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), event, stream)
SAME(cudaError_t, cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags), event, stream,
     flags)
SAME(cudaError_t, cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus* status), stream, status)
SAME(cudaError_t, cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags), stream, event, flags)
SAME(cudaError_t, cudaEventSynchronize, (cudaEvent_t event), event)
SAME(cudaError_t, cudaEventElapsedTime, (float* to, cudaEvent_t begin, cudaEvent_t end), to, begin, end)
SAME(cudaError_t, cudaEventQuery, (cudaEvent_t event), event)
SAME(cudaError_t, cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode), stream, mode)
SAME(cudaError_t, cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t* graph), stream, graph)
SAME(cudaError_t, cudaGraphInstantiate, (cudaGraphExec_t * to, cudaGraph_t graph, unsigned long long flags), to, graph,
     flags)
SAME(cudaError_t, cudaGraphDestroy, (cudaGraph_t graph), graph)
SAME(cudaError_t, cudaGraphExecDestroy, (cudaGraphExec_t executable), executable)
SAME(cudaError_t, cudaGraphUpload, (cudaGraphExec_t executable, cudaStream_t stream), executable, stream)
SAME(cudaError_t, cudaGraphLaunch, (cudaGraphExec_t executable, cudaStream_t stream), executable, stream)

PTX_EXPORTED(cudaError_t, cudaRuntimeGetVersion, (int* version)) { return *version = 13000, cudaSuccess; }
PTX_EXPORTED(cudaError_t, cudaDeviceGetAttribute, (int* value, int which, int)) {
  switch (which) {
    case 13:  // clocks of processors and memory, and the memory's width: unknown
    case 36:
    case 37:
      return *value = 0, cudaSuccess;
    case 16:  // multiprocessors
      return *value = 2, cudaSuccess;
    case 75:
      return *value = static_cast<int>(capability() / 10), cudaSuccess;
    case 76:
      return *value = static_cast<int>(capability() % 10), cudaSuccess;
    case 8:  // shared memory of a block
      return *value = 48 << 10, cudaSuccess;
    case 97:  // with the kernel's opt-in
      return *value = static_cast<int>(most_shared_bytes()), cudaSuccess;
    case 81:  // shared memory of a multiprocessor, including 1 KB per block
      return *value = static_cast<int>(most_shared_bytes() + 1024), cudaSuccess;
    case 5:  // largest grid
      return *value = 0x7fffffff, cudaSuccess;
    default:
      ptx::fail("the device's attribute " + std::to_string(which) + " is not known");
  }
}
/// Writes only the first member, the name. The caller sets the others to zero. The second function is CUDA 12's.
PTX_EXPORTED(cudaError_t, cudaGetDeviceProperties, (char* name, int)) {
  return std::strcpy(name, "Interpreted GPU"), cudaSuccess;
}
PTX_EXPORTED(cudaError_t, cudaGetDeviceProperties_v2, (char* name, int device)) {
  return ptx_cudaGetDeviceProperties(name, device);
}
PTX_EXPORTED(cudaError_t, cudaFree, (void* memory)) {
  auto const status = cudaFree(memory);
  return ptx::Regions::instance().forget(memory), status;
}
PTX_EXPORTED(cudaError_t, cudaFreeHost, (void* memory)) {
  auto const status = cudaFreeHost(memory);
  return ptx::Regions::instance().forget(memory), status;
}
struct PointerAttributes {
  int type, device;
  void *on_device, *on_host;
};
PTX_EXPORTED(cudaError_t, cudaPointerGetAttributes, (PointerAttributes * to, void const* memory)) {
  cudaPointerAttributes attributes{};
  auto const status = cudaPointerGetAttributes(&attributes, memory);
  to->type = attributes.type;
  return status;
}
PTX_EXPORTED(cudaError_t, cudaMemcpy, (void* to, void const* from, std::size_t bytes, int kind)) {
  return cudaMemcpy(to, from, bytes, static_cast<cudaMemcpyKind>(kind - 1));
}
PTX_EXPORTED(cudaError_t, cudaMemcpyAsync,
             (void* to, void const* from, std::size_t bytes, int kind, cudaStream_t stream)) {
  return cudaMemcpyAsync(to, from, bytes, static_cast<cudaMemcpyKind>(kind - 1), null_if_legacy(stream));
}
struct FunctionAttributes {
  std::size_t shared_bytes, constant_bytes, local_bytes;
  int max_threads, registers, ptx_version, binary_version, cached, max_dynamic_shared_bytes;
};
PTX_EXPORTED(cudaError_t, cudaFuncGetAttributes, (FunctionAttributes * to, void const* kernel)) {
  auto const& function = kernel_of(kernel);
  auto const target = static_cast<int>(capability());
  *to = {function.static_shared_bytes(), 0, 0, 1024, 32, target, target, 0, static_cast<int>(allowed_shared(function))};
  return cudaSuccess;
}
/// Allows a kernel more dynamic shared memory, in addition to its static shared memory.
PTX_EXPORTED(cudaError_t, cudaFuncSetAttribute, (void const* kernel, int which, int value)) {
  auto const& function = kernel_of(kernel);
  if (which == 9) return cudaSuccess;  // the preferred division between shared memory and cache
  if (which != 8) ptx::fail("the kernel's attribute " + std::to_string(which) + " is not known");
  auto const used = function.static_shared_bytes();
  if (value < 0 || static_cast<std::size_t>(value) + used > most_shared_bytes())
    return cuda_emulation::refuse(cudaErrorInvalidValue);
  cuda_emulation::Device::instance().allow_shared(
      cuda_emulation::current_device, reinterpret_cast<std::uintptr_t>(&function), static_cast<std::size_t>(value));
  return cudaSuccess;
}
PTX_EXPORTED(cudaError_t, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
             (int* blocks, void const*, int, std::size_t, unsigned)) {
  return *blocks = 2, cudaSuccess;
}

PTX_EXPORTED(cudaError_t, cudaLaunchKernelExC, (Launch const* config, void const* kernel, void** arguments)) {
  if (config->attribute_count > 0) ptx::fail("attributes of a launch, such as clusters, are not known");
  return launch(kernel_of(kernel), config->grid, config->block, arguments, config->shared_bytes, config->stream);
}
PTX_EXPORTED(cudaError_t, __cudaGetKernel, (void** kernel, void const* host)) {
  return *kernel = const_cast<ptx::Function*>(&kernel_of(host)), cudaSuccess;
}
PTX_EXPORTED(cudaError_t, __cudaLaunchKernel,
             (void* kernel, ptx::Extent grid, ptx::Extent block, void** arguments, std::size_t shared_bytes,
              cudaStream_t stream)) {
  return launch(*static_cast<ptx::Function const*>(kernel), grid, block, arguments, shared_bytes, stream);
}
namespace {
thread_local Launch pushed;
}
PTX_EXPORTED(unsigned, __cudaPushCallConfiguration,
             (ptx::Extent grid, ptx::Extent block, std::size_t shared_bytes, cudaStream_t stream)) {
  return pushed = {grid, block, shared_bytes, stream, nullptr, 0}, 0;
}
PTX_EXPORTED(cudaError_t, __cudaPopCallConfiguration,
             (ptx::Extent * grid, ptx::Extent* block, std::size_t* shared_bytes, cudaStream_t* stream)) {
  *grid = pushed.grid, *block = pushed.block, *shared_bytes = pushed.shared_bytes, *stream = pushed.stream;
  return cudaSuccess;
}
PTX_EXPORTED(void**, __cudaRegisterFatBinary, (void* wrapper)) {
  std::byte const* fat = nullptr;
  std::memcpy(&fat, static_cast<std::byte const*>(wrapper) + 8, sizeof fat);
  auto& module = *modules().emplace_back(new ptx::Module);
  auto const text = ptx_in(fat);
  ptx::Parser(text, module).parse();
  ptx::Machine::instance().add(module);
  if (auto const* const folder = std::getenv("PTX_FOLDER"))
    if (auto* const file =
            std::fopen((std::string(folder) + "/" + std::to_string(modules().size()) + ".ptx").c_str(), "w")) {
      std::fwrite(text.data(), 1, text.size(), file);
      std::fclose(file);
    }
  return reinterpret_cast<void**>(&module);
}
PTX_EXPORTED(void, __cudaRegisterFatBinaryEnd, (void**)) {}
PTX_EXPORTED(void, __cudaUnregisterFatBinary, (void**)) {}
PTX_EXPORTED(char, __cudaInitModule, (void**)) { return 1; }
PTX_EXPORTED(void, __cudaRegisterFunction,
             (void** handle, char const* host, char*, char const* name, int, void*, void*, void*, void*, int*)) {
  auto const& functions = reinterpret_cast<ptx::Module*>(handle)->functions;
  auto const found = functions.find(name);
  if (found == functions.end()) ptx::fail(std::string("there is no kernel ") + name);
  kernels()[host] = found->second.get();
}
PTX_EXPORTED(void, __cudaRegisterVar, (void**, char*, char*, char const*, int, std::size_t, int, int)) {}
// NOLINTEND
