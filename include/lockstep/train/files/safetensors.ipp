// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/train/files/detail/transposed.hpp>
#include <lockstep/train/files/safetensors.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE void check_arenas(char const* what, nn::ParameterLayout const& layout, std::size_t values,
                                       std::size_t buffers) {
  auto const wanted = static_cast<std::size_t>(layout.size()), kept = static_cast<std::size_t>(layout.buffer_size());
  expect<ShapeError>(values == wanted && buffers == kept, [&] {
    return std::string(what) + ": " + std::to_string(values) + " parameter and " + std::to_string(buffers) +
           " buffer elements were passed; the model's layout has " + std::to_string(wanted) + " and " +
           std::to_string(kept);
  });
}

LOCKSTEP_COLD_INLINE void check_metadata(std::string const& where, Metadata const& metadata) {
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    auto const& [name, text] = metadata[i];
    auto const what = where + ": the metadata \"" + name + "\" ";
    if (is_reserved(name))
      throw ConfigError(what + "has a name that Lockstep reserves; begin it with something else than \"lockstep.\"");
    for (std::size_t k = 0; k < i; ++k)
      if (metadata[k].first == name)
        throw ConfigError(what + "is given twice; give each string its own name, for instance in a derived class");
    for (auto const* const each : {&name, &text})
      for (std::string_view rest = *each; !rest.empty();) {
        auto const length = utf8_length(rest);
        if (length == 0)
          throw ConfigError(what + "is not UTF-8 at byte " + std::to_string(each->size() - rest.size()) +
                            ", and would be read with other characters; convert it, or save it by core/base64.hpp");
        rest.remove_prefix(length);
      }
  }
}

LOCKSTEP_COLD_INLINE std::string safetensors_header(std::string const& path, nn::ParameterLayout const& layout,
                                                    std::size_t moments, Metadata const& metadata,
                                                    std::vector<Checksum> const& sums) {
  float const none = 0;
  Moments<float const> const placeholder{moments, [](void* any, std::size_t) { return static_cast<float const*>(any); },
                                         const_cast<float*>(&none)};
  json::Writer out, checksums;
  checksums.begin_object();
  auto sum = sums.begin();
  for_tensors(layout, &none, &none, placeholder,
              [&](std::string const& name, auto const&, float const*) { checksums.member(name, to_string(*sum++)); });
  out.begin_object().key("__metadata__").begin_object();
  for (auto const& [name, text] : metadata) out.member(name, text);
  out.member(checksums_key, checksums.end_object().text()).end_object();
  std::size_t begin = 0;
  for_tensors(layout, &none, &none, placeholder, [&](std::string const& name, auto const& entry, float const*) {
    expect_tensor_name(path, "parameter", name, "name it otherwise in the model's visit");
    auto const end = begin + static_cast<std::size_t>(entry.size) * sizeof(float);
    out.key(name).begin_object().member("dtype", "F32").member("shape", entry.shape);
    out.member("data_offsets", std::array{begin, end}).end_object();
    begin = end;
  });
  return padded_header(path, out.end_object().text());
}

LOCKSTEP_COLD_INLINE void expect_tensor_name(std::string const& path, char const* what, std::string const& name,
                                             char const* remedy) {
  if (name != "__metadata__" && utf8_prefix(name) == name.size()) return;
  throw ConfigError(path + ": the " + what + " \"" + name + "\" has a name that " +
                    (name == "__metadata__" ? "the format reserves" : "is not UTF-8") +
                    ", so that no program could load it; " + remedy);
}

LOCKSTEP_COLD_INLINE std::string padded_header(std::string const& path, std::string text) {
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > max_safetensors_header)
    throw ConfigError(path + ": the header, with all metadata, would have " + std::to_string(text.size()) +
                      " bytes, and other readers of safetensors take at most " +
                      std::to_string(max_safetensors_header) +
                      "; save the longest string, such as a vocabulary, in a file of its own");
  return text;
}

