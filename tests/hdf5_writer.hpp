// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_HDF5)
#include <hdf5.h>

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace lockstep_test {

/// How the numbers of a dataset are stored.
enum class Hdf5Layout { contiguous, chunked, compressed, compact, virtual_copy };

/// Writes an HDF5 file, which is complete when this object is destroyed.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(std::string const& path, ::hsize_t user_block = 0) {
    auto const created = ::H5Pcreate(H5P_FILE_CREATE);
    ::H5Pset_userblock(created, user_block);
    id_ = ::H5Fcreate(path.c_str(), H5F_ACC_TRUNC, created, H5P_DEFAULT);
    ::H5Pclose(created);
    REQUIRE(id_ >= 0);
  }
  ~Hdf5Writer() { ::H5Fclose(id_); }
  Hdf5Writer(Hdf5Writer const&) = delete;
  Hdf5Writer& operator=(Hdf5Writer const&) = delete;

  void group(char const* name) const { ::H5Gclose(::H5Gcreate2(id_, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)); }
  /// Writes numbers of the memory type `from`, as numbers of the type `type`; none if `from` is negative.
  void add(char const* name, ::hid_t type, ::hid_t from, void const* numbers, std::vector<::hsize_t> const& extents,
           Hdf5Layout layout = Hdf5Layout::contiguous) const {
    auto const rank = static_cast<int>(extents.size());
    auto const space = rank == 0 ? ::H5Screate(H5S_SCALAR) : ::H5Screate_simple(rank, extents.data(), nullptr);
    auto const created = ::H5Pcreate(H5P_DATASET_CREATE);
    if (layout == Hdf5Layout::chunked || layout == Hdf5Layout::compressed) {
      std::vector<::hsize_t> chunk;
      for (auto const extent : extents) chunk.push_back(std::min<::hsize_t>(extent, 3));
      ::H5Pset_chunk(created, rank, chunk.data());
      if (layout == Hdf5Layout::compressed) ::H5Pset_deflate(created, 6);
    }
    if (layout == Hdf5Layout::compact) ::H5Pset_layout(created, H5D_COMPACT);
    if (layout == Hdf5Layout::virtual_copy) ::H5Pset_virtual(created, space, "other.h5", "/x", space);
    auto const dataset = ::H5Dcreate2(id_, name, type, space, H5P_DEFAULT, created, H5P_DEFAULT);
    REQUIRE(dataset >= 0);
    if (from >= 0) REQUIRE(::H5Dwrite(dataset, from, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    ::H5Dclose(dataset);
    ::H5Pclose(created);
    ::H5Sclose(space);
  }
  void add(char const* name, std::vector<float> const& numbers, std::vector<::hsize_t> const& extents,
           Hdf5Layout layout = Hdf5Layout::contiguous) const {
    add(name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, numbers.data(), extents, layout);
  }
  void link(char const* file, char const* target, char const* name) const {
    ::H5Lcreate_external(file, target, id_, name, H5P_DEFAULT, H5P_DEFAULT);
  }

 private:
  ::hid_t id_ = -1;
};

}  // namespace lockstep_test
#endif
