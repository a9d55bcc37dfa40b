// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/free_memory.hpp>
#include <lockstep/core/nearest.hpp>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/core/utf8.hpp>
#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/source/detail/calls_hdf5.hpp>
#include <lockstep/data/source/file_array.hpp>
#include <lockstep/data/source/in_memory_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

#if defined(LOCKSTEP_HDF5)

/// An HDF5 file with datasets by name, as h5py writes them. A name is a path such as "episode_0/observations".
/// The file is opened without the library's lock, which some network file systems refuse, and which another process
/// that writes would hold. Do not write to the file while it is read. Copies share the open file. Thread-safe.
/// Open only files that you trust: the HDF5 library, which reads everything but the numbers of contiguous datasets, is
/// not hardened against damaged files.
class Hdf5File {
 public:
  /// Opens the file.
  /// @throws DataError if it is no HDF5 file, or damaged
  explicit Hdf5File(std::string const& path);

  /// Returns the path of the file.
  [[nodiscard]] std::string const& path() const noexcept { return file_->path(); }
  /// Returns the names of all datasets, by bytes: "a10" is before "a2". Does not follow links.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Returns whether the file has a dataset of this name.
  [[nodiscard]] bool has(std::string_view name) const;
  /// Returns the extents of a dataset, without reading it; none for a single value.
  /// @throws DataError if the file has no such dataset
  [[nodiscard]] std::vector<Index> shape(std::string_view name) const;
  /// Returns the type of a dataset's numbers, without reading them.   @throws DataError as `array`
  [[nodiscard]] NumberType type(std::string_view name) const;
  /// Returns a dataset of numbers. Rows of a contiguous dataset are read from the file in place, by any number of
  /// threads at once. Any other dataset, for example a chunked or compressed one, is read into memory as a whole:
  /// `h5repack -l NAME:CONTI -f NAME:NONE` makes it contiguous.
  /// @throws DataError if the file has no such dataset, it is damaged or in another file, its elements are not
  /// integers, bools or floats, or a filter is missing
  /// @throws OutOfMemoryError if the dataset is read into memory and needs more than is free
  [[nodiscard]] FileArray array(std::string_view name) const;
  /// Returns a dataset of strings, in row-major order; fixed-length ones end at the first zero byte.
  /// @throws DataError if the file has no such dataset, its elements are no strings, one is not UTF-8, or the strings
  /// do not fit the file
  /// @throws OutOfMemoryError if the strings need more memory than is free
  [[nodiscard]] std::vector<std::string> strings(std::string_view name) const;

 private:
  [[nodiscard]] std::vector<std::string> names_within_call() const;
  [[nodiscard]] detail::Hdf5Numbers numbers_of(::hid_t type, std::string const& name) const;
  /// Opens a dataset, which is in this file.
  [[nodiscard]] detail::Hdf5Object open(std::string const& name) const;
  [[noreturn]] void fail(std::string_view name, std::string const& why) const;

  std::shared_ptr<detail::DataFile const> file_;
  std::shared_ptr<::hid_t const> handle_;
};

/// Opens one dataset of an HDF5 file, by name.   @throws DataError, OutOfMemoryError as Hdf5File
[[nodiscard]] inline FileArray open_hdf5(std::string const& path, std::string_view name) {
  return Hdf5File(path).array(name);
}

inline Hdf5File::Hdf5File(std::string const& path) : file_(std::make_shared<detail::DataFile const>(path)) {
  detail::Hdf5Call const call;
  detail::Hdf5Object const access(::H5Pcreate(H5P_FILE_ACCESS), ::H5Pclose);
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 12 && H5_VERS_RELEASE == 0)
  ::H5Pset_file_locking(access.get(), false, true);
