// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace lockstep_test {

/// Returns the bytes of numbers in memory order.
template <class T>
std::string bytes_of(std::vector<T> const& values) {
  return {reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T)};
}
template <class T>
std::string little(T value) {
  return bytes_of(std::vector<T>{value});
}

/// Returns a .npy file of version 1 (or another) with this dictionary as header.
inline std::string npy(std::string const& dictionary, std::string const& data, char version = 1) {
  auto const size = version == 1 ? little(static_cast<std::uint16_t>(dictionary.size()))
                                 : little(static_cast<std::uint32_t>(dictionary.size()));
  return std::string("\x93NUMPY") + version + '\0' + size + dictionary + data;
}
inline std::string npy_of(std::string const& descr, std::string const& shape, std::string const& data) {
  return npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }  \n", data);
}

/// Returns the CRC-32 of bytes, bit by bit.
inline std::uint32_t crc32_of(std::string const& bytes) {
  std::uint32_t sum = ~std::uint32_t{0};
  for (char const c : bytes) {
    sum ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? 0xedb88320u : 0);
  }
  return ~sum;
}

/// Returns a zip archive of stored files as numpy writes it; `zip64` puts the directory's sizes into Zip64 fields.
inline std::string zip(std::vector<std::pair<std::string, std::string>> const& files, bool zip64 = false,
                       std::uint16_t method = 0) {
  std::string out, directory;
  for (auto const& [name, data] : files) {
    auto const offset = out.size();
    auto const size = static_cast<std::uint32_t>(data.size());
    auto const common = little<std::uint16_t>(0) + little(method) + std::string(4, '\0') + little(crc32_of(data));
    auto const lengths = little<std::uint16_t>(static_cast<std::uint16_t>(name.size()));
    out += "PK\x03\x04" + little<std::uint16_t>(45) + common + little(size) + little(size) + lengths +
           little<std::uint16_t>(4) + name + "abcd" + data;
    auto const extra = zip64 ? little<std::uint16_t>(1) + little<std::uint16_t>(24) + little<std::uint64_t>(size) +
                                   little<std::uint64_t>(size) + little<std::uint64_t>(offset)
                             : std::string();
    auto const field = [&](std::uint32_t value) { return little(zip64 ? 0xffffffffu : value); };
    directory += "PK\x01\x02" + little<std::uint16_t>(45) + little<std::uint16_t>(45) + common + field(size) +
                 field(size) + lengths + little(static_cast<std::uint16_t>(extra.size())) + little<std::uint16_t>(0) +
                 std::string(8, '\0') + field(static_cast<std::uint32_t>(offset)) + name + extra;
  }
  auto const begin = static_cast<std::uint32_t>(out.size());
  auto const count = static_cast<std::uint16_t>(files.size());
  out += directory;
  return out + "PK\x05\x06" + std::string(4, '\0') + little(count) + little(count) +
         little(static_cast<std::uint32_t>(directory.size())) + little(begin) + little<std::uint16_t>(0);
}

}  // namespace lockstep_test
