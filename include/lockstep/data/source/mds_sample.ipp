// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/mds_sample.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE NumberType mds_type(std::string_view encoding) {
  if (encoding.starts_with("ndarray:")) {
    encoding.remove_prefix(8);
    auto const colon = encoding.find(':');
    if (colon == std::string_view::npos) return {'?', 0};  // arrays of any shape have a header
    encoding = encoding.substr(0, colon);
  }
  if (encoding == "int") return {'i', 8};
  for (auto const bytes : {1, 2, 4, 8})
    for (char const kind : {'i', 'u', 'f'})
      if (NumberType const type{kind, bytes}; encoding == type.name() && !(kind == 'f' && bytes == 1)) return type;
  return {'?', 0};
}

}}}  // namespace lockstep::data::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE MdsSample::MdsSample(Columns columns, std::vector<std::byte> data, std::string where)
    : columns_(std::move(columns)), data_(std::move(data)) {
  std::size_t at = 0;
  auto const number = [&] {
    std::uint32_t out = 0;
    if (data_.size() - at < sizeof out) fail(where, "has no room for its sizes");
    std::memcpy(&out, data_.data() + at, sizeof out);
    at += sizeof out;
    return out;
  };
  std::vector<std::uint32_t> sizes;
  for (auto const& column : *columns_) sizes.push_back(column.bytes > 0 ? column.bytes : number());
  for (auto const size : sizes) {
    if (data_.size() - at < size) fail(where, "has values that reach beyond its end");
    values_.push_back({at, size});
    at += size;
  }
  if (at != data_.size()) fail(where, "is longer than its values");
}

LOCKSTEP_INLINE std::size_t MdsSample::heap_bytes() const noexcept {
  return data_.capacity() + values_.capacity() * sizeof(values_[0]);
}

LOCKSTEP_INLINE std::span<std::byte const> MdsSample::bytes(std::string_view column) const {
  auto const& [at, size] = values_[find(column)];
  return {data_.data() + at, size};
}

LOCKSTEP_INLINE std::string_view MdsSample::text(std::string_view column) const {
  if (auto const& encoding = (*columns_)[find(column)].encoding; encoding != "str") refuse(column, encoding, "str");
  auto const value = bytes(column);
  return {reinterpret_cast<char const*>(value.data()), value.size()};
}

LOCKSTEP_INLINE std::size_t MdsSample::find(std::string_view column) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < columns_->size(); ++i) {
    if ((*columns_)[i].name == column) return i;
    names.push_back((*columns_)[i].name);
  }
  auto const near = nearest(column, names);
  throw DataError("MdsSample: there is no column \"" + std::string(column) + "\"" +
                  (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

LOCKSTEP_INLINE void MdsSample::fail(std::string const& where, char const* why) {
  throw DataError(where + ": the sample " + why + "; the shard is damaged, write it again");
}

LOCKSTEP_INLINE void MdsSample::refuse(std::string_view column, std::string const& encoding,
                                       std::string const& wanted) {
  throw DataError("MdsSample: \"" + std::string(column) + "\" has the encoding " + encoding + ", but " + wanted +
                  " was requested; request its encoding, or its bytes");
}

}}}  // namespace lockstep::data
