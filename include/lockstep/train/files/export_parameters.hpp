// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>

#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/train/detail/check_finite_parameters.hpp>
#include <lockstep/train/files/names_in_file.hpp>
#include <lockstep/train/files/safetensors.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Treatment of floating-point tensors in ExportOptions::like that no parameter fills.
enum class OtherTensors {
  refuse,  ///< an error, because they may belong to parameters that have been trained
  copy,    ///< are copied, as those of a part that the model does not have
};

/// Form of an exported file.
struct ExportOptions {
  /// Safetensors file whose form the exported file has: the names, order, shapes and element types of its tensors, and
  /// its strings. A path, which may be the exported file's. "": the model's parameters as float32, with their own
  /// shapes
  std::string like = {};
  Metadata metadata = {};                      ///< further strings, which replace those of `like` with equal names
  OtherTensors others = OtherTensors::refuse;  ///< treatment of tensors in `like` that no parameter fills
};

/// Saves parameters and buffers for another program: under its names, with its axes and in its fused tensors. `names`
/// is what `load_parameters` takes to read such a file. Parameters that it has no name for are left out. Parameters of
/// one fused tensor must fill all of its rows, and none twice.
///
/// With `options.like`, every tensor has the shape and the element type that it has there. Numbers are rounded to the
/// nearest. Integer tensors that no parameter fills, such as counters, are copied; others are treated as
/// `options.others` says. A tensor that no parameter fills, but whose bytes are those of a tensor that a parameter
/// fills, receives the same numbers: the weights are tied. Constant tensors do not count as tied, and none if a
/// parameter without a name has as many elements.
///
/// The file has the string "format", "pt", which Hugging Face's libraries need, if neither `like` nor the metadata has
/// a "format". It has no checksums. It appears complete or not at all.
/// @shape values [layout.size()]   @shape buffers [layout.buffer_size()]
/// @throws ConfigError if rows are filled twice or by no parameter, `names` selects nothing, its TensorInFile has a
/// `shape` without `options.like`, or the metadata cannot be saved
/// @throws DataError if `like` cannot be read, lacks a name or has another shape, a number is beyond the element type,
/// or the file cannot be written; ShapeError if an arena's size differs from the layout's
void export_parameters(std::string const& path, nn::ParameterLayout const& layout, std::span<float const> values,
                       NamesInFile const& names, ExportOptions const& options = {},
                       std::span<float const> buffers = {});

/// Saves a trainer's parameters and buffers, on the first rank.
/// @throws ConfigError, DataError as above; Error if a parameter is not finite
template <class Trainer>
requires requires(Trainer const& trainer) { trainer.layout(); }
void export_parameters(Trainer const& trainer, std::string const& path, NamesInFile const& names,
                       ExportOptions const& options = {}) {
  if (trainer.rank() > 0) return;
  detail::check_finite_parameters(trainer.layout(), trainer.values(), trainer.buffers(), path + ": ",
                                  "; it is not saved");
  export_parameters(path, trainer.layout(), trainer.values(), names, options, trainer.buffers());
}

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/files/export_parameters.ipp>
#endif
