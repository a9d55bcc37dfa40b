// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <system_error>

#include <lockstep/core/file_remedy.hpp>
#include <lockstep/core/folder.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

namespace detail {

/// Calls f(metric) for each value of an evaluation that is saved. At most `most` values of one metric are, and
/// `best_by` in any case.
template <class Function>
void each_saved_metric(EvaluationReport const& report, Index most, std::string_view best_by, Function const& f) {
  auto const& all = report.metrics;
  auto const metric_of = [](std::string_view name) { return name.substr(0, name.find('.')); };
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && metric_of(all[end].first) == metric_of(all[begin].first)) ++end;
    bool const keeps = static_cast<Index>(end - begin) <= most;
    for (auto i = begin; i < end; ++i)
      if (keeps || all[i].first == best_by) f(all[i]);
  }
}

LOCKSTEP_COLD_INLINE void expect_tensors(std::string const& path, SafetensorsFile const& file,
                                         nn::ParameterLayout const& layout, std::size_t moments) {
  nn::ParameterLayout::Entry const* without = nullptr;
  bool any = false;
  auto const held = file.header.value.object().size() - 1;  // without the metadata
  auto tensors = layout.entries().size() + layout.buffers().size();
  for (auto const& entry : layout.entries()) {
    bool const has = file.header.find("optimizer.0." + entry.name) != nullptr;
    if (has || !entry.frozen) tensors += moments;
    if (entry.frozen) continue;
    any = any || has;
    if (!has && !without && file.header.find(entry.name)) without = &entry;
  }
  if (held > tensors)
    throw DataError(path + ": holds " + std::to_string(held) + " tensors, and the model with its optimizer has " +
                    std::to_string(tensors) + "; use the model and the optimizer that it was saved with");
  if (any && without)
    throw DataError(path + ": has no moments of \"" + without->name +
                    "\", which was frozen in the run that saved it; freeze it here, too, or start a new run from these "
                    "parameters");
}

}  // namespace detail

LOCKSTEP_COLD_INLINE std::string Progress::to_json(std::string_view best_by) const {
  json::Writer out;
  out.begin_object().member("version", version).member("steps", steps);
  out.member("effective_batch_size", effective_batch_size).member("reproducible", reproducible);
  out.member("seed", std::to_string(seed));
  if (loss_scale) {
    out.member("loss_scale", static_cast<double>(loss_scale.scale)).member("good_steps", loss_scale.good_steps);
    out.member("skipped_steps", loss_scale.skipped);
  }
  if (!gemm_algorithms.empty()) out.member("timed_products", gemm_algorithms);
  if (before.steps > 0 || before.epochs > 0)
    out.member("steps_before", before.steps).member("epochs_before", before.epochs);
  if (!optimizer.empty()) out.member("optimizer", optimizer);
  if (!loss_parts.empty()) out.member("loss_parts", loss_parts);
  out.member("loss_sum", epoch_loss.sum).member("loss_weight", epoch_loss.weight).member("seconds", seconds);
  out.member("resumed_at", resumed_at).key("evaluations").begin_array();
  std::size_t best = evaluations.size();
  for (std::size_t i = 0; i < evaluations.size(); ++i)
    if (evaluations[i].best) best = i;
  for (std::size_t i = 0; i < evaluations.size(); ++i) {
    auto const& each = evaluations[i];
    out.begin_object().member("step", each.step).member("epoch", each.epoch).member("samples", each.samples);
    out.member("seconds", each.seconds).member("best", each.best).key("loss").value_or_null(each.loss);
    out.key("metrics").begin_object();
    detail::each_saved_metric(each, i == best || i + 1 == evaluations.size() ? max_values : max_earlier_values, best_by,
                              [&](auto const& metric) { out.key(metric.first).value_or_null(metric.second); });
    out.end_object().end_object();
  }
  out.end_array().member("data", data.to_json()).end_object();
  return std::move(out).text();
}