#endif
  auto const id = ::H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
  if (id < 0) file_->fail("cannot be opened as an HDF5 file: " + detail::Hdf5Call::reason());
  handle_ = std::shared_ptr<::hid_t const>(new ::hid_t(id), [](::hid_t const* handle) {
    detail::Hdf5Call const closing;
    ::H5Fclose(*handle);
    delete handle;
  });
}

inline std::vector<std::string> Hdf5File::names() const {
  detail::Hdf5Call const call;
  return names_within_call();
}

inline std::vector<std::string> Hdf5File::names_within_call() const {
  std::vector<std::string> out;
#if H5_VERSION_GE(1, 12, 0)
  using Object = ::H5O_info2_t;
  auto const visit = ::H5Ovisit3;
#else
  using Object = ::H5O_info_t;
  auto const visit = ::H5Ovisit2;
#endif
  auto const add = [](::hid_t, char const* name, Object const* object, void* to) -> ::herr_t {
    if (object->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  };
  if (visit(*handle_, H5_INDEX_NAME, H5_ITER_INC, add, &out, H5O_INFO_BASIC) < 0)
    file_->fail("has a damaged list of datasets: " + detail::Hdf5Call::reason());
  return out;
}

inline bool Hdf5File::has(std::string_view name) const {
  detail::Hdf5Call const call;
  return detail::Hdf5Object(::H5Dopen2(*handle_, std::string(name).c_str(), H5P_DEFAULT), ::H5Dclose).exists();
}

inline std::vector<Index> Hdf5File::shape(std::string_view name) const {
  detail::Hdf5Call const call;
  return detail::hdf5_extents(open(std::string(name)).get());
}

inline NumberType Hdf5File::type(std::string_view wanted) const {
  std::string const name(wanted);
  detail::Hdf5Call const call;
  auto const dataset = open(name);
  detail::Hdf5Object const type(::H5Dget_type(dataset.get()), ::H5Tclose);
  return numbers_of(type.get(), name).type;
}

inline FileArray Hdf5File::array(std::string_view wanted) const {
  std::string const name(wanted);
  detail::Hdf5Call const call;
  auto const dataset = open(name);
  detail::Hdf5Object const type(::H5Dget_type(dataset.get()), ::H5Tclose);
  auto const numbers = numbers_of(type.get(), name);
  auto const shape = detail::hdf5_extents(dataset.get());
  if (shape.empty()) fail(name, "is a single value; an array of rows is needed");
  if (auto const offset = detail::hdf5_offset(dataset.get()))
    return FileArray(file_, numbers.type, shape, *offset, numbers.order, "\"" + name + "\"");
  return in_memory_array(
      path(), numbers.type, shape,
      [&](std::span<std::byte> out) {
        if (::H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()) < 0)
          fail(name, "cannot be read: " + detail::Hdf5Call::reason());
      },
      "make \"" + name + "\" contiguous, which is read in place: h5repack -l " + name + ":CONTI -f " + name +
          ":NONE FILE NEW_FILE",
      numbers.order);
}

inline detail::Hdf5Numbers Hdf5File::numbers_of(::hid_t type, std::string const& name) const {
  auto const numbers = detail::hdf5_numbers(type);
  if (numbers) return *numbers;
  fail(name, ::H5Tget_class(type) == H5T_STRING
                 ? "holds strings; read them with strings(name)"
                 : "has elements that are no integers, bools or floats of C++; write numbers of one type, and each "
                   "field of a record as a dataset of its own");
}