LOCKSTEP_COLD_INLINE std::size_t tensors_in_file(nn::ParameterLayout const& layout, std::size_t moments) {
  auto const& entries = layout.entries();
  auto const learned = std::ranges::count(entries, false, &nn::ParameterLayout::Entry::frozen);
  return entries.size() + layout.buffers().size() + moments * static_cast<std::size_t>(learned);
}

LOCKSTEP_COLD_INLINE std::size_t file_bytes(std::string const& path, nn::ParameterLayout const& layout,
                                            std::size_t moments, Metadata const& metadata) {
  std::vector<Checksum> const sums(tensors_in_file(layout, moments));
  auto numbers = static_cast<std::size_t>(layout.size() + layout.buffer_size());
  for (auto const& entry : layout.entries())
    if (!entry.frozen) numbers += moments * static_cast<std::size_t>(nn::ParameterLayout::padded(entry.size));
  return sizeof(std::uint64_t) + safetensors_header(path, layout, moments, metadata, sums).size() +
         numbers * sizeof(float);
}

LOCKSTEP_COLD_INLINE void write_safetensors(std::string const& path, nn::ParameterLayout const& layout,
                                            float const* values, float const* buffers,
                                            Moments<float const> const& moments, Metadata const& metadata,
                                            SavedNumbers numbers) {
  constexpr std::size_t part = std::size_t{1} << 16;  // numbers that stay in the cache
  if (numbers == SavedNumbers::finite && has_nan({buffers, static_cast<std::size_t>(layout.buffer_size())}))
    throw NotFinite{};
  std::vector<Checksum> sums(tensors_in_file(layout, moments.count));
  auto const header = [&] { return safetensors_header(path, layout, moments.count, metadata, sums); };
  auto const text = header();
  AtomicFile file(path, AtomicFile::Order::overwritten);
  std::uint64_t const length = text.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  auto sum = sums.begin();
  for_tensors(layout, values, buffers, moments, [&](std::string const&, auto const& entry, float const* elements) {
    bool const checked = numbers == SavedNumbers::finite && elements >= values && elements < values + layout.size();
    RunningChecksum running;
    for (std::span rest(elements, static_cast<std::size_t>(entry.size)); !rest.empty();) {
      auto const here = rest.first(std::min(part, rest.size()));
      if (checked && first_not_finite(here)) throw NotFinite{};
      running.add(std::as_bytes(here));
      file.write(std::as_bytes(here));
      rest = rest.subspan(here.size());
    }
    *sum++ = running.sum();
  });
  file.overwrite(sizeof length, header());  // equal length as before, now with the checksums
  file.commit();
}

LOCKSTEP_COLD_INLINE void write_finite_safetensors(std::string const& path, nn::ParameterLayout const& layout,
                                                   std::span<float const> values, std::span<float const> buffers,
                                                   Moments<float const> const& moments, Metadata const& metadata,
                                                   char const* remedy) {
  try {
    write_safetensors(path, layout, values.data(), buffers.data(), moments, metadata, SavedNumbers::finite);
  } catch (NotFinite const&) {
    check_finite_parameters(layout, values, buffers, path + ": ", remedy);
    throw;
  }
}

}}}  // namespace lockstep::train::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_COLD_INLINE void save_parameters(std::string const& path, nn::ParameterLayout const& layout,
                                          std::span<float const> values, Metadata const& metadata,
                                          std::span<float const> buffers) {
  detail::check_arenas("save_parameters", layout, values.size(), buffers.size());
  detail::check_metadata(path, metadata);
  detail::write_safetensors(path, layout, values.data(), buffers.data(), {}, metadata);
}

}}}  // namespace lockstep::train

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE IndexedObject::IndexedObject(json::Value object) : value(std::move(object)) {
  for (std::size_t i = 0; i < value.object().size(); ++i) table.add(*this);
}

LOCKSTEP_COLD_INLINE json::Value const* IndexedObject::find(std::string_view name) const {
  auto const i = table.find(name, *this);
  return i == NameTable::none ? nullptr : &value.object()[i].second;
}

