// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/checksum.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/core/name_table.hpp>
#include <lockstep/core/safetensors_layout.hpp>
#include <lockstep/core/utf8.hpp>
#include <lockstep/train/files/atomic_file.hpp>
#include <lockstep/train/files/detail/transposed.hpp>
#include <lockstep/train/files/export_parameters.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// A parameter or buffer, and its place in the exported file.
struct ExportedPart {
  nn::ParameterLayout::Entry const* entry;
  float const* elements;
  TensorInFile to;

  [[nodiscard]] Index rows() const { return entry->shape.empty() ? 1 : entry->shape[0]; }
  [[nodiscard]] bool is_whole() const {
    return to.rows_before == 0 && to.rows_after == 0 && to.axes.empty() && to.shape.empty();
  }
};

/// A tensor of the exported file. Without parts it is copied from `like`.
struct ExportedTensor {
  std::string name, type;
  std::vector<Index> shape;
  std::size_t bytes = 0;
  std::vector<ExportedPart> parts = {};
};

/// Writes a file in another program's form.
class Export {
 public:
  Export(std::string const& path, std::string const& like) : path_(path), like_(like) {
    if (!like.empty()) file_.emplace(like);
  }

  /// Adds the parameters or buffers of `entries`, whose arena begins at `all`.
  void add(std::vector<nn::ParameterLayout::Entry> const& entries, float const* all, NamesInFile const& names) {
    for (auto const& entry : entries) {
      auto to = names.tensor(entry.name);
      if (to.name.empty()) {
        left_out_.push_back(entry.size);
        continue;
      }
      auto const i = known_.add(
          [&](std::size_t at) -> std::string_view { return at < tensors_.size() ? tensors_[at].name : to.name; });
      if (i == NameTable::none) tensors_.push_back({to.name, {}, {}});
      auto& tensor = i == NameTable::none ? tensors_.back() : tensors_[i];
      tensor.parts.push_back({&entry, all + entry.offset, std::move(to)});
    }
  }
  [[nodiscard]] bool empty() const noexcept { return tensors_.empty(); }

  void write(ExportOptions const& options) {
    for (auto& tensor : tensors_) order_parts(tensor);
    if (file_)
      take_form(options.others);
    else
      for (auto& tensor : tensors_) set_shape(tensor);
    expect_transposed();
    auto const text = header(options.metadata);
    AtomicFile out(path_);
    std::uint64_t const length = text.size();
    out.write(std::as_bytes(std::span(&length, 1)));
    out.write(text);
    for (auto const& tensor : tensors_) write(out, tensor);
    out.commit();
  }

 private:
  [[nodiscard]] std::string named(ExportedTensor const& tensor) const {
    return path_ + ": the tensor \"" + tensor.name + "\" ";
  }

