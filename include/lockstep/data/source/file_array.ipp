// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/file_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE std::string NumberType::name() const {
  if (kind == 'b') return "bool";
  if (kind == 'B') return "bfloat16";
  return (kind == 'f' ? "float" : kind == 'i' ? "int" : "uint") + std::to_string(bytes * 8);
}

LOCKSTEP_INLINE FileArray::FileArray(std::shared_ptr<detail::DataFile const> file, NumberType type,
                                     std::vector<Index> shape, std::uint64_t offset, Order order, std::string name)
    : file_(std::move(file)), type_(type), shape_(std::move(shape)), offset_(offset), order_(order) {
  if (shape_.empty()) file_->fail(name + " is a single number; an array of rows is needed");
  auto bytes = static_cast<Index>(type_.bytes);
  for (std::size_t axis = shape_.size(); axis-- > 0;) {
    if (axis == 0) row_bytes_ = bytes;
    if (shape_[axis] < 0 || __builtin_mul_overflow(bytes, shape_[axis], &bytes)) {
      file_->fail(name + " has the extents " + extents() + ", which no memory can hold; the file is damaged");
    }
  }
  file_->require_range(offset_, static_cast<std::uint64_t>(bytes), name);
}

LOCKSTEP_INLINE FileArray FileArray::mapped(MappedReads const&) const {
  auto out = *this;
  out.mapping_ = std::make_shared<detail::FileMapping const>(file_);
  return out;
}

LOCKSTEP_INLINE FileArray FileArray::reshape(std::vector<Index> shape) const {
  auto out = *this;
  out.shape_ = std::move(shape);
  Index numbers = 1;
  bool fits = !out.shape_.empty();
  for (auto const extent : out.shape_) fits = fits && extent >= 0 && !__builtin_mul_overflow(numbers, extent, &numbers);
  if (!fits || numbers != rows() * width())
    file_->fail("has " + std::to_string(rows() * width()) + " numbers " + extents() + ", and " + out.extents() +
                " has another number of them; reshape to as many");
  out = FileArray(file_, type_, std::move(out.shape_), offset_, order_);
  out.mapping_ = mapping_;
  return out;
}

LOCKSTEP_INLINE std::uint64_t FileArray::fingerprint() const {
  auto hash = mix(file_->fingerprint(), offset_);
  for (auto const extent : shape_) hash = mix(hash, static_cast<std::uint64_t>(extent));
  return hash;
}

LOCKSTEP_INLINE std::string FileArray::extents() const {
  std::string out = "[";
  for (auto const extent : shape_) out += (out.size() > 1 ? ", " : "") + std::to_string(extent);
  return out + "]";
}

LOCKSTEP_INLINE void FileArray::expect_rows(Index first, Index numbers) const {
  auto const each = width(), count = each == 0 ? 0 : numbers / each;
  if (count * each != numbers) {
    file_->fail("has rows of " + std::to_string(each) + " numbers " + extents() + ", but " + std::to_string(numbers) +
                " numbers were requested; read whole rows");
  }
  if (first < 0 || first > rows() - count) {
    file_->fail("has " + std::to_string(rows()) + " rows " + extents() + ", but " + std::to_string(count) +
                " were requested from row " + std::to_string(first));
  }
}

}}}  // namespace lockstep::data