LOCKSTEP_COLD_INLINE SafetensorsFile::SafetensorsFile(std::string const& path)
    : file(open_regular_file(path, "cannot be opened for reading")) {
  auto const size = file.size();
  std::uint64_t length = 0;
  if (size < sizeof length)
    throw DataError(path + ": " + std::to_string(size) +
                    " bytes; a safetensors file begins with the 8-byte length of its header");
  take(path, 0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > size - sizeof length)
    throw DataError(
        path + ": its header claims " + std::to_string(length) + " bytes, but only " +
        std::to_string(size - sizeof length) +
        " follow; the file is cut off, or no safetensors file: use another, such as the checkpoint before it");
  if (length > max_safetensors_header)
    throw DataError(path + ": its header claims " + std::to_string(length) + " bytes, and at most " +
                    std::to_string(max_safetensors_header) + " are read; it is no safetensors file, or is damaged");
  auto const text = with_memory_for(path + " (its header)", length, [&] {
    return read_text_at(file.file.get(), sizeof length, length, path, "the header");
  });
  data_begin = static_cast<Index>(sizeof length + length);
  data_bytes = static_cast<Index>(size) - data_begin;
  header = IndexedObject(json::parse(text, path));
  for (auto const& [name, value] : metadata())
    if (name == checksums_key) checksums = IndexedObject(json::parse(value, path + ": " + name));
}

LOCKSTEP_COLD_INLINE void SafetensorsFile::take(std::string const& path, Index at, std::span<std::byte> to) const {
  auto const got =
      read_at(file.file.get(), reinterpret_cast<char*>(to.data()), to.size(), static_cast<std::size_t>(at), path);
  if (got != to.size()) throw DataError(path + ": cannot be read to its end");
}

LOCKSTEP_COLD_INLINE Metadata SafetensorsFile::metadata() const {
  Metadata out;
  if (auto const* texts = header.find("__metadata__"))
    for (auto const& [name, value] : texts->object())
      if (value.is<std::string>()) out.emplace_back(name, value.string());  // other programs save numbers, too
  return out;
}

LOCKSTEP_COLD_INLINE Metadata SafetensorsFile::texts() const {
  auto out = metadata();
  std::erase_if(out, [](auto const& text) { return is_reserved(text.first); });
  return out;
}

LOCKSTEP_COLD_INLINE void SafetensorsFile::read(std::string const& path, nn::ParameterLayout const& layout,
                                                float* values, float* buffers, Moments<float> const& moments,
                                                NamesInFile const& names) const {
  std::string unnamed;  // first name that is not selected
  bool any = false;
  Transposed transposed;
  for (bool const keeps : {false, true}) {
    if (keeps) check_safetensors_layout(path, header.value, static_cast<std::uint64_t>(data_bytes));
    for_tensors(layout, values, buffers, moments, [&](std::string const& name, auto const& entry, float* elements) {
      auto const in_file = names.tensor(name);
      if (in_file.name.empty()) {
        if (unnamed.empty()) unnamed = name;
        return;
      }
      any = true;
      if (!keeps) transposed.add(in_file, shape_of(path, in_file.name));
      bool const whole = in_file.rows_before == 0 && in_file.rows_after == 0;
      if (whole && in_file.axes.empty() && in_file.shape.empty()) {
        auto const part = names.may_have_new_rows(name) ? first_rows(path, in_file.name, entry) : entry;
        read_tensor(path, in_file.name, part, {elements, keeps ? static_cast<std::size_t>(part.size) : 0});
      } else {
        read_part(path, in_file, entry, {elements, keeps ? static_cast<std::size_t>(entry.size) : 0});
      }
    });
    transposed.check(path, "read");
  }
  if (!any && !unnamed.empty()) throw ConfigError(path + ": " + names.none(unnamed));
}

LOCKSTEP_COLD_INLINE bool SafetensorsFile::has_fewer_rows(std::span<Index const> shape,
                                                          std::span<Index const> needed) noexcept {
  return !shape.empty() && shape.size() == needed.size() && shape[0] >= 0 && shape[0] < needed[0] &&
         std::equal(shape.begin() + 1, shape.end(), needed.begin() + 1);
}

