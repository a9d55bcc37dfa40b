// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/checksum.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/core/name_table.hpp>
#include <lockstep/core/nearest.hpp>
#include <lockstep/core/regular_file.hpp>
#include <lockstep/core/safetensors_layout.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/core/utf8.hpp>
#include <lockstep/core/widen.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/train/detail/check_finite_parameters.hpp>
#include <lockstep/train/files/atomic_file.hpp>
#include <lockstep/train/files/names_in_file.hpp>
#include <lockstep/train/files/tensor_in_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

static_assert(std::endian::native == std::endian::little,
              "Lockstep: safetensors files are little-endian, and so must the machine be");

/// Strings saved with parameters: a vocabulary, class names, the model's sizes.
using Metadata = std::vector<std::pair<std::string, std::string>>;

namespace detail {
/// Checks the sizes of both arenas against the layout, as a model with buffers is incomplete without them.
void check_arenas(char const* what, nn::ParameterLayout const& layout, std::size_t values, std::size_t buffers);

/// Arenas of the optimizer's moments, requested in order. Each is valid until the next request.
template <class Number>
struct Moments {
  std::size_t count = 0;
  Number* (*call)(void* self, std::size_t i) = nullptr;
  void* self = nullptr;
};

/// Calls f(name, entry, elements) for each tensor of a file: parameters, buffers, then the optimizer's moments, which
/// frozen parameters do not have. Arenas are passed as pointers to their first elements.
template <class Number, class Function>
void for_tensors(nn::ParameterLayout const& layout, Number* values, Number* buffers, Moments<Number> const& moments,
                 Function&& f) {
  for (auto const& entry : layout.entries()) f(entry.name, entry, values + entry.offset);
  for (auto const& entry : layout.buffers()) f(entry.name, entry, buffers + entry.offset);
  for (std::size_t i = 0; i < moments.count; ++i) {
    auto* const moment = moments.call(moments.self, i);
    for (auto const& entry : layout.entries())
      if (!entry.frozen) f("optimizer." + std::to_string(i) + "." + entry.name, entry, moment + entry.offset);
  }
}

/// Returns whether a metadata key is reserved by Lockstep.
inline bool is_reserved(std::string_view key) noexcept { return key.starts_with("lockstep."); }

/// Metadata key of a JSON object that has each tensor's checksum by its name in the file.
inline constexpr std::string_view checksums_key = "lockstep.checksums";

/// Checks the strings that a program saves with parameters, so that nothing is trained that cannot be saved.
/// @param where the beginning of the message: a path, or a call
/// @throws ConfigError if a name occurs twice or is reserved, or a string is not UTF-8, which the header of the file is
void check_metadata(std::string const& where, Metadata const& metadata);

/// Returns the number of tensors in a file of the model with that many moments.
[[nodiscard]] std::size_t tensors_in_file(nn::ParameterLayout const& layout, std::size_t moments);

/// Returns the header, padded to a multiple of 8 bytes, with one checksum for each tensor in the order of the file.
/// @throws ConfigError if other programs cannot read a header of that length
[[nodiscard]] std::string safetensors_header(std::string const& path, nn::ParameterLayout const& layout,
                                             std::size_t moments, Metadata const& metadata,
                                             std::vector<Checksum> const& sums);

/// @param what for messages: "parameter"   @param remedy for messages
/// @throws ConfigError if other programs cannot read a tensor of that name
void expect_tensor_name(std::string const& path, char const* what, std::string const& name, char const* remedy);
/// Returns the text of a header, padded to a multiple of 8 bytes.
/// @throws ConfigError if other programs cannot read a header of that length
[[nodiscard]] std::string padded_header(std::string const& path, std::string text);

/// Returns the bytes of a file with these strings, and checks its header.
/// @throws ConfigError if other programs cannot read a header of that length
std::size_t file_bytes(std::string const& path, nn::ParameterLayout const& layout, std::size_t moments,
                       Metadata const& metadata);

/// Whether a save looks at each number.
enum class SavedNumbers {
  any,     ///< a program may want to look at a diverged model
  finite,  ///< parameters must be finite, and buffers not NaN
};

/// Writes a file atomically. The first bytes are written last, so that `path` must not be a pipe. A part is checked,
/// summed and written while it is in the cache.
/// @throws ConfigError if other programs cannot read a header of that length, or a name in it
/// @throws NotFinite by SavedNumbers::finite; no file appears
/// @source safetensors 0.3: u64 length of a JSON header, the header (padded with blanks), the tensors' bytes
void write_safetensors(std::string const& path, nn::ParameterLayout const& layout, float const* values,
                       float const* buffers, Moments<float const> const& moments, Metadata const& metadata,
                       SavedNumbers numbers = SavedNumbers::any);

/// Writes a file of parameters that are finite and of buffers that are not NaN.
/// @throws Error that names the path, the first number that is not finite, and `remedy`; no file appears
void write_finite_safetensors(std::string const& path, nn::ParameterLayout const& layout, std::span<float const> values,
                              std::span<float const> buffers, Moments<float const> const& moments,
                              Metadata const& metadata, char const* remedy);

}  // namespace detail