LOCKSTEP_COLD_INLINE Progress Progress::from_json(std::string_view text, std::string const& where) {
  detail::SavedStateReader const in({"the state of training", "run", "resume from another checkpoint", version}, text,
                                    where);
  Progress out;
  out.steps = in.integer("steps", 0, max_total_steps);
  out.effective_batch_size = in.integer("effective_batch_size", 1, max_total_steps);
  if (in.has("reproducible")) out.reproducible = in.integer<int>("reproducible", 0, max_total_steps);
  if (in.has("loss_scale")) out.loss_scale = in.loss_scale(out.steps, detail::SavedStateReader::ZeroScale::refused);
  out.gemm_algorithms = in.string_or_empty("timed_products");
  if (in.has("steps_before")) {
    out.before.steps = in.integer("steps_before", 0, max_total_steps);
    out.before.epochs = in.integer("epochs_before", 0, max_total_steps);
  }
  out.optimizer = in.string_or_empty("optimizer");
  if (in.has("loss_parts"))
    for (auto const& name : in.value().at("loss_parts").array()) out.loss_parts.push_back(name.string());
  out.seed = in.seed();
  out.epoch_loss = {in.value().at("loss_sum").number(), in.non_negative("loss_weight")};
  out.seconds = in.non_negative("seconds");
  Index earlier = 0;
  for (auto const& step : in.value().at("resumed_at").array()) {
    earlier = in.within("resumed_at", step.integer(), earlier, out.steps);
    out.resumed_at.push_back(earlier);
  }
  earlier = 0;
  for (auto const& each : in.value().at("evaluations").array()) {
    out.evaluations.push_back(read_evaluation(each));
    auto const& report = out.evaluations.back();
    earlier = in.within("an evaluation's step", report.step, earlier, out.steps);
    in.within("an evaluation's epoch", report.epoch, 0, out.steps);
    in.within("an evaluation's samples", report.samples, 0, max_total_steps);
  }
  out.data = data::LoaderState::from_json(in.value().at("data").string(), where + ": the loader's state");
  return out;
}

LOCKSTEP_COLD_INLINE EvaluationReport Progress::read_evaluation(json::Value const& value) {
  auto const number_or_nan = [](json::Value const& v) {
    return v.is<double>() || v.is<std::int64_t>() ? v.number() : std::nan("");
  };
  EvaluationReport report{value.at("step").integer(),
                          value.at("epoch").integer(),
                          value.at("samples").integer(),
                          number_or_nan(value.at("loss")),
                          {},
                          value.at("seconds").number(),
                          value.at("best").boolean()};
  for (auto const& [name, metric] : value.at("metrics").object())
    report.metrics.emplace_back(name.c_str(), number_or_nan(metric));
  return report;
}

LOCKSTEP_COLD_INLINE void save_checkpoint(std::string const& path, nn::ParameterLayout const& layout,
                                          std::span<float const> values, std::span<float const> buffers,
                                          detail::Moments<float const> const& moments, Progress const& progress,
                                          Metadata metadata, detail::SavedNumbers numbers, std::string_view best_by) {
  detail::check_arenas("save_checkpoint", layout, values.size(), buffers.size());
  detail::check_metadata(path, metadata);
  metadata.emplace_back(Progress::key, progress.to_json(best_by));
  detail::write_safetensors(path, layout, values.data(), buffers.data(), moments, metadata, numbers);
}

LOCKSTEP_COLD_INLINE Progress load_checkpoint(std::string const& path, nn::ParameterLayout const& layout,
                                              parallel::SessionState& state) {
  return detail::load_state_of(path, layout, Progress::key, "resume from a checkpoint of a run", state,
                               [&](std::string const& text) { return Progress::from_json(text, path); });
}

LOCKSTEP_COLD_INLINE std::vector<Index> checkpoint_steps(std::string const& folder) {
  constexpr std::string_view prefix = "step_", suffix = ".safetensors";
  std::vector<Index> all;
  auto* const open = ::opendir(folder.c_str());
  if (!open && errno != ENOENT)
    throw DataError(folder + ": cannot look for checkpoints there: " + std::strerror(errno));
  while (auto const* entry = open ? ::readdir(open) : nullptr) {
    std::string_view const name = entry->d_name;
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
    auto const digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
    Index steps = -1;
    auto const read = std::from_chars(digits.data(), digits.data() + digits.size(), steps);
    if (read.ec == std::errc{} && steps >= 0 && digits == std::to_string(steps)) all.push_back(steps);
  }
  if (open) ::closedir(open);
  for (std::size_t i = 1; i < all.size(); ++i)  // few elements: std::sort would increase compile time
    for (auto at = i; at > 0 && all[at - 1] > all[at]; --at) std::swap(all[at - 1], all[at]);
  return all;
}