LOCKSTEP_COLD_INLINE nn::ParameterLayout::Entry SafetensorsFile::first_rows(
    std::string const& path, std::string const& name, nn::ParameterLayout::Entry const& entry) const {
  auto part = entry;
  if (auto const shape = shape_of(path, name); has_fewer_rows(shape, entry.shape)) {
    part.size = entry.size / entry.shape[0] * shape[0];
    part.shape = shape;
  }
  return part;
}

LOCKSTEP_COLD_INLINE SafetensorsFile::Placement SafetensorsFile::place(std::string const& what,
                                                                       TensorInFile const& from,
                                                                       std::vector<Index> stored_shape, Index most,
                                                                       nn::ParameterLayout::Entry const& entry) {
  auto const elements = [most](std::vector<Index> const& shape) {  // -1 for more than `most`
    Index least = 1, count = 1;
    for (auto const extent : shape) least = std::min(least, extent);
    if (least < 1) return std::max(Index{-1}, least);
    for (auto const extent : shape) {
      if (count > most / extent) return Index{-1};
      count *= extent;
    }
    return count;
  };
  Placement out{entry, {}, {}, from.axes, {}};
  auto& [stored, pieces, viewed, axes, shape] = out;
  stored.shape = std::move(stored_shape);
  stored.size = elements(stored.shape);
  viewed = from.shape.empty() ? stored.shape : from.shape;
  if (stored.size < 0)
    throw DataError(what + " has shape " + to_string(stored.shape) + ", which does not fit the file's " +
                    std::to_string(most) + " bytes");
  if (elements(viewed) != stored.size)
    throw DataError(what + " has shape " + to_string(stored.shape) + " and cannot be viewed in shape " +
                    to_string(viewed) + ": both must have as many elements");
  if (axes.empty())
    for (Index axis = 0; axis < std::ssize(viewed); ++axis) axes.push_back(axis);
  bool permutes = axes.size() == viewed.size();
  for (Index axis = 0; permutes && axis < std::ssize(axes); ++axis)
    permutes = std::find(axes.begin(), axes.end(), axis) != axes.end();
  if (!permutes)
    throw DataError(what + " has shape " + to_string(viewed) + ", and axes " + to_string(axes) +
                    " do not name each of its axes once; return axes only for tensors that have them, such as weights");
  for (auto const axis : axes) shape.push_back(viewed[static_cast<std::size_t>(axis)]);
  auto needed = entry.shape;
  if (needed.empty()) needed.push_back(1);
  auto const is_count = [](Index count) { return count >= 0 && count <= std::numeric_limits<Index>::max() / 4; };
  bool const counts = is_count(from.rows_before) && is_count(from.rows_after);
  if (counts) needed[0] += from.rows_before + from.rows_after;
  // A view may merge the axes after the first: PyTorch flattens an image to [rows, channels * height * width].
  bool const fits = from.shape.empty() ? without_ones(shape) == without_ones(needed)
                                       : !shape.empty() && shape[0] == needed[0] && elements(shape) == elements(needed);
  if (!fits || !counts)
    throw DataError(what + " has shape " + to_string(shape) + (from.axes.empty() ? "" : " with axes permuted") +
                    "; the model needs " + to_string(needed) + ", with " + std::to_string(from.rows_before) +
                    " rows before its parameter and " + std::to_string(from.rows_after) + " after it");
  pieces = {.count = entry.size > 0 ? 1 : 0, .length = stored.size};
  // The parameter's rows are a range of one axis of the tensor: pieces of equal length, at equal distances.
  if (entry.size > 0 && from.rows_before + from.rows_after > 0) {
    auto const rows = needed[0] - from.rows_before - from.rows_after;
    auto const first = std::find(shape.begin(), shape.end(), needed[0]);  // others before it have the extent 1
    auto const axis = static_cast<std::size_t>(axes[static_cast<std::size_t>(first - shape.begin())]);
    Index inner = 1;
    for (auto k = axis + 1; k < viewed.size(); ++k) inner *= viewed[k];
    pieces = {stored.size / viewed[axis] / inner, from.rows_before * inner, rows * inner, viewed[axis] * inner};
    viewed[axis] = *first = rows;
  }
  return out;
}

LOCKSTEP_COLD_INLINE bool SafetensorsFile::Placement::in_order() const {
  return std::is_sorted(axes.begin(), axes.end());
}