/// Saves all parameters, then the model's buffers, by name, in forward order, as float32. The file appears complete or
/// not at all. Each tensor has a checksum, with which a load detects changed bits.
/// @shape values [layout.size()]   @shape buffers [layout.buffer_size()]
/// @throws DataError if the file cannot be written, ShapeError if an arena's size differs from the layout's,
/// ConfigError if a name in `metadata` occurs twice or begins with "lockstep.", a string is not UTF-8, or all of them
/// make a header of more than 100 MB, which other programs refuse
void save_parameters(std::string const& path, nn::ParameterLayout const& layout, std::span<float const> values,
                     Metadata const& metadata = {}, std::span<float const> buffers = {});

/// Reads parameters and buffers from a safetensors file of float64, float32, float16 or bfloat16, by `save_parameters`
/// or any other program. Counters may be int64, up to 2^24. Returns the file's metadata without the keys that Lockstep
/// reserves ("lockstep."). Tensors that the model does not have are ignored. `names` selects what is read, and its
/// names in the file.
/// @shape values [layout.size()]   @shape buffers [layout.buffer_size()]; both change only if all is valid
/// @throws DataError if the file cannot be read or is malformed, or if a selected tensor is missing or its shape or
/// checksum differs
/// @throws ShapeError if an arena's size differs from the layout's, ConfigError if `names` selects nothing of the model
Metadata load_parameters(std::string const& path, nn::ParameterLayout const& layout, std::span<float> values,
                         std::span<float> buffers = {}, NamesInFile const& names = {});

/// Reads a string that was saved with parameters, without the parameters. Use it for a vocabulary or sizes that the
/// model needs at construction.
/// @throws DataError if the file cannot be read, is malformed or has no string of that name; the message lists its
/// names
std::string load_text(std::string const& path, std::string_view name);

namespace detail {

/// JSON object with fast lookup of many members.
struct IndexedObject {
  json::Value value;
  NameTable table = {};

  explicit IndexedObject(json::Value object);
  [[nodiscard]] std::string_view operator()(std::size_t i) const { return value.object()[i].first; }
  [[nodiscard]] json::Value const* find(std::string_view name) const;
};

/// Returns the bytes of an element of a type that parameters are read from ("F32", "F16", "BF16", "F64", "I64"), and 0
/// for another type.
[[nodiscard]] constexpr std::size_t element_bytes(std::string_view type) noexcept {
  if (type == "F64" || type == "I64") return 8;
  if (type == "F32") return 4;
  return type == "F16" || type == "BF16" ? 2 : 0;
}

/// Safetensors file: its header, and access to its tensors with checked offsets.
struct SafetensorsFile {
  RegularFile file;
  IndexedObject header{json::Object{}};
  IndexedObject checksums{json::Object{}};  // empty for files of other programs
  Index data_begin = 0, data_bytes = 0;

  explicit SafetensorsFile(std::string const& path);

  [[nodiscard]] Metadata metadata() const;

  /// Returns the metadata without the keys that Lockstep reserves.
  [[nodiscard]] Metadata texts() const;

  /// Reads the selected tensors into their arenas, which change only if all tensors are valid. It therefore reads each
  /// tensor twice, in chunks, and needs no second copy of the arenas. A change of the file between the two reads is
  /// detected.
  void read(std::string const& path, nn::ParameterLayout const& layout, float* values, float* buffers,
            Moments<float> const& moments, NamesInFile const& names = {}) const;

