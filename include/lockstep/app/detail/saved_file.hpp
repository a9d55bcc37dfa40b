// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include <lockstep/app/options.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/train/files/names_in_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Name of Options::saved_flags in the metadata of checkpoints.
inline constexpr char saved_flags_key[] = "flags";

/// Returns the program's flags, except --seed, that differ between a saved file and this run: " was saved with …, and
/// this run has …". Empty if no flag is known to differ.
[[nodiscard]] std::string other_flags(std::string const& file, Options const& options);

/// Returns the library's message about a file of parameters, or a checkpoint, for a user of the command line. It begins
/// with the flag that names the file, has flags instead of C++ names, and ends with the program's flags that differ
/// from those of the run that saved the file. Returns an empty string for a message about anything else.
/// @param flag with its value if that is not the file: "--init-from", "--resume auto:"
[[nodiscard]] std::string saved_file_message(std::string_view flag, std::string const& file, Options const& options,
                                             std::string message);

/// Returns the names by which --evaluate reads a file: the model's own if the file has all of them, as those that this
/// program saves, otherwise `names`, which select what a run starts from.
/// @throws DataError if the file cannot be read
[[nodiscard]] train::NamesInFile names_to_evaluate(std::string const& file, nn::ParameterLayout const& layout,
                                                   train::NamesInFile const& names);

/// Returns f(), which reads `file`. Errors about the file have its saved_file_message.
template <class Function>
decltype(auto) with_saved_file(std::string_view flag, std::string const& file, Options const& options,
                               Function const& f) {
  try {
    return f();
  } catch (DataError const& error) {
    if (auto const message = saved_file_message(flag, file, options, error.what()); !message.empty())
      throw DataError(message);
    throw;
  } catch (ConfigError const& error) {
    if (auto const message = saved_file_message(flag, file, options, error.what()); !message.empty())
      throw ConfigError(message);
    throw;
  }
}

}}}  // namespace lockstep::app::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/detail/saved_file.ipp>
#endif