template <class Function>
void SafetensorsFile::Placement::for_each(Function const& f) const {
  std::vector<Index> strides(viewed.size(), 1), at(shape.size());  // of the pieces; index in the parameter
  for (std::size_t k = viewed.size(); k-- > 1;) strides[k - 1] = strides[k] * viewed[k];
  for (Index i = 0; i < pieces.count * pieces.length; ++i) {
    Index source = 0;
    for (std::size_t k = 0; k < at.size(); ++k) source += at[k] * strides[static_cast<std::size_t>(axes[k])];
    f(static_cast<std::size_t>(i), static_cast<std::size_t>(source));
    for (std::size_t k = at.size(); k-- > 0 && ++at[k] == shape[k];) at[k] = 0;
  }
}

LOCKSTEP_COLD_INLINE void SafetensorsFile::read_part(std::string const& path, TensorInFile const& from,
                                                     nn::ParameterLayout::Entry const& entry,
                                                     std::span<float> out) const {
  auto const placement =
      place(path + ": parameter \"" + from.name + "\"", from, shape_of(path, from.name), data_bytes, entry);
  if (checksums.find(from.name))
    read_tensor(path, from.name, placement.stored, {});  // compares the sum of the whole tensor
  auto const found = tensor(path, from.name, placement.stored);
  bool const in_order = placement.in_order();
  std::vector<float> read(in_order ? 0 : out.size());
  read_pieces(path, from.name, found, placement.pieces, in_order ? out : std::span<float>(read));
  if (!in_order && !out.empty()) placement.for_each([&](std::size_t i, std::size_t k) { out[i] = read[k]; });
}

LOCKSTEP_COLD_INLINE void SafetensorsFile::read_pieces(std::string const& path, std::string const& name,
                                                       Tensor const& from, Pieces const& pieces,
                                                       std::span<float> out) const {
  constexpr std::size_t most = std::size_t{1} << 18;
  auto const length = static_cast<std::size_t>(pieces.length);
  std::vector<std::byte> room(std::min(length * from.width, most));
  for (Index i = 0; i < pieces.count; ++i) {
    auto const begin = static_cast<std::size_t>(pieces.first + i * pieces.stride) * from.width;
    auto const to = out.empty() ? out : out.subspan(static_cast<std::size_t>(i) * length, length);
    read_bytes(path, name, from, begin, length * from.width, room, to);
  }
}

LOCKSTEP_COLD_INLINE void SafetensorsFile::read_bytes(std::string const& path, std::string const& name,
                                                      Tensor const& from, std::size_t begin, std::size_t bytes,
                                                      std::span<std::byte> room, std::span<float> out,
                                                      RunningChecksum* sum) const {
  for (std::size_t at = 0; at < bytes; at += room.size()) {
    auto const piece = room.first(std::min(room.size(), bytes - at));
    take(path, from.begin + static_cast<Index>(begin + at), piece);
    if (sum) sum->add(piece);
    if (from.type == "F64") expect_float_range(path, name, piece);
    if (from.type == "I64") expect_exact_integers(path, name, piece);
    if (!out.empty()) from.widen(piece, out.subspan(at / from.width, piece.size() / from.width));
  }
}

LOCKSTEP_COLD_INLINE void SafetensorsFile::read_tensor(std::string const& path, std::string const& name,
                                                       nn::ParameterLayout::Entry const& entry,
                                                       std::span<float> out) const {
  constexpr std::size_t most = std::size_t{1} << 18;
  auto const found = tensor(path, name, entry);
  std::vector<std::byte> room(std::min(found.bytes, most));
  RunningChecksum running;
  read_bytes(path, name, found, 0, found.bytes, room, out, &running);
  check_sum(path, name, running.sum());
}

LOCKSTEP_INLINE void SafetensorsFile::Tensor::widen(std::span<std::byte const> piece, std::span<float> out) const {
  if (type == "F16") return lockstep::widen<float16>(piece, out);
  if (type == "BF16") return lockstep::widen<bfloat16>(piece, out);
  if (type == "F64") return narrow<double>(piece, out);
  if (type == "I64") return narrow<std::int64_t>(piece, out);
  std::memcpy(out.data(), piece.data(), piece.size());
}