LOCKSTEP_COLD_INLINE std::string newest_checkpoint(std::string const& folder) {
  auto const all = checkpoint_steps(folder);
  return all.empty() ? "" : folder + "/" + detail::step_name(all.back()) + ".safetensors";
}

LOCKSTEP_COLD_INLINE void remove_old_checkpoints(std::string const& folder, Index step, Index keep) {
  std::vector<Index> all;
  try {
    all = checkpoint_steps(folder);
  } catch (DataError const&) {
    return;
  }
  while (!all.empty() && all.back() > step) all.pop_back();
  for (Index i = 0; i + keep < std::ssize(all); ++i)
    ::unlink((folder + "/" + detail::step_name(all[static_cast<std::size_t>(i)]) + ".safetensors").c_str());
}

}}}  // namespace lockstep::train

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::string absolute_path(std::string const& path) {
  char here[PATH_MAX];
  bool const unchanged = path.empty() || path.front() == '/' || !::getcwd(here, sizeof here);
  return unchanged ? path : here + ("/" + path);
}

LOCKSTEP_COLD_INLINE bool is_in_folder(std::string const& path, std::string const& folder) {
  auto const slash = path.rfind('/');
  struct ::stat parent {};
  struct ::stat target {};
  return ::stat(slash == std::string::npos ? "." : path.substr(0, slash + 1).c_str(), &parent) == 0 &&
         ::stat(folder.c_str(), &target) == 0 && parent.st_dev == target.st_dev && parent.st_ino == target.st_ino;
}

LOCKSTEP_COLD_INLINE void remove_partial_checkpoints(std::string const& folder) {
  auto* const open = ::opendir(folder.c_str());
  if (!open) return;
  while (auto const* entry = ::readdir(open)) {
    std::string_view const name = entry->d_name;
    if (name.starts_with("step_") && name.ends_with(".partial")) ::unlinkat(::dirfd(open), entry->d_name, 0);
  }
  ::closedir(open);
}

LOCKSTEP_COLD_INLINE void create_folder(std::string const& folder) {
  auto const made = [&] { return ::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST; };
  bool exists = made();
  if (auto const slash = folder.find_last_of('/');
      !exists && errno == ENOENT && slash != std::string::npos && slash > 0) {
    create_folder(folder.substr(0, slash));
    exists = made();
  }
  if (exists && ::access((folder + "/.").c_str(), W_OK | X_OK) == 0) return;
  auto const reason = errno;
  throw DataError(folder + ": " +
                  (exists ? "checkpoints cannot be written there: " : "cannot make the folder for checkpoints: ") +
                  std::strerror(reason) + file_remedy(reason));
}

LOCKSTEP_COLD_INLINE void expect_room(std::string const& folder, std::string const& where, std::size_t bytes) {
  struct ::statvfs space {};
  if (::statvfs(where.c_str(), &space) != 0 || space.f_blocks == 0) return;  // a file system that does not say
  auto const free = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  if (free < static_cast<double>(bytes))
    throw DataError(folder + ": " + memory_size(free) + " are free there, and a checkpoint has " +
                    memory_size(static_cast<double>(bytes)) + "; make room, or name another folder");
}

LOCKSTEP_COLD_INLINE void check_folder(std::string const& folder, std::size_t bytes) {
  auto const nearest = nearest_existing(folder);
  if (::faccessat(AT_FDCWD, (nearest + "/.").c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    throw DataError(folder + ": " +
                    (nearest == folder ? "checkpoints cannot be written there: "
                                       : "cannot make the folder for checkpoints in " + nearest + ": ") +
                    std::strerror(errno) + "; name another folder");
  expect_room(folder, nearest, bytes);
}

LOCKSTEP_COLD_INLINE void try_folder(std::string const& folder, std::size_t bytes) {
  create_folder(folder);
  auto const trial = folder + "/.lockstep-trial-" + random_suffix();
  {
    AtomicFile file(trial);
    file.write(std::string_view("Lockstep looks whether it can save here, and removes this file at once.\n"));
    file.commit();
  }
  ::unlink(trial.c_str());
  expect_room(folder, folder, bytes);
}

}}}  // namespace lockstep::train::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_COLD_INLINE std::string checkpoint_path(std::string const& folder, std::string const& name) {
  detail::create_folder(folder);
  return folder + "/" + name + ".safetensors";
}

}}}  // namespace lockstep::train