  /// Elements of a tensor: `count` pieces of `length`, which begin `stride` elements apart.
  struct Pieces {
    Index count = 1, first = 0, length = 0, stride = 0;
  };
  /// Place of a parameter in a tensor that also has rows of others, or has its axes in another order.
  struct Placement {
    nn::ParameterLayout::Entry stored;  ///< the parameter, with the tensor's shape and size
    Pieces pieces;                      ///< elements of the parameter, in the tensor's order
    std::vector<Index> viewed;          ///< extents of the pieces in that order
    std::vector<Index> axes;            ///< axis of the pieces for each axis of the parameter
    std::vector<Index> shape;           ///< extents in the parameter's order

    /// Returns whether the tensor has the parameter's elements in the parameter's order.
    [[nodiscard]] bool in_order() const;
    /// Calls f(i, k) for each element i of the parameter, which is element k of the pieces.
    template <class Function>
    void for_each(Function const& f) const;
  };
  /// @param what for messages   @param most limit for the tensor's elements
  /// @throws DataError if the parameter does not fit the tensor of that shape
  [[nodiscard]] static Placement place(std::string const& what, TensorInFile const& from, std::vector<Index> shape,
                                       Index most, nn::ParameterLayout::Entry const& entry);
  /// Reads a parameter from a tensor that also has rows of others, or has its axes in another order.
  /// @shape out [entry.size], or empty to check the tensor only
  void read_part(std::string const& path, TensorInFile const& from, nn::ParameterLayout::Entry const& entry,
                 std::span<float> out) const;

  /// Reads the tensor of that name and the entry's shape, and compares its checksum.
  /// @shape out [entry.size], or empty to check the tensor only
  void read_tensor(std::string const& path, std::string const& name, nn::ParameterLayout::Entry const& entry,
                   std::span<float> out) const;

  /// Place and type of a tensor in the file.
  struct Tensor {
    Index begin;
    std::size_t bytes, width;  // of the tensor, of an element
    std::string_view type;

    void widen(std::span<std::byte const> piece, std::span<float> out) const;
    template <class Number>
    static void narrow(std::span<std::byte const> piece, std::span<float> out);
  };
  /// Reads pieces, one after the other.
  /// @shape out [count * length], or empty to check the elements only
  void read_pieces(std::string const& path, std::string const& name, Tensor const& from, Pieces const& pieces,
                   std::span<float> out) const;
  /// Reads bytes from `begin` in the tensor, by the buffer `room`, and adds them to a checksum, if there is one.
  /// @shape out [bytes / from.width], or empty
  void read_bytes(std::string const& path, std::string const& name, Tensor const& from, std::size_t begin,
                  std::size_t bytes, std::span<std::byte> room, std::span<float> out,
                  RunningChecksum* sum = nullptr) const;
  /// @throws DataError if a finite number is infinite as a float
  static void expect_float_range(std::string const& path, std::string const& name, std::span<std::byte const> doubles);
  /// @throws DataError if an integer is above 2^24 in magnitude
  static void expect_exact_integers(std::string const& path, std::string const& name,
                                    std::span<std::byte const> integers);
  /// Reads bytes from an offset in the file.   @throws DataError if it ends earlier
  void take(std::string const& path, Index at, std::span<std::byte> to) const;
  void check_sum(std::string const& path, std::string const& name, Checksum const& found) const;
  /// Returns whether two shapes differ only in the first extent, of which `shape` has less.
  [[nodiscard]] static bool has_fewer_rows(std::span<Index const> shape, std::span<Index const> needed) noexcept;
  /// Returns the entry with as many rows as the tensor in the file, if that has fewer and no other difference.
  [[nodiscard]] nn::ParameterLayout::Entry first_rows(std::string const& path, std::string const& name,
                                                      nn::ParameterLayout::Entry const& entry) const;
  /// Removes extents of 1, because libraries differ in them for scalars and kernels of size 1.
  [[nodiscard]] static std::vector<Index> without_ones(std::vector<Index> shape);

  /// Returns what to do about a tensor of another shape than the model needs.
  [[nodiscard]] char const* remedy_for_shape(std::vector<Index> const& shape,
                                             std::vector<Index> const& needed_shape) const;

  /// Returns the extents of the tensor of that name.
  [[nodiscard]] std::vector<Index> shape_of(std::string const& path, std::string const& name) const;

  /// Returns the tensor of that name after checking its shape, type and offsets.
  [[nodiscard]] Tensor tensor(std::string const& path, std::string const& name,
                              nn::ParameterLayout::Entry const& entry) const;

  /// Returns a hint about a similar name in the file, as of a part or of a larger model.
  [[nodiscard]] std::string other_name(std::string const& name) const;
};

}  // namespace detail

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/files/safetensors.ipp>
#endif
