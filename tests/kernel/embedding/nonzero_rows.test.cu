// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/embedding/nonzero_rows.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include <lockstep/core/mix.hpp>

#include "memory/device.hpp"

using namespace lockstep;

TEST_CASE("rows with any number except +0 are found, packed, and unpacked to their places") {
  if (!lockstep_test::has_gpu("kernel::find_nonzero_rows")) return;
  memory::CudaStream const stream;
  float const kinds[] = {1, -0.0f, std::nanf(""), std::numeric_limits<float>::denorm_min()};
  for (Index const rows : {0, 1, 63, 64, 65, 200})
    for (Index const width : {1, 31, 33, 128}) {
      CAPTURE(rows);
      CAPTURE(width);
      std::vector<float> table(static_cast<std::size_t>(rows * width));
      std::vector<std::uint64_t> expected(static_cast<std::size_t>((rows + 63) / 64));
      std::vector<std::int32_t> list;
      for (Index row = 0; row < rows; ++row) {
        auto const draw = mix(static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(width));
        if (draw % 3 == 0) continue;
        table[static_cast<std::size_t>(row * width) + draw % static_cast<std::uint64_t>(width)] = kinds[draw / 3 % 4];
        expected[static_cast<std::size_t>(row / 64)] |= std::uint64_t{1} << (row % 64);
        list.push_back(static_cast<std::int32_t>(row));
      }
      lockstep_test::OnDevice<float> const device(table);
      lockstep_test::OnDevice<std::uint64_t> const words(
          std::vector<std::uint64_t>(expected.size(), ~std::uint64_t{0}));
      kernel::find_nonzero_rows<float>(stream.view(), {device.view(rows, width).data, {rows, width}},
                                       words.view(std::ssize(expected)).data);
      CHECK(words.values() == expected);

      auto const count = std::ssize(list);
      lockstep_test::OnDevice<std::int32_t> const chosen(list);
      lockstep_test::OnDevice<float> const packed(std::vector<float>(static_cast<std::size_t>(count * width), 7)),
          again(std::vector<float>(table.size()));
      kernel::pack_rows<float>(stream.view(), device.view(rows, width).data, width, chosen.view(count).data, count,
                               packed.view(count, width).data);
      kernel::unpack_rows<float>(stream.view(), packed.view(count, width).data, width, chosen.view(count).data, count,
                                 again.view(rows, width).data);
      auto const back = again.values();
      auto const* const as_bytes = reinterpret_cast<std::byte const*>(back.data());
      CHECK(std::equal(as_bytes, as_bytes + back.size() * sizeof(float),
                       reinterpret_cast<std::byte const*>(table.data())));
      if (count > 0) CHECK(packed.values()[0] != 7);
    }
}