template <class Number>
void SafetensorsFile::Tensor::narrow(std::span<std::byte const> piece, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Number number = 0;
    std::memcpy(&number, piece.data() + i * sizeof number, sizeof number);
    out[i] = static_cast<float>(number);
  }
}

LOCKSTEP_COLD_INLINE void SafetensorsFile::expect_float_range(std::string const& path, std::string const& name,
                                                              std::span<std::byte const> doubles) {
  for (std::size_t at = 0; at < doubles.size(); at += sizeof(double)) {
    double number = 0;
    std::memcpy(&number, doubles.data() + at, sizeof number);
    if (std::isfinite(number) && std::abs(number) > static_cast<double>(std::numeric_limits<float>::max()))
      throw DataError(path + ": parameter \"" + name +
                      "\" has a number beyond the range of float32"
                      ", and would be infinite; scale the parameters");
  }
}

LOCKSTEP_COLD_INLINE void SafetensorsFile::expect_exact_integers(std::string const& path, std::string const& name,
                                                                 std::span<std::byte const> integers) {
  for (std::size_t at = 0; at < integers.size(); at += sizeof(std::int64_t)) {
    std::int64_t number = 0;
    std::memcpy(&number, integers.data() + at, sizeof number);
    if (number < -(std::int64_t{1} << 24) || number > std::int64_t{1} << 24)
      throw DataError(path + ": parameter \"" + name + "\" has the integer " + std::to_string(number) +
                      "; it is read as float32, in which integers are exact up to 2^24");
  }
}

LOCKSTEP_COLD_INLINE void SafetensorsFile::check_sum(std::string const& path, std::string const& name,
                                                     Checksum const& found) const {
  auto const* const sum = checksums.find(name);
  if (sum && sum->string() != to_string(found))
    throw DataError(path + ": parameter \"" + name +
                    "\" does not have the checksum that it was saved with: a disk or a copy has changed bits, so use "
                    "another file, such as the checkpoint before it; a program that changes parameters must remove the "
                    "metadata's " +
                    std::string(checksums_key));
}

LOCKSTEP_COLD_INLINE std::vector<Index> SafetensorsFile::without_ones(std::vector<Index> shape) {
  std::erase(shape, Index{1});
  return shape;
}

/// Returns the part of the model that a parameter belongs to: "head." for "head.weight".
inline std::string part_of(std::string const& name) {
  auto const dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot + 1);
}

LOCKSTEP_COLD_INLINE char const* SafetensorsFile::remedy_for_shape(std::vector<Index> const& shape,
                                                                   std::vector<Index> const& needed_shape) const {
  auto const stored = without_ones(shape), needed = without_ones(needed_shape);
  bool const of_another_program = checksums.value.object().empty();
  if (of_another_program && stored.size() == needed.size() && stored.size() >= 2 &&
      std::is_permutation(stored.begin(), stored.end(), needed.begin()))
    return shape.size() == 2 ? "its axes have another order, so pass load a function of names that returns a "
                               "train::TensorInFile{.name = …, .axes = {1, 0}} for it"
                             : "its axes have another order, so pass load a function of names that returns a "
                               "train::TensorInFile{.name = …, .axes = …} for it, with the file's axis for each axis "
                               "of the parameter";
  if (of_another_program && stored.size() == needed.size() && !stored.empty() && needed[0] > 0 &&
      stored[0] > needed[0] && stored[0] % needed[0] == 0 &&
      std::equal(stored.begin() + 1, stored.end(), needed.begin() + 1))
    return "if it also has the rows of other parameters, such as query, key and value in one tensor, pass load a "
           "function of names that returns a train::TensorInFile{.name = …, .rows_before = …, .rows_after = …} for it; "
           "otherwise make the model with the sizes of the run that saved it";
  return "make it with the sizes of the run that saved it, such as the same vocabulary";
}

