// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/launch/detail/secret.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE std::string read_secret(Lookup variable) {
  std::string secret, source;
  if (auto const* const path = variable("LOCKSTEP_SECRET_FILE")) {
    source = "LOCKSTEP_SECRET_FILE=" + std::string(path);
    auto const refuse = [&](std::string const& why) { throw ConfigError("launch: " + source + " " + why); };
    FileDescriptor const file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct ::stat status {};
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
      refuse(std::string("cannot be read (") + std::strerror(errno) + "); every host needs the file");
    if (!S_ISREG(status.st_mode)) refuse("is not a regular file");
    if (status.st_uid != ::geteuid() && status.st_uid != 0) refuse("belongs to another user; use a file of your own");
    if ((status.st_mode & 077) != 0) refuse("is open to other users; chmod 600 it");
    secret.resize(max_secret_bytes + 1);
    auto const got = ::read(file.get(), secret.data(), secret.size());
    if (got < 0) refuse(std::string("cannot be read (") + std::strerror(errno) + ")");
    secret.resize(static_cast<std::size_t>(got));
  } else if (auto const* const text = variable("LOCKSTEP_SECRET")) {
    source = "LOCKSTEP_SECRET";
    secret = text;
  } else {
    return secret;
  }
  secret.erase(secret.find_last_not_of(" \t\r\n") + 1);
  if (secret.size() < min_secret_bytes || secret.size() > max_secret_bytes)
    throw ConfigError("launch: " + source + " has " +
                      (secret.size() > max_secret_bytes ? "more than " + std::to_string(max_secret_bytes)
                                                        : std::to_string(secret.size())) +
                      " characters; a secret has from " + std::to_string(min_secret_bytes) + " to " +
                      std::to_string(max_secret_bytes) +
                      ", such as those of: od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n'");
  return secret;
}

}}}  // namespace lockstep::launch::detail
