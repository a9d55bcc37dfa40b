// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "structure/source_tree.hpp"

using namespace lockstep_test;

namespace {

/// The system headers of a header-only library that needs only Linux and a C++ compiler.
bool is_system_header(std::string_view name) {
  static constexpr std::array<std::string_view, 26> linux_headers{
      "arm_neon.h",  "arpa/inet.h", "cxxabi.h", "dirent.h",  "dlfcn.h",   "errno.h", "fcntl.h",
      "immintrin.h", "limits.h",    "netdb.h",  "poll.h",    "pthread.h", "sched.h", "signal.h",
      "spawn.h",     "stdio.h",     "stdlib.h", "string.h",  "termios.h", "time.h",  "unistd.h",
      "xmmintrin.h", "emmintrin.h", "glob.h",   "fnmatch.h", "iconv.h"};
  if (name.find_first_of("./") == std::string_view::npos) return true;  // <vector>, <cstdint>
  if (name.starts_with("sys/") || name.starts_with("linux/") || name.starts_with("netinet/")) return true;
  return std::find(linux_headers.begin(), linux_headers.end(), name) != linux_headers.end();
}

/// Whether a file of the library is CUDA code.
bool is_cuda_file(std::string_view name) { return name.ends_with(".cuh") || name.ends_with(".icuh"); }

bool is_cuda_header(std::string_view name) {
  return name.starts_with("cub/") || name.starts_with("thrust/") || name.starts_with("cuda") ||
         name.starts_with("cublas") || name.starts_with("cooperative_groups");
}

/// Headers of a library that one kernel uses through its own target.
bool is_onednn_header(std::string_view name) { return name.starts_with("oneapi/dnnl/"); }
bool is_cudnn_header(std::string_view name) { return name == "cudnn.h"; }
bool is_zstd_header(std::string_view name) { return name == "zstd.h"; }
bool is_hdf5_header(std::string_view name) { return name == "hdf5.h"; }
bool is_utf8proc_header(std::string_view name) { return name == "utf8proc.h"; }
bool is_mpi_header(std::string_view name) { return name == "mpi.h"; }
bool is_protozero_header(std::string_view name) { return name.starts_with("protozero/"); }
bool is_nccl_header(std::string_view name) { return name == "nccl.h"; }

/// Returns why `header` (relative to include/lockstep) may not include `included` (with its brackets); empty if it may.
std::string violation(std::string_view header, std::string_view included) {
  if (included.front() != '<') return "an include is written in angle brackets, from the root of include/";
  std::string_view name = included.substr(1, included.size() - 2);
  auto const from = folder_of(header);
  if (!name.starts_with("lockstep/")) {
    bool const leaf = from == "app" || from == "interop";
    bool const cuda = is_cuda_file(header) && is_cuda_header(name);
    bool const onednn = header.ends_with("_onednn.hpp") && is_onednn_header(name);
    bool const cudnn = header.ends_with("_cudnn.cuh") && is_cudnn_header(name);
    bool const zstd = header.ends_with("_zstd.hpp") && is_zstd_header(name);
    bool const hdf5 = header.ends_with("_hdf5.hpp") && is_hdf5_header(name);
    bool const utf8proc = header.ends_with("_utf8proc.hpp") && is_utf8proc_header(name);
    bool const protozero = header.ends_with("_protozero.hpp") && is_protozero_header(name);
    bool const mpi = header.ends_with("_mpi.hpp") && is_mpi_header(name);
    bool const nccl = header.ends_with("_nccl.cuh") && is_nccl_header(name);
    return leaf || cuda || onednn || cudnn || zstd || hdf5 || utf8proc || protozero || mpi || nccl ||
                   is_system_header(name)
               ? ""
               : "third-party headers belong to app/, interop/ and leaf headers";
  }
  name.remove_prefix(std::string_view("lockstep/").size());
  auto const to = folder_of(name);
  if (from.empty()) return is_detail(name) ? "a detail/ belongs to its own folder" : "";  // the umbrella headers
  if (to.empty()) return "nothing inside the library includes an umbrella";
  if (height(from) < 0 || height(to) < 0) return "this folder has no floor";
  if (from != to && height(to) >= height(from)) return "a folder includes only itself and folders to its left";
  if (is_detail(name) && (from != to || (!room_of(name).empty() && room_of(name) != room_of(header))))
    return "a detail/ belongs to its own folder";
  if ((name.ends_with(".ipp") || name.ends_with(".icuh")) &&
      name.substr(0, name.rfind('.')) != header.substr(0, header.rfind('.')))
    return "an implementation file is included by its header";
  if (is_cuda_file(name) && !is_cuda_file(header)) return "a .hpp compiles without nvcc";
  return "";
}

/// Returns a cycle of `edges`, such as "a > b > a"; empty if there is none.
std::string cycle_in(std::map<std::string, std::set<std::string>> const& edges) {
  std::set<std::string> left;
  std::vector<std::string> path;
  std::function<std::string(std::string const&)> const visit = [&](std::string const& room) -> std::string {
    if (auto const first = std::find(path.begin(), path.end(), room); first != path.end()) {
      std::string cycle;
      for (auto at = first; at != path.end(); ++at) cycle += *at + " > ";
      return cycle + room;
    }
    path.push_back(room);
    if (auto const next = edges.find(room); next != edges.end() && !left.contains(room))
      for (auto const& to : next->second)
        if (auto cycle = visit(to); !cycle.empty()) return cycle;
    left.insert(room);
    path.pop_back();
    return "";
  };
  for (auto const& edge : edges)
    if (auto cycle = visit(edge.first); !cycle.empty()) return cycle;
  return "";
}

}  // namespace