LOCKSTEP_COLD_INLINE std::vector<Index> SafetensorsFile::shape_of(std::string const& path,
                                                                  std::string const& name) const {
  auto const* tensor = header.find(name);
  if (!tensor)
    throw DataError(path + ": has no parameter \"" + name + "\"; it was saved from another model" + other_name(name));
  std::vector<Index> shape;
  for (auto const& extent : tensor->at("shape").array()) shape.push_back(extent.integer());
  return shape;
}

LOCKSTEP_COLD_INLINE SafetensorsFile::Tensor SafetensorsFile::tensor(std::string const& path, std::string const& name,
                                                                     nn::ParameterLayout::Entry const& entry) const {
  auto const shape = shape_of(path, name);
  auto const* tensor = header.find(name);
  auto const what = path + ": parameter \"" + name + "\"";
  auto const& type = tensor->at("dtype").string();
  auto const width = element_bytes(type);
  if (width == 0) throw DataError(what + " is of type " + type + "; F32, F16, BF16, F64 or I64 is needed");
  if (without_ones(shape) != without_ones(entry.shape))
    throw DataError(what + " has shape " + to_string(shape) + "; the model needs " + to_string(entry.shape) + ": " +
                    remedy_for_shape(shape, entry.shape) +
                    (has_fewer_rows(shape, entry.shape) ? "; a trainer can load these rows as the first of more, by "
                                                          "NamesInFile().with_new_rows(\"" +
                                                              part_of(entry.name) + "\")"
                                                        : ""));
  auto const begin = tensor->at("data_offsets").at(std::size_t{0}).integer(),
             end = tensor->at("data_offsets").at(std::size_t{1}).integer();
  Index const bytes = entry.size * static_cast<Index>(width);
  auto const place = what + " is at bytes [" + std::to_string(begin) + ", " + std::to_string(end) + ")";
  if (begin < 0 || end < begin || end - begin != bytes)
    throw DataError(place + " of " + std::to_string(data_bytes) + "; " + std::to_string(bytes) +
                    " bytes inside the file are needed");
  if (end > data_bytes)
    throw DataError(place + ", and the file ends with " + std::to_string(data_bytes) +
                    ": it is cut off; take another, such as the checkpoint before it");
  return {data_begin + begin, static_cast<std::size_t>(bytes), width, type};
}

LOCKSTEP_COLD_INLINE std::string SafetensorsFile::other_name(std::string const& name) const {
  auto const is_part = [](std::string_view part, std::string_view whole) {
    return part.size() < whole.size() && whole.ends_with(part) && whole[whole.size() - part.size() - 1] == '.';
  };
  for (auto const& [other, tensor] : header.value.object())
    if (is_part(other, name) || is_part(name, other))
      return ", but has \"" + std::string(other) + "\": load(path, prefix, in_file) reads one as the other";
  std::vector<std::string> names;
  for (auto const& [other, tensor] : header.value.object())
    if (other != "__metadata__") names.emplace_back(other);
  if (names.empty()) return {};
  return "; the nearest is \"" + nearest(name, names) +
         "\": if only names differ, pass a function of names to load(path, names)";
}

}}}  // namespace lockstep::train::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_COLD_INLINE Metadata load_parameters(std::string const& path, nn::ParameterLayout const& layout,
                                              std::span<float> values, std::span<float> buffers,
                                              NamesInFile const& names) {
  detail::check_arenas("load_parameters", layout, values.size(), buffers.size());
  return json::with_file_name(path, [&] {
    detail::SafetensorsFile const file(path);
    file.read(path, layout, values.data(), buffers.data(), {}, names);
    return file.texts();
  });
}

LOCKSTEP_COLD_INLINE std::string load_text(std::string const& path, std::string_view name) {
  std::string names;
  auto const texts = json::with_file_name(path, [&] { return detail::SafetensorsFile(path).metadata(); });
  for (auto const& [each, text] : texts) {
    if (each == name) return text;
    if (!detail::is_reserved(each)) names += (names.empty() ? "" : ", ") + each;
  }
  throw DataError(path + ": no string \"" + std::string(name) + "\" was saved with the parameters; " +
                  (names.empty() ? "none was" : "there are: " + names));
}

}}}  // namespace lockstep::train
