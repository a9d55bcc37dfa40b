// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/checkpoint/load_averages.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::string optimizer_of(SafetensorsFile const& file, std::string const& path) {
  for (auto const& [name, text] : file.metadata()) {
    if (name != "lockstep.progress" && name != "lockstep.trainer") continue;
    auto const state = json::parse(text, path);
    auto const* const optimizer = state.find("optimizer");
    return optimizer ? optimizer->string() : std::string("of no name");
  }
  return {};
}

}}}  // namespace lockstep::train::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_COLD_INLINE Metadata load_averages(std::string const& path, nn::ParameterLayout const& layout,
                                            std::span<float> values, std::span<float> buffers) {
  detail::check_arenas("load_averages", layout, values.size(), buffers.size());
  return json::with_file_name(path, [&] {
    detail::SafetensorsFile const file(path);
    auto const optimizer = detail::optimizer_of(file, path);
    if (!optimizer.starts_with("Averaged "))
      throw DataError(path + ": holds no averages of the parameters, " +
                      (optimizer.empty() ? std::string("nor an optimizer's state: use the parameters, which in "
                                                       "best.safetensors are the averages if the optimizer kept some")
                                         : "because its optimizer, " + optimizer +
                                               ", keeps none: use the parameters, or train with an optim::Averaged"));
    auto const name_of = [](std::size_t state, std::string const& name) {
      return "optimizer." + std::to_string(state) + "." + name;
    };
    auto const has = [&](std::size_t state, std::string const& name) {
      return file.header.find(name_of(state, name)) != nullptr;
    };
    auto const& entries = layout.entries();
    auto const learned = std::ranges::find_if(entries, [&](auto const& entry) { return has(0, entry.name); });
    std::size_t states = 0;
    while (learned != entries.end() && has(states, learned->name)) ++states;
    std::vector<float> lag(values.size());
    for (auto const& entry : entries)  // parameters that were frozen have no moments: their average is their value
      if (states == 0 || has(0, entry.name))
        file.read_tensor(
            path, name_of(std::max<std::size_t>(states, 1) - 1, entry.name), entry,
            std::span(lag).subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.size)));
    file.read(path, layout, values.data(), buffers.data(), {});
    for (std::size_t i = 0; i < lag.size(); ++i) values[i] -= lag[i];
    return file.texts();
  });
}

}}}  // namespace lockstep::train
