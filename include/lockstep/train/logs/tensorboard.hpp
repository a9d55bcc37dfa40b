// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/train/detail/close_file.hpp>
#include <lockstep/train/detail/single_fit_guard.hpp>
#include <lockstep/train/logs/detail/event_protozero.hpp>
#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

#if defined(LOCKSTEP_TENSORBOARD)

/// Writes a TensorBoard event file into a directory. Each step that metrics.jsonl has gives train/loss,
/// train/learning_rate and train/samples_per_second. Float16 activations add train/loss_scale, and clipping adds
/// train/gradient_norm. FitOptions::loss_parts adds each part, such as train/kl. Each evaluation gives eval/loss and
/// its metrics. An event is complete in the file when it is logged. A resumed run writes a new file, which voids later
/// steps in earlier files of the directory. For one rank only.
/// @throws DataError if the file cannot be written, ConfigError at the start of a second fit
class TensorBoard final : public Observer {
 public:
  /// Stores the directory. The file, and the directory if it is missing, are created when a run starts.
  explicit TensorBoard(std::string const& directory) : path_(directory + "/" + file_name()) {}

  void start(StartReport const& report) override {
    fit_guard_.start("TensorBoard", path_, report.resumed);
    std::error_code failed;  // ignored: fopen reports the reason
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), failed);
    auto const first = path_;
    for (int i = 1; !file_ && i < 100; ++i) {  // "x": nothing that is there is replaced or followed
      file_.reset(std::fopen(path_.c_str(), "wbxe"));
      if (!file_ && errno != EEXIST) break;
      if (!file_) path_ = first + "." + std::to_string(i);
    }
    if (!file_) fail("create");
    write(detail::Event(0).version());
    write(detail::Event(report.resumed + 1).start());
  }
  void step(StepReport const& report) override {
    if (!report.is_logged()) return;
    std::vector<std::pair<std::string, double>> all{{"train/loss", report.loss},
                                                    {"train/learning_rate", report.learning_rate},
                                                    {"train/samples_per_second", report.samples_per_second}};
    if (report.loss_scale > 0) all.emplace_back("train/loss_scale", report.loss_scale);
    if (report.gradient_norm > 0) all.emplace_back("train/gradient_norm", report.gradient_norm);
    for (auto const& [name, value] : report.loss_parts) all.emplace_back("train/" + name, value);
    write(detail::Event(report.step).scalars(all));
  }
  void evaluation(EvaluationReport const& report) override {
    std::vector<std::pair<std::string, double>> all{{"eval/loss", report.loss}};
    for (auto const& [name, value] : report.metrics) all.emplace_back("eval/" + name, value);
    write(detail::Event(report.step).scalars(all));
  }

 private:
  /// Returns a name that TensorBoard finds and sorts by time.
  static std::string file_name() {
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    char name[512];
    std::snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s.%d", static_cast<long long>(::time(nullptr)), host,
                  static_cast<int>(::getpid()));
    return name;
  }
  void write(detail::Event const& event) {
    auto const record = detail::record_of(event.bytes());
    if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size() || std::fflush(file_.get()) != 0)
      fail("write");
  }
  [[noreturn]] void fail(char const* what) const {
    throw DataError(path_ + ": cannot " + what + " the file: " + std::strerror(errno));
  }

  std::string path_;
  std::unique_ptr<std::FILE, detail::CloseFile> file_;
  detail::SingleFitGuard fit_guard_;
};

#else

/// Placeholder without protozero: its use fails to compile and explains how to enable it.
template <class Nothing = void>
class TensorBoard : public Observer {
  static_assert(
      !std::is_void_v<Nothing>,
      "Lockstep: train::TensorBoard writes its files by protozero: link lockstep::tensorboard, or put protozero "
      "in the include path and define LOCKSTEP_TENSORBOARD; see docs/reference/trainer.md");

 public:
  template <class Directory>
  explicit TensorBoard(Directory const&) {}
};
template <class Directory>
TensorBoard(Directory) -> TensorBoard<>;

#endif

}}}  // namespace lockstep::train
