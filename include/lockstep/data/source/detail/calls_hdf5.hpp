// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_HDF5)
#include <hdf5.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/data/source/file_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// The right to call the HDF5 library, which serves one thread at a time. The library prints no messages meanwhile.
class Hdf5Call {
 public:
  Hdf5Call() {
    ::H5Eget_auto2(H5E_DEFAULT, &print_, &argument_);
    ::H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  Hdf5Call(Hdf5Call const&) = delete;
  Hdf5Call& operator=(Hdf5Call const&) = delete;
  ~Hdf5Call() { ::H5Eset_auto2(H5E_DEFAULT, print_, argument_); }

  /// Returns the library's reason for the last failure, in its own words.
  [[nodiscard]] static std::string reason() {
    std::string out;
    auto const innermost = [](unsigned, ::H5E_error2_t const* error, void* to) -> ::herr_t {
      static_cast<std::string*>(to)->assign(error->desc == nullptr ? "" : error->desc);
      return 1;  // ends the walk
    };
    ::H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &out);
    return out.empty() ? "the HDF5 library gives no reason" : out;
  }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }

  std::lock_guard<std::mutex> lock_{mutex()};
  ::H5E_auto2_t print_ = nullptr;
  void* argument_ = nullptr;
};

/// Owns an object of the HDF5 library, and closes it. Lives within a Hdf5Call.
class [[nodiscard]] Hdf5Object {
 public:
  /// @param id negative if there is no object
  Hdf5Object(::hid_t id, ::herr_t (*close)(::hid_t)) noexcept : id_(id), close_(close) {}
  Hdf5Object(Hdf5Object&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Object& operator=(Hdf5Object&&) = delete;
  ~Hdf5Object() {
    if (id_ >= 0) close_(id_);
  }

  [[nodiscard]] ::hid_t get() const noexcept { return id_; }
  [[nodiscard]] bool exists() const noexcept { return id_ >= 0; }

 private:
  ::hid_t id_;
  ::herr_t (*close_)(::hid_t);
};

/// Type and byte order of a dataset's numbers.
struct Hdf5Numbers {
  NumberType type;
  FileArray::Order order = FileArray::Order::native;
};

/// Whether `type` is h5py's bool: an enum of one byte with FALSE = 0 and TRUE = 1.
inline bool is_hdf5_bool(::hid_t type) {
  auto const value_of = [&](char const* name) {
    std::int8_t value = -1;
    return ::H5Tenum_valueof(type, name, &value) < 0 ? -1 : static_cast<int>(value);
  };
  return ::H5Tget_size(type) == 1 && ::H5Tget_nmembers(type) == 2 && value_of("FALSE") == 0 && value_of("TRUE") == 1;
}

/// Returns the type if a C++ number has it, with all of its bits. An enum has its underlying type.
inline std::optional<Hdf5Numbers> hdf5_numbers(::hid_t type) {
  if (::H5Tget_class(type) == H5T_ENUM) {
    if (is_hdf5_bool(type)) return Hdf5Numbers{{'b', 1}};
    Hdf5Object const underlying(::H5Tget_super(type), ::H5Tclose);
    // The library reads as many bytes as the enum has, and accepts an enum of another size than its numbers.
    if (::H5Tget_size(underlying.get()) != ::H5Tget_size(type)) return {};
    return hdf5_numbers(underlying.get());
  }
  auto const bytes = ::H5Tget_size(type);
  auto const order = ::H5Tget_order(type);
  if ((order != H5T_ORDER_LE && order != H5T_ORDER_BE) || ::H5Tget_precision(type) != 8 * bytes) return {};
  Hdf5Numbers out{{'f', static_cast<int>(bytes)}};
  if (order != ::H5Tget_order(H5T_NATIVE_INT)) out.order = FileArray::Order::swapped;
  if (::H5Tget_class(type) == H5T_INTEGER) {
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return {};
    out.type.kind = ::H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i';
    return out;
  }
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  if (::H5Tget_class(type) != H5T_FLOAT ||
      ::H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0)
    return {};
  auto const is = [&](std::size_t size, std::size_t exponents, std::size_t mantissas) {
    return bytes == size && exponent_bits == exponents && mantissa_bits == mantissas && mantissa == 0 &&
           exponent == mantissas && sign == mantissas + exponents;
  };
  if (is(2, 8, 7)) out.type.kind = 'B';
  return is(2, 8, 7) || is(2, 5, 10) || is(4, 8, 23) || is(8, 11, 52) ? std::optional(out) : std::nullopt;
}

/// Returns the extents of a dataset; none for a single number.
inline std::vector<Index> hdf5_extents(::hid_t dataset) {
  Hdf5Object const space(::H5Dget_space(dataset), ::H5Sclose);
  std::vector<::hsize_t> extents(static_cast<std::size_t>(std::max(0, ::H5Sget_simple_extent_ndims(space.get()))));
  ::H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  std::vector<Index> out;
  for (auto const extent : extents) out.push_back(static_cast<Index>(extent));
  return out;
}

/// Whether the numbers of a dataset are in other files than its description.
inline bool is_hdf5_elsewhere(::hid_t dataset) {
  Hdf5Object const created(::H5Dget_create_plist(dataset), ::H5Pclose);
  return ::H5Pget_layout(created.get()) == H5D_VIRTUAL || ::H5Pget_external_count(created.get()) > 0;
}

/// Returns where the numbers of a dataset are in the file, if they are contiguous and were written.
inline std::optional<std::uint64_t> hdf5_offset(::hid_t dataset) {
  Hdf5Object const created(::H5Dget_create_plist(dataset), ::H5Pclose);
  if (::H5Pget_layout(created.get()) != H5D_CONTIGUOUS) return {};
  auto const offset = ::H5Dget_offset(dataset);
  return offset == HADDR_UNDEF ? std::nullopt : std::optional<std::uint64_t>(offset);
}

}}}  // namespace lockstep::data::detail
#endif
