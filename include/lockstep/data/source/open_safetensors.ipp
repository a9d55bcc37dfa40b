// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/open_safetensors.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE NumberType safetensors_type(std::string_view name) noexcept {
  if (name == "BOOL") return {'b', 1};
  if (name == "BF16") return {'B', 2};
  for (auto const bits : {8, 16, 32, 64}) {
    auto const digits = std::to_string(bits);
    if (name == "I" + digits) return {'i', bits / 8};
    if (name == "U" + digits) return {'u', bits / 8};
    if (name == "F" + digits && bits > 8) return {'f', bits / 8};
  }
  return {'?', 0};
}

}}}  // namespace lockstep::data::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE FileArray open_safetensors(std::string const& path, std::string_view name) {
  auto file = std::make_shared<detail::DataFile const>(path);
  auto const length = file->read_number<std::uint64_t>(0);
  auto const text = file->read_claimed_text(8, length, max_safetensors_header, "the header");
  auto const header = json::parse(text, path);
  return json::with_file_name(path, [&] {
    auto const* const tensor = name == "__metadata__" ? nullptr : header.find(name);
    if (!tensor) {
      std::vector<std::string> names;
      for (auto const& [each, value] : header.object())
        if (each != "__metadata__") names.push_back(each);
      auto const near = nearest(name, names);
      file->fail("has no tensor \"" + std::string(name) + "\" among its " + std::to_string(names.size()) +
                 (near.empty() ? "" : "; did you mean \"" + std::string(near) + "\"?"));
    }
    auto const& dtype = tensor->at("dtype").string();
    auto const type = detail::safetensors_type(dtype);
    if (type.bytes == 0) file->fail("\"" + std::string(name) + "\" is of the type " + dtype + ", which cannot be read");
    std::vector<Index> shape;
    for (auto const& extent : tensor->at("shape").array()) shape.push_back(extent.integer());
    auto const begin = tensor->at("data_offsets").at(0).integer(), end = tensor->at("data_offsets").at(1).integer();
    if (begin < 0 || end < begin) file->fail("\"" + std::string(name) + "\" has damaged offsets");
    FileArray out(file, type, std::move(shape), 8 + length + static_cast<std::uint64_t>(begin),
                  FileArray::Order::native, "\"" + std::string(name) + "\"");
    if (out.rows() * out.width() * type.bytes != end - begin) {
      file->fail("\"" + std::string(name) + "\" has the shape " + out.extents() + " and " +
                 std::to_string(end - begin) + " bytes, which disagree; the file is damaged");
    }
    check_safetensors_layout(path, header, file->size() - 8 - length);
    return out;
  });
}

}}}  // namespace lockstep::data