TEST_CASE("the floor rules refuse upward includes") {
  CHECK(violation("data/a.hpp", "<lockstep/core/b.hpp>").empty());
  CHECK(violation("data/a.hpp", "<vector>").empty());
  CHECK(violation("data/a.hpp", "<sys/mman.h>").empty());
  CHECK(violation("data/a.hpp", "<lockstep/data/detail/b.hpp>").empty());
  CHECK(violation("kernel/gemm/a.hpp", "<lockstep/kernel/gemm/detail/b.hpp>").empty());
  CHECK(violation("kernel/gemm/a.hpp", "<lockstep/kernel/detail/b.hpp>").empty());
  CHECK_FALSE(violation("kernel/linear/a.hpp", "<lockstep/kernel/gemm/detail/b.hpp>").empty());
  CHECK_FALSE(violation("kernel/detail/a.hpp", "<lockstep/kernel/gemm/detail/b.hpp>").empty());
  CHECK(violation("app/a.hpp", "<CLI/CLI.hpp>").empty());
  CHECK(violation("memory/a.cuh", "<cuda_runtime.h>").empty());
  CHECK(violation("kernel/detail/a_onednn.hpp", "<oneapi/dnnl/dnnl.hpp>").empty());
  CHECK(violation("kernel/detail/a_cudnn.cuh", "<cudnn.h>").empty());
  CHECK(violation("data/source/detail/a_zstd.hpp", "<zstd.h>").empty());
  CHECK(violation("data/source/detail/a_hdf5.hpp", "<hdf5.h>").empty());
  CHECK_FALSE(violation("data/source/a.hpp", "<hdf5.h>").empty());
  CHECK(violation("data/text/detail/a_utf8proc.hpp", "<utf8proc.h>").empty());
  CHECK_FALSE(violation("data/text/a.hpp", "<utf8proc.h>").empty());
  CHECK(violation("train/detail/a_protozero.hpp", "<protozero/pbf_writer.hpp>").empty());
  CHECK_FALSE(violation("train/a.hpp", "<protozero/pbf_writer.hpp>").empty());
  CHECK(violation("comm/detail/a_mpi.hpp", "<mpi.h>").empty());
  CHECK_FALSE(violation("comm/a.hpp", "<mpi.h>").empty());
  CHECK(violation("comm/detail/a_nccl.cuh", "<nccl.h>").empty());
  CHECK_FALSE(violation("comm/a.cuh", "<nccl.h>").empty());
  CHECK_FALSE(violation("data/source/a.hpp", "<zstd.h>").empty());
  CHECK_FALSE(violation("kernel/a.hpp", "<oneapi/dnnl/dnnl.hpp>").empty());
  CHECK_FALSE(violation("data/a.hpp", "<lockstep/kernel/b.hpp>").empty());
  CHECK_FALSE(violation("core/a.hpp", "<lockstep/memory/b.hpp>").empty());
  CHECK_FALSE(violation("nn/a.hpp", "<lockstep/data/detail/b.hpp>").empty());
  CHECK_FALSE(violation("nn/a.hpp", "<lockstep/lockstep.hpp>").empty());
  CHECK_FALSE(violation("nn/a.hpp", "<lockstep/elsewhere/b.hpp>").empty());
  CHECK_FALSE(violation("elsewhere/a.hpp", "<lockstep/core/b.hpp>").empty());
  CHECK_FALSE(violation("nn/a.hpp", "\"b.hpp\"").empty());
  CHECK_FALSE(violation("train/a.hpp", "<CLI/CLI.hpp>").empty());
  CHECK_FALSE(violation("memory/a.hpp", "<cuda_runtime.h>").empty());
  CHECK_FALSE(violation("kernel/a.cuh", "<cudnn.h>").empty());
  CHECK_FALSE(violation("memory/a.hpp", "<lockstep/memory/b.cuh>").empty());
  CHECK(violation("memory/a.hpp", "<lockstep/memory/a.ipp>").empty());
  CHECK_FALSE(violation("memory/b.hpp", "<lockstep/memory/a.ipp>").empty());
  CHECK(violation("memory/a.cuh", "<lockstep/memory/a.icuh>").empty());
  CHECK_FALSE(violation("memory/b.cuh", "<lockstep/memory/a.icuh>").empty());
  CHECK_FALSE(violation("memory/a.hpp", "<lockstep/memory/a.icuh>").empty());
}

