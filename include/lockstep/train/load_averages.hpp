// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/train/safetensors.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {
namespace detail {

/// What a file of a run's or a trainer's state says of its optimizer; "" of any other file.
[[nodiscard]] inline std::string optimizer_of(SafetensorsFile const& file, std::string const& path) {
  for (auto const& [name, text] : file.metadata()) {
    if (name != "lockstep.progress" && name != "lockstep.trainer") continue;
    auto const state = json::parse(text, path);
    auto const* const optimizer = state.find("optimizer");
    return optimizer ? optimizer->string() : std::string("of no name");
  }
  return {};
}

}  // namespace detail

/// Reads from a checkpoint, or what train::save_state left, the averages that an optim::Averaged kept, by which
/// evaluations were made; where `load_parameters` reads the parameters that training goes on from. Buffers, and what is
/// returned, are as there.
/// @shape values [layout.size()]   @shape buffers [layout.buffer_size()]; both only changed when all is well
/// @throws DataError when the file has no averages, or as load_parameters; ShapeError when an arena has another size
/// than the layout
inline Metadata load_averages(std::string const& path, nn::ParameterLayout const& layout, std::span<float> values,
                              std::span<float> buffers = {}) {
  detail::check_arenas("load_averages", layout, values.size(), buffers.size());
  return detail::naming_file(path, [&] {
    detail::SafetensorsFile const file(path);
    auto const optimizer = detail::optimizer_of(file, path);
    if (!optimizer.starts_with("Averaged "))
      throw DataError(path + ": holds no averages of the parameters, " +
                      (optimizer.empty() ? std::string("nor what an optimizer keeps: take the parameters; those of "
                                                       "best.safetensors are the averages, where there were some")
                                         : "for the optimizer that it was saved with, " + optimizer +
                                               ", keeps none: take the parameters, or train with an optim::Averaged"));
    auto const name_of = [](std::size_t state, std::string const& name) {
      return "optimizer." + std::to_string(state) + "." + name;
    };
    std::size_t states = 0;
    auto const& entries = layout.entries();
    while (!entries.empty() && file.header.find(name_of(states, entries[0].name))) ++states;
    std::vector<float> ahead(values.size());
    for (auto const& entry : entries)
      file.read_tensor(
          path, name_of(std::max<std::size_t>(states, 1) - 1, entry.name), entry,
          std::span(ahead).subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.size)));
    file.read(path, layout, values.data(), buffers.data(), {});
    for (std::size_t i = 0; i < ahead.size(); ++i) values[i] -= ahead[i];
    return file.texts();
  });
}

}}}  // namespace lockstep::train
