// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/uci_har_dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE UciHarDataset::UciHarDataset(std::string const& folder, std::string const& part) {
  auto const base = folder + "/" + part + "/";
  std::vector<std::string> paths;  // the nine signals, labels, subjects
  for (auto const* name : names) paths.push_back(base + "Inertial Signals/" + name + "_" + part + ".txt");
  paths.push_back(base + "y_" + part + ".txt");
  paths.push_back(base + "subject_" + part + ".txt");
  if (::access(paths.back().c_str(), F_OK) != 0) paths.pop_back();

  std::vector<std::optional<TextLinesDataset>> files(paths.size());
  auto const open = [&](std::size_t i) { files[i].emplace(paths[i], TextLinesOptions{.max_held_bytes = 0}); };
  open(labels_at);  // the file of labels reports a missing folder
  ThreadPool(std::min(processors(), static_cast<int>(paths.size()))).run(std::ssize(paths), [&](Index i) {
    if (auto const file = static_cast<std::size_t>(i); file != labels_at) open(file);
  });
  auto shared = std::make_shared<Shared>(Shared{*files[labels_at], {}, {}, {}, 0, 0});
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (files[i]->size() != files[labels_at]->size())
      throw DataError(paths[i] + ": has " + std::to_string(files[i]->size()) + " rows and " + paths[labels_at] +
                      " has " + std::to_string(files[labels_at]->size()) +
                      "; each file of a part must have one row per window");
    shared->hash = mix(shared->hash, files[i]->fingerprint());
    if (i < labels_at) shared->signals.push_back(*files[i]);
  }
  read_labels(*shared);
  if (files.size() > labels_at + 1) read_subjects(*shared, *files.back());
  shared_ = std::move(shared);
}

LOCKSTEP_INLINE HarSample UciHarDataset::get(Index i) const {
  HarSample sample{std::vector<std::array<float, 9>>(static_cast<std::size_t>(length)), label(i)};
  std::array<float, static_cast<std::size_t>(length)> row{};
  for (std::size_t channel = 0; channel < names.size(); ++channel) {
    read_numbers(shared_->signals[channel], i, row);
    for (std::size_t t = 0; t < row.size(); ++t) sample.signals[t][channel] = row[t];
  }
  return sample;
}

LOCKSTEP_INLINE void UciHarDataset::check() const {
  ThreadPool(processors()).for_ranges(size(), 64, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) static_cast<void>(get(i));
  });
}

LOCKSTEP_INLINE Index UciHarDataset::group(Index i) const noexcept {
  return shared_->subjects.empty() ? i : shared_->subjects[static_cast<std::size_t>(i)];
}

LOCKSTEP_INLINE void UciHarDataset::read_labels(Shared& shared) {
  auto const& lines = shared.label_lines;
  std::array<float, 1> label{};
  for (Index i = 0; i < lines.size(); ++i) {
    read_numbers(lines, i, label);
    if (!(label[0] >= 1 && label[0] <= classes && label[0] == std::floor(label[0])))
      fail(lines, i, "a class from 1 to 6 is expected, found " + detail::excerpt(lines.get(i)));
    shared.labels.push_back(static_cast<std::int8_t>(label[0] - 1));
  }
}

LOCKSTEP_INLINE void UciHarDataset::read_subjects(Shared& shared, TextLinesDataset const& lines) {
  std::array<float, 1> subject{};
  for (Index i = 0; i < lines.size(); ++i) {
    read_numbers(lines, i, subject);
    if (!(subject[0] >= 0 && subject[0] < 10000 && subject[0] == std::floor(subject[0])))
      fail(lines, i, "a subject's number from 0 to 9999 is expected, found " + detail::excerpt(lines.get(i)));
    shared.subjects.push_back(static_cast<std::int16_t>(subject[0]));
    shared.groups = std::max<Index>(shared.groups, shared.subjects.back() + 1);
  }
}

LOCKSTEP_INLINE void UciHarDataset::fail(TextLinesDataset const& lines, Index i, std::string const& why) {
  throw DataError(lines.name(i) + ": " + why);
}

}}}  // namespace lockstep::data
