// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/detail/npy_header.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE NpyHeader::NpyHeader(DataFile const& file, std::string_view text) : file_(file), text_(text) {
  take('{');
  while (!try_take('}')) {
    auto const key = quoted();
    take(':');
    if (key == "descr") {
      expect_first(has_type_, key);
      if (try_take('['))
        fail("its elements are records of several fields (a structured dtype); save each field as an array of its own");
      descr(quoted());
    } else if (key == "fortran_order") {
      expect_first(has_order_, key);
      auto const value = word();
      if (value != "False" && value != "True") fail("its header has the fortran_order " + excerpt(value));
      by_columns_ = value == "True";
    } else if (key == "shape") {
      expect_first(has_shape_, key);
      tuple();
    } else {
      fail("its header has the key " + excerpt(key) + ", which is not one of descr, fortran_order and shape");
    }
    if (!try_take(',')) {
      take('}');
      break;
    }
  }
  space();
  if (at_ < text_.size()) fail("its header continues after its closing brace, at character " + std::to_string(at_));
  if (!has_type_ || !has_shape_) fail("its header lacks descr or shape");
  // An array with at most one extent other than 1 has the same bytes in both orders.
  if (by_columns_ && std::count_if(shape.begin(), shape.end(), [](Index extent) { return extent != 1; }) > 1)
    fail("its numbers are stored column by column (fortran_order); save np.ascontiguousarray(...)");
}

LOCKSTEP_INLINE void NpyHeader::expect_first(bool& had, std::string_view key) const {
  if (had) fail("its header has the key " + excerpt(key) + " twice");
  had = true;
}

LOCKSTEP_INLINE void NpyHeader::descr(std::string_view text) {
  if (text == "<V2") {  // bfloat16 of ml_dtypes (JAX, TensorFlow); numpy writes its own two bytes as "|V2"
    type = {'B', 2};
    return;
  }
  auto const size = text.size() >= 3 ? text.substr(2) : std::string_view{};
  auto const [end, error] = std::from_chars(size.data(), size.data() + size.size(), type.bytes);
  bool const sized = error == std::errc{} && end == size.data() + size.size();
  type.kind = text.size() >= 3 ? text[1] : '?';
  bool const known = type.kind == 'b' ? type.bytes == 1
                     : type.kind == 'f'
                         ? type.bytes == 2 || type.bytes == 4 || type.bytes == 8
                         : (type.kind == 'i' || type.kind == 'u') &&
                               (type.bytes == 1 || type.bytes == 2 || type.bytes == 4 || type.bytes == 8);
  if (!sized || !known || std::string_view("<>|=").find(text[0]) == std::string_view::npos) {
    fail("its numbers are of the type " + excerpt(text) + "; bool, integers and floats of 2 to 8 bytes can be read" +
         (text == "|V2" ? ", and bfloat16 as ml_dtypes saves it, \"<V2\"" : ""));
  }
  if (text[0] == '>') order = FileArray::Order::swapped;
}

LOCKSTEP_INLINE void NpyHeader::tuple() {
  take('(');
  while (!try_take(')')) {
    auto const digits = word();
    Index extent = -1;
    auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), extent);
    if (error != std::errc{} || end != digits.data() + digits.size() || extent < 0)
      fail("its shape has the extent " + excerpt(digits));
    shape.push_back(extent);
    if (!try_take(',')) {
      take(')');
      break;
    }
  }
}

LOCKSTEP_INLINE void NpyHeader::space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
}

LOCKSTEP_INLINE bool NpyHeader::try_take(char c) {
  space();
  bool const there = at_ < text_.size() && text_[at_] == c;
  at_ += there;
  return there;
}

LOCKSTEP_INLINE void NpyHeader::take(char c) {
  if (!try_take(c)) fail(std::string("its header has no '") + c + "' at character " + std::to_string(at_));
}

LOCKSTEP_INLINE std::string_view NpyHeader::quoted() {
  take('\'');
  auto const end = text_.find('\'', at_);
  if (end == std::string_view::npos) fail("its header has a quote that does not close");
  auto const out = text_.substr(at_, end - at_);
  at_ = end + 1;
  return out;
}

LOCKSTEP_INLINE std::string_view NpyHeader::word() {
  space();
  auto const end = std::min(text_.find_first_of(" ,)}", at_), text_.size());
  auto const out = text_.substr(at_, end - at_);
  at_ = end;
  return out;
}

LOCKSTEP_INLINE FileArray npy_at(std::shared_ptr<DataFile const> file, std::uint64_t begin, std::uint64_t room,
                                 std::string const& name) {
  if (room < 10 || file->read_text(begin, 6, "the magic number") != "\x93NUMPY")
    file->fail(name + " does not begin as a .npy file does");
  auto const version = file->read_number<std::uint8_t>(begin + 6);
  if (version < 1 || version > 3)
    file->fail(name + " is of .npy version " + std::to_string(version) + "; 1 to 3 can be read");
  auto const wide = version > 1;
  auto const text_at = begin + (wide ? 12 : 10);
  auto const length = wide ? file->read_number<std::uint32_t>(begin + 8) : file->read_number<std::uint16_t>(begin + 8);
  file->require_range(text_at, length, "the header");
  if (text_at + length - begin > room) file->fail(name + " is larger than its place in the file");
  auto const text = file->read_claimed_text(text_at, length, NpyHeader::max_bytes, "the header");
  NpyHeader header(*file, text);
  auto const data = text_at + length;
  FileArray out(file, header.type, std::move(header.shape), data, header.order, name);
  auto const used = data - begin;
  auto const bytes = static_cast<std::uint64_t>(out.rows() * out.width() * out.type().bytes);
  if (bytes > room - used) file->fail(name + " is larger than its place in the file");
  if (bytes < room - used)
    file->fail(name + " of shape " + out.extents() + " is followed by " + std::to_string(room - used - bytes) +
               " other bytes; its header is damaged, or another array follows, and only one is read: use .npz for "
               "several");
  return out;
}

}}}  // namespace lockstep::data::detail
