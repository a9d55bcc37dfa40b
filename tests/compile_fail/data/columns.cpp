// SPDX-License-Identifier: Apache-2.0
// CASE epoch_on_device: Lockstep: a batch on a device does not know its epoch, because recorded passes are replayed
#include <vector>

#include <lockstep/data/columns.hpp>

using namespace lockstep;

struct Sample {
  std::vector<int> tokens;
  int label = 0;
};

Index epoch_of(data::Columns<Sample> const& batch) { return batch.epoch(); }
Index rows_of(data::Columns<Sample, CudaSpace> const& batch) { return batch.rows(); }
#if defined(CASE_epoch_on_device)
Index epoch_of(data::Columns<Sample, CudaSpace> const& batch) { return batch.epoch(); }
#endif