inline std::vector<std::string> Hdf5File::strings(std::string_view wanted) const {
  std::string const name(wanted);
  detail::Hdf5Call const call;
  auto const dataset = open(name);
  detail::Hdf5Object const type(::H5Dget_type(dataset.get()), ::H5Tclose);
  if (::H5Tget_class(type.get()) != H5T_STRING) fail(name, "holds no strings");
  bool const variable = ::H5Tis_variable_str(type.get()) > 0;
  auto const width = variable ? sizeof(char*) : ::H5Tget_size(type.get());  // of a string as it is read
  std::size_t count = 1, needed = 0;
  bool fits = true;
  for (auto const extent : detail::hdf5_extents(dataset.get()))
    fits = fits && extent >= 0 && !__builtin_mul_overflow(count, static_cast<std::size_t>(extent), &count);
  if (!fits || __builtin_mul_overflow(count, width + sizeof(std::string), &needed))
    fail(name, "has extents that no memory can hold; the file is damaged");
  if (auto const offset = detail::hdf5_offset(dataset.get()); offset && !variable)
    file_->require_range(*offset, count * width, "dataset \"" + name + "\"");
  auto const who = path() + ": dataset \"" + name + "\"";
  if (auto const memory = FreeMemory::of_host(); memory && memory->free_bytes < needed)
    throw OutOfMemoryError(out_of_memory_message(who, needed));
  std::vector<std::string> out;
  auto const read = [&](void* to) {
    if (count > 0 && ::H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, to) < 0)
      fail(name, "cannot be read: " + detail::Hdf5Call::reason());
  };
  auto const add = [&](char const* text, std::size_t bytes) {
    out.emplace_back(text, text == nullptr ? 0 : ::strnlen(text, bytes));
    if (auto const good = utf8_prefix(out.back()); good < out.back().size())
      fail(name, "has a string that is not UTF-8: number " + std::to_string(out.size() - 1) + ", at byte " +
                     std::to_string(good) + "; write it as UTF-8");
  };
  auto const read_variable = [&] {
    std::vector<char*> texts(count);
    detail::Hdf5Object const space(::H5Dget_space(dataset.get()), ::H5Sclose);
    auto const reclaim = [&](std::vector<char*>* all) {
      ::H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, all->data());
    };
    std::unique_ptr<std::vector<char*>, decltype(reclaim)> const owner(&texts, reclaim);
    read(texts.data());
    for (auto const* text : texts) add(text, text == nullptr ? 0 : std::strlen(text));
  };
  auto const read_fixed = [&] {
    std::vector<char> texts(count * width);
    read(texts.data());
    for (std::size_t i = 0; i < count; ++i) add(texts.data() + i * width, width);
  };
  with_memory_for(who, needed, [&] { variable ? read_variable() : read_fixed(); });
  return out;
}

inline detail::Hdf5Object Hdf5File::open(std::string const& name) const {
  detail::Hdf5Object dataset(::H5Dopen2(*handle_, name.c_str(), H5P_DEFAULT), ::H5Dclose);
  if (!dataset.exists()) {
    auto const all = names_within_call();
    auto const near = nearest(name, all);
    file_->fail("has no dataset \"" + name + "\" among its " + std::to_string(all.size()) +
                (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  auto const file_of = [](::hid_t object) {
    std::string out(static_cast<std::size_t>(std::max<::ssize_t>(0, ::H5Fget_name(object, nullptr, 0))), '\0');
    ::H5Fget_name(object, out.data(), out.size() + 1);
    return out;
  };
  if (auto const other = file_of(dataset.get()); other != file_of(*handle_))
    fail(name, "is a link to the file " + other + "; open that file");
  if (detail::is_hdf5_elsewhere(dataset.get()))
    fail(name, "has its numbers in other files (a virtual dataset, or external storage); copy them into one file");
  return dataset;
}

inline void Hdf5File::fail(std::string_view name, std::string const& why) const {
  file_->fail("dataset \"" + std::string(name) + "\" " + why);
}

#else

/// Placeholder without the HDF5 library: its use fails to compile and names the target to link.
template <class Path, class Name>
FileArray open_hdf5(Path const&, Name const&) {
  static_assert(sizeof(Path) == 0,
                "Lockstep: open_hdf5 reads with the HDF5 library: link the target lockstep::hdf5 (Debian: "
                "libhdf5-dev)");
  return {nullptr, {}, {}, 0};
}

#endif

}}}  // namespace lockstep::data