  /// Orders the parts by their rows.   @throws ConfigError unless they fill each row of the tensor once
  void order_parts(ExportedTensor& tensor) const {
    auto& parts = tensor.parts;
    for (std::size_t i = 1; i < parts.size(); ++i)  // few
      for (auto k = i; k > 0 && parts[k].to.rows_before < parts[k - 1].to.rows_before; --k)
        std::swap(parts[k], parts[k - 1]);
    auto const refuse = [&](std::string const& what) {
      throw ConfigError(named(tensor) + what +
                        "; the function of names must give each of its rows to one parameter, "
                        "all with the same axes and shape");
    };
    auto const quoted = [](ExportedPart const& part) { return "\"" + part.entry->name + "\""; };
    constexpr auto most = std::numeric_limits<Index>::max() / 4;
    Index filled = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto const& [entry, elements, to] = parts[i];
      if (to.rows_before < 0 || to.rows_after < 0 || to.rows_before > most || to.rows_after > most)
        refuse("has " + std::to_string(to.rows_before) + " rows before the parameter " + quoted(parts[i]) + " and " +
               std::to_string(to.rows_after) + " after it");
      if (to.rows_before < filled)
        refuse("is filled twice, by the parameters " + quoted(parts[i - 1]) + " and " + quoted(parts[i]));
      if (to.rows_before > filled)
        refuse("has rows from " + std::to_string(filled) + " to " + std::to_string(to.rows_before) +
               " that no parameter fills");
      filled += parts[i].rows();
      auto const& first = parts[0];
      if (to.axes != first.to.axes || to.shape != first.to.shape)
        refuse("has other axes or another shape for " + quoted(parts[i]) + " than for " + quoted(first));
      if (auto const rows = to.rows_before + parts[i].rows() + to.rows_after,
          of_first = first.to.rows_before + first.rows() + first.to.rows_after;
          rows != of_first)
        refuse("has " + std::to_string(of_first) + " rows by the parameter " + quoted(first) + ", and " +
               std::to_string(rows) + " by " + quoted(parts[i]));
    }
    if (auto const rest = parts.back().to.rows_after; rest > 0)
      refuse("has rows from " + std::to_string(filled) + " to " + std::to_string(filled + rest) +
             " that no parameter fills");
  }

  /// @throws DataError if the function of names forgot to transpose a square matrix
  void expect_transposed() const {
    Transposed transposed;
    for (auto const& tensor : tensors_)
      for (auto const& part : tensor.parts) transposed.add(part.to, tensor.shape);
    transposed.check(path_, "saved");
  }

  /// Gives a tensor the shape of its parameters, with their axes permuted back.
  void set_shape(ExportedTensor& tensor) const {
    auto const& [entry, elements, to] = tensor.parts[0];
    auto shape = entry->shape;
    if (shape.empty() && to.rows_after > 0) shape.push_back(1);
    if (!shape.empty()) shape[0] += to.rows_after;
    if (!to.shape.empty())
      throw ConfigError(named(tensor) + "is viewed in shape " + to_string(to.shape) +
                        ", and its own shape is not known; pass a file that has it as ExportOptions::like");
    auto const& axes = to.axes;
    bool permutes = axes.empty() || axes.size() == shape.size();
    for (Index axis = 0; permutes && axis < std::ssize(axes); ++axis)
      permutes = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!permutes)
      throw ConfigError(named(tensor) + "has shape " + to_string(shape) + " by the parameter \"" + entry->name +
                        "\", and axes " + to_string(axes) +
                        " do not name each of its axes once; return axes only for tensors that have them");
    tensor.shape = shape;
    for (std::size_t k = 0; k < axes.size(); ++k) tensor.shape[static_cast<std::size_t>(axes[k])] = shape[k];
    tensor.type = "F32";
    tensor.bytes = sizeof(float);
    for (auto const extent : shape) tensor.bytes *= static_cast<std::size_t>(extent);
    for (auto const& part : tensor.parts) static_cast<void>(place(tensor, part));
  }

  /// Exchanges the tensors for those of `like`, in its order.
  void take_form(OtherTensors others) {
    auto const& file = *file_;
    check_safetensors_layout(like_, file.header.value, static_cast<std::uint64_t>(file.data_bytes));
    for (auto& tensor : tensors_) {
      tensor.shape = file.shape_of(like_, tensor.name);
      for (auto const& part : tensor.parts)
        static_cast<void>(file.tensor(like_, tensor.name, part.is_whole() ? *part.entry : place(tensor, part).stored));
    }
    auto const name_of = [this](std::size_t i) -> std::string_view { return tensors_[i].name; };
    std::vector<ExportedTensor> out;
    for (auto const& [name, value] : file.header.value.object()) {
      if (name == "__metadata__") continue;
      auto const& offsets = value.at("data_offsets").array();
      ExportedTensor tensor{name, value.at("dtype").string(), file.shape_of(like_, name),
                            static_cast<std::size_t>(offsets[1].integer() - offsets[0].integer())};
      if (auto const i = known_.find(name, name_of); i != NameTable::none) tensor.parts = tensors_[i].parts;
      out.push_back(std::move(tensor));
    }
    tensors_ = std::move(out);
    tie_copies();
    for (auto const& tensor : tensors_)
      if (auto const kind = tensor.type[0];
          others == OtherTensors::refuse && tensor.parts.empty() && kind != 'I' && kind != 'U' && tensor.type != "BOOL")
        throw DataError(like_ + ": no parameter of the model fills the tensor \"" + tensor.name + "\" in " + path_ +
                        "; if it is to be copied unchanged, set ExportOptions::others to OtherTensors::copy");
  }

  /// @throws DataError if the part does not fit the tensor's shape
  [[nodiscard]] SafetensorsFile::Placement place(ExportedTensor const& tensor, ExportedPart const& part) const {
    return SafetensorsFile::place((file_ ? like_ : path_) + ": parameter \"" + tensor.name + "\"", part.to,
                                  tensor.shape, std::numeric_limits<Index>::max() / 8, *part.entry);
  }

  /// Gives tensors without parts that are copies of others in `like` the same parts, unless a parameter that was left
  /// out has as many elements: the layers of a new model may be copies of each other.
  void tie_copies() {
    std::vector<Content> contents(tensors_.size());  // each is read at most once
    for (std::size_t k = 0; k < tensors_.size(); ++k)
      for (std::size_t i = 0; tensors_[k].parts.empty() && i < tensors_.size(); ++i) {
        auto const &tensor = tensors_[i], &copy = tensors_[k];
        if (tensor.parts.empty() || tensor.type != copy.type || tensor.shape != copy.shape ||
            tensor.bytes != copy.bytes || left_out(tensor.bytes / element_bytes(tensor.type)))
          continue;
        auto const &of_tensor = content(tensor, contents[i]), &of_copy = content(copy, contents[k]);
        if (!of_copy.constant && of_tensor.sum == of_copy.sum) tensors_[k].parts = tensor.parts;
      }
  }
  [[nodiscard]] bool left_out(std::size_t elements) const {
    return std::find(left_out_.begin(), left_out_.end(), static_cast<Index>(elements)) != left_out_.end();
  }
  /// Checksum of a tensor of `like`, once it is known.
  struct Content {
    bool known = false;
    bool constant = true;  // all elements are equal
    Checksum sum{};
  };
  Content const& content(ExportedTensor const& tensor, Content& out) const {
    if (std::exchange(out.known, true)) return out;
    auto const width = element_bytes(tensor.type);
    std::vector<std::byte> first;
    RunningChecksum running;
    for_pieces(tensor, [&](std::span<std::byte const> piece) {
      if (first.empty()) first.assign(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(width));
      for (std::size_t i = 0; out.constant && i < piece.size(); i += width)
        out.constant = std::memcmp(piece.data() + i, first.data(), width) == 0;
      running.add(piece);
    });
    out.sum = running.sum();
    return out;
  }
  /// Calls f(bytes) for the bytes of a tensor of `like`, in pieces.
  template <class Function>
  void for_pieces(ExportedTensor const& tensor, Function const& f) const {
    auto const begin =
        file_->data_begin + file_->header.find(tensor.name)->at("data_offsets").at(std::size_t{0}).integer();
    std::vector<std::byte> room(std::min(tensor.bytes, piece_bytes));
    for (std::size_t at = 0; at < tensor.bytes; at += room.size()) {
      auto const piece = std::span(room).first(std::min(room.size(), tensor.bytes - at));
      file_->take(like_, begin + static_cast<Index>(at), piece);
      f(std::span<std::byte const>(piece));
    }
  }

  /// Returns the header, padded to a multiple of 8 bytes.
  [[nodiscard]] std::string header(Metadata const& more) const {
    auto metadata = file_ ? file_->texts() : Metadata{};
    for (auto const& [name, text] : more) {
      auto at = metadata.begin();
      while (at != metadata.end() && at->first != name) ++at;
      if (at == metadata.end())
        metadata.emplace_back(name, text);
      else
        at->second = text;
    }
    bool has_format = false;
    for (auto const& text : metadata) has_format = has_format || text.first == "format";
    if (!has_format) metadata.emplace_back("format", "pt");
    json::Writer out;
    out.begin_object().key("__metadata__").begin_object();
    for (auto const& [name, text] : metadata) out.member(name, text);
    out.end_object();
    std::size_t begin = 0;
    for (auto const& tensor : tensors_) {
      expect_tensor_name(path_, "tensor", tensor.name, "save it under another name, by the function of names");
      out.key(tensor.name).begin_object().member("dtype", tensor.type).member("shape", tensor.shape);
      out.member("data_offsets", std::array{begin, begin + tensor.bytes}).end_object();
      begin += tensor.bytes;
    }
    return padded_header(path_, out.end_object().text());
  }

  void write(AtomicFile& out, ExportedTensor const& tensor) const {
    if (tensor.parts.empty()) {
      RunningChecksum running;
      for_pieces(tensor, [&](std::span<std::byte const> piece) {
        running.add(piece);
        out.write(piece);
      });
      return file_->check_sum(like_, tensor.name, running.sum());
    }
    if (tensor.parts[0].is_whole()) {
      auto const& part = tensor.parts[0];
      return write(out, tensor, {part.elements, static_cast<std::size_t>(part.entry->size)});
    }
    std::vector<float> all(tensor.bytes / element_bytes(tensor.type));
    for (auto const& part : tensor.parts) {
      auto const placement = place(tensor, part);
      placement.for_each([&](std::size_t i, std::size_t k) {
        auto const& [count, first, length, stride] = placement.pieces;
        auto const element = static_cast<Index>(k);
        all[static_cast<std::size_t>(first + element / length * stride + element % length)] = part.elements[i];
      });
    }
    write(out, tensor, all);
  }
  void write(AtomicFile& out, ExportedTensor const& tensor, std::span<float const> numbers) const {
    std::vector<std::byte> room(std::min(numbers.size(), piece_bytes / 8) * element_bytes(tensor.type));
    while (!numbers.empty()) {
      auto const count = std::min(numbers.size(), piece_bytes / 8);
      auto const from = numbers.first(count);
      bool const fits = tensor.type == "F16"    ? convert<float16>(from, room)
                        : tensor.type == "BF16" ? convert<bfloat16>(from, room)
                        : tensor.type == "F64"  ? convert<double>(from, room)
                        : tensor.type == "I64"  ? convert<std::int64_t>(from, room)
                                                : convert<float>(from, room);
      if (!fits)
        throw DataError(named(tensor) + "has a number that its type " + tensor.type +
                        (tensor.type == "I64" ? " does not have, because it is no integer of at most 2^24"
                                              : " does not have, because it is too large") +
                        "; take a file with a wider type, such as F32, as ExportOptions::like");
      out.write(std::span<std::byte const>(room).first(count * element_bytes(tensor.type)));
      numbers = numbers.subspan(count);
    }
  }
  /// Returns whether the type has all numbers, rounded to the nearest. Numbers that are not finite are converted.
  template <class Number>
  [[nodiscard]] static bool convert(std::span<float const> from, std::span<std::byte> to) {
    bool fits = true;
    for (std::size_t i = 0; i < from.size(); ++i) {
      Number number;
      if constexpr (std::is_integral_v<Number>) {
        fits = fits && std::abs(from[i]) <= 0x1p24F && std::nearbyint(from[i]) == from[i];
        number = fits ? static_cast<Number>(from[i]) : 0;
      } else {
        number = static_cast<Number>(from[i]);
        fits = fits && std::isfinite(static_cast<float>(number)) == std::isfinite(from[i]);
      }
      std::memcpy(to.data() + i * sizeof number, &number, sizeof number);
    }
    return fits;
  }

  static constexpr std::size_t piece_bytes = std::size_t{1} << 18;

  std::string const& path_;
  std::string const& like_;
  std::optional<SafetensorsFile> file_;  // `like`
  std::vector<ExportedTensor> tensors_;
  NameTable known_;              // names of the tensors with parts
  std::vector<Index> left_out_;  // elements of each parameter without a name
};

}}}  // namespace lockstep::train::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_COLD_INLINE void export_parameters(std::string const& path, nn::ParameterLayout const& layout,
                                            std::span<float const> values, NamesInFile const& names,
                                            ExportOptions const& options, std::span<float const> buffers) {
  detail::check_arenas("export_parameters", layout, values.size(), buffers.size());
  detail::check_metadata(path, options.metadata);
  json::with_file_name(options.like, [&] {
    detail::Export file(path, options.like);
    file.add(layout.entries(), values.data(), names);
    file.add(layout.buffers(), buffers.data(), names);
    auto const& all = layout.entries().empty() ? layout.buffers() : layout.entries();
    if (file.empty() && !all.empty()) throw ConfigError(path + ": " + names.none(all[0].name));
    file.write(options);
  });
}

}}}  // namespace lockstep::train