TEST_CASE("includes are found in every spelling") {
  CHECK(included_by("#include <vector>") == "<vector>");
  CHECK(included_by("  #  include \"a.hpp\"  // why") == "\"a.hpp\"");
  CHECK(included_by("// #include <vector>").empty());
  CHECK(included_by("#define include").empty());
}

TEST_CASE("every header includes only its floor and lower ones") {
  int includes = 0;
  auto const headers = library_files();
  for (auto const& header : headers) {
    for (auto const& line : lines_of(source_root / "include/lockstep" / header)) {
      auto const included = included_by(line);
      if (included.empty()) continue;
      ++includes;
      auto const why = violation(header, included);
      CHECK_MESSAGE(why.empty(), header, " includes ", included, ": ", why);
    }
  }
  MESSAGE(headers.size(), " headers, ", includes, " includes");
  CHECK(headers.size() >= 9);
  CHECK(includes >= 9);
}

TEST_CASE("rooms of a floor do not include each other in a cycle") {
  std::map<std::string, std::set<std::string>> included_rooms;
  for (auto const& header : library_files()) {
    auto const from = std::string(folder_of(header)) + "/" + std::string(room_of(header));
    for (auto const& line : lines_of(source_root / "include/lockstep" / header)) {
      auto const included = included_by(line);
      if (!included.starts_with("<lockstep/")) continue;
      auto const name = included.substr(10, included.size() - 11);
      auto const to = std::string(folder_of(name)) + "/" + std::string(room_of(name));
      if (folder_of(header) == folder_of(name) && from != to) included_rooms[from].insert(to);
    }
  }
  CHECK(cycle_in(included_rooms) == "");
  CHECK(included_rooms.size() >= 9);
  included_rooms["kernel/"].insert("kernel/linear");
  CHECK(cycle_in(included_rooms) != "");
}

TEST_CASE("every header begins with the license and its include guard") {
  for (auto const& header : library_files()) {
    auto const lines = lines_of(source_root / "include/lockstep" / header);
    REQUIRE_MESSAGE(lines.size() >= 2, header);
    CHECK_MESSAGE(lines[0] == "// SPDX-License-Identifier: Apache-2.0", header);
    CHECK_MESSAGE(lines[1] == "#pragma once", header);
  }
}

TEST_CASE("a header includes its implementation file if nothing is linked, and one source compiles it") {
  auto const includes_of = [](std::string const& file) {
    std::vector<std::string> found;
    for (auto const& line : lines_of(source_root / "include/lockstep" / file))
      if (auto included = included_by(line); !included.empty()) found.push_back(included);
    return found;
  };
  std::vector<std::string> compiled, compiled_by_nvcc;
  for (auto const& source : files_below(source_root / "include/lockstep/compiled", {""})) {
    bool const cuda = source.ends_with(".cu");
    CHECK_MESSAGE((cuda || source.ends_with(".cpp")), source);
    for (auto const& included : includes_of("compiled/" + source))
      (cuda ? compiled_by_nvcc : compiled).push_back(included);
  }
  auto const bodies = files_below(source_root / "include/lockstep", {".ipp", ".icuh"});
  for (auto const& body : bodies) {
    bool const cuda = body.ends_with(".icuh");
    auto const name = "<lockstep/" + body + ">", header = body.substr(0, body.rfind('.')) + (cuda ? ".cuh" : ".hpp");
    auto const included = includes_of(body);
    CHECK_MESSAGE(std::find(included.begin(), included.end(), "<lockstep/" + header + ">") != included.end(), body);
    auto const lines = lines_of(source_root / "include/lockstep" / header);
    REQUIRE_MESSAGE(lines.size() > 3, header);
    auto const condition = lines[lines.size() - 3];
    // nvcc also compiles templates that take types of a program, such as an activation of its own.
    bool const open = cuda && condition == "#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)";
    bool const closed = condition == "#if !defined(LOCKSTEP_COMPILED)" ||
                        condition == "#if defined(LOCKSTEP_CUDNN) && !defined(LOCKSTEP_COMPILED)";
    CHECK_MESSAGE((open || closed), header);
    CHECK_MESSAGE(lines[lines.size() - 2] == "#include " + name, header);
    CHECK_MESSAGE(lines[lines.size() - 1] == "#endif", header);
    auto const& sources = cuda ? compiled_by_nvcc : compiled;
    auto const times = std::count(sources.begin(), sources.end(), name);
    CHECK_MESSAGE((times == 1 || (open && times == 0)), body);
  }
  CHECK(bodies.size() > 9);
}
