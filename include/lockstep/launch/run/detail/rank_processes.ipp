// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/rank_processes.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE RankProcesses::~RankProcesses() {
  signal_group(SIGKILL);
  for (auto const& process : processes_) {
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED) < 0 && errno == EINTR) {
    }
    if (process.pidfd >= 0) ::close(process.pidfd);
  }
}

LOCKSTEP_INLINE void RankProcesses::spawn(std::vector<std::string> const& arguments, SupervisedRank const& place,
                                          sigset_t const& mask, RankOutput& output) {
  auto const loader = arguments_of_loader();
  bool const has_them =
      arguments.size() >= loader.size() && std::equal(loader.begin(), loader.end(), arguments.begin());
  auto words = has_them ? std::vector<std::string>() : loader;
  words.insert(words.end(), arguments.begin() + (has_them ? 0 : 1), arguments.end());
  auto const argv = pointers(words);
  auto const variables = environment(place);
  auto const envp = pointers(variables);

  FileDescriptor streams[2];
  if (output.has_line_callback())
    for (int const stream : {1, 2})
      if (place.rank != 0 || stream != 1) streams[stream - 1] = output.open(place.rank, stream);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&files, place.memory, place.memory);  // onto itself: stays open across exec
  for (int const stream : {1, 2})
    if (auto const file = streams[stream - 1].get(); file >= 0)
      ::posix_spawn_file_actions_adddup2(&files, file, stream);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  Process process;
  int error = 0;
  do {
    // If SIGCHLD is ignored, all processes of the group may be gone: this one starts another group.
    if (error == EPERM) group_ = 0;
    ::posix_spawnattr_setpgroup(&attributes, group_);
    error = ::posix_spawn(&process.pid, own_program(), &files, &attributes, argv.data(), envp.data());
  } while (error == EPERM && group_ != 0);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw ConfigError(refused("start rank " + std::to_string(place.rank), error));

  if (group_ == 0) group_ = process.pid;
  process.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  auto const why = errno;
  // If SIGCHLD is ignored, a process that ends at once leaves no trace: watch a descriptor that is readable.
  if (process.pidfd < 0 && why == ESRCH) process.pidfd = ::eventfd(1, EFD_CLOEXEC);
  processes_.push_back(process);  // from here on it is ended with the others
  // Kernels before 5.3 and some sandboxes have no pidfd_open: the supervisor then looks at the process now and then.
  bool const is_missing = why == ENOSYS || why == EPERM || why == EACCES;
  if (process.pidfd < 0 && !is_missing)
    throw ConfigError(refused("watch rank " + std::to_string(place.rank) + " (pidfd_open)", why));
}

LOCKSTEP_INLINE bool RankProcesses::must_be_polled() const noexcept {
  return std::any_of(processes_.begin(), processes_.end(), [](Process const& p) { return !p.ended && p.pidfd < 0; });
}

LOCKSTEP_INLINE long RankProcesses::alive() const noexcept {
  return std::count_if(processes_.begin(), processes_.end(), [](Process const& p) { return !p.ended; });
}

LOCKSTEP_INLINE void RankProcesses::signal_each(int signal) const noexcept {
  for (auto const& process : processes_)
    if (!process.ended) ::kill(process.pid, signal);  // its number is not reused before it is reaped
}

LOCKSTEP_INLINE void RankProcesses::signal_group(int signal) const noexcept {
  if (group_ != 0) ::kill(-group_, signal);
}

LOCKSTEP_INLINE char const* RankProcesses::own_program() noexcept {
  static constexpr char link[] = "/proc/self/exe";
  return ::access(link, X_OK) == 0 ? link : reinterpret_cast<char const*>(::getauxval(AT_EXECFN));
}

LOCKSTEP_INLINE std::vector<std::string> RankProcesses::arguments_of_loader() {
  auto const* const started = reinterpret_cast<char const*>(::getauxval(AT_EXECFN));
  if (::getauxval(AT_BASE) != 0 || !started) return {};  // the system has loaded the loader, as usual
  struct ::stat program {
  }, executed{};
  if (::stat("/proc/self/exe", &executed) != 0) return {};
  bool const found = ::stat(started, &program) == 0;
  if (found && program.st_dev == executed.st_dev && program.st_ino == executed.st_ino) return {};  // linked statically
  auto const all = own_arguments();
  auto const name = std::find(all.begin(), all.end(), started);
  if (name == all.begin() || name == all.end())
    throw ConfigError("launch: this program was started by the loader " + (all.empty() ? "" : all[0]) +
                      ", and its own file is not among the arguments, so that it cannot start ranks; start it without "
                      "the loader, start the ranks by mpirun or torchrun, or use --devices N instead of --nproc N");
  return {all.begin(), name + 1};
}

LOCKSTEP_INLINE std::vector<std::string> own_arguments() {
  std::vector<std::string> out;
  std::FILE* const file = std::fopen("/proc/self/cmdline", "rbe");
  if (!file) return out;
  std::string argument;
  for (int c; (c = std::fgetc(file)) != EOF; c == 0 ? argument.clear() : argument.push_back(static_cast<char>(c)))
    if (c == 0) out.push_back(argument);
  std::fclose(file);
  return out;
}

LOCKSTEP_INLINE std::string RankProcesses::refused(std::string const& what, int error) {
  return "launch: the system refused to " + what + ": " + std::strerror(error);
}

LOCKSTEP_INLINE std::vector<char*> RankProcesses::pointers(std::vector<std::string> const& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (auto const& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

LOCKSTEP_INLINE std::vector<std::string> RankProcesses::environment(SupervisedRank const& place) {
  auto out = place.assignments();
  // clearenv() leaves no list at all
  for (char** variable = environ; variable && *variable; ++variable) out.emplace_back(*variable);
  return out;
}

}}}  // namespace lockstep::launch::detail
