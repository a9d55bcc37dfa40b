// SPDX-License-Identifier: Apache-2.0
// MPI's all-reduce: reads `COUNT BYTES` per line on rank 0, and answers with COUNT times the median time of the slowest
// rank, measured over at most 2,000 iterations. usage: mpirun -np RANKS mpi_all_reduce
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

/// MPI waits without sleeping: this leaves the core to the other contestants.
void broadcast_patiently(double (&values)[2], int rank, int ranks) {
  if (rank == 0) {
    for (int r = 1; r < ranks; ++r) MPI_Send(values, 2, MPI_DOUBLE, r, 0, MPI_COMM_WORLD);
    return;
  }
  for (int there = 0; there == 0;) {
    MPI_Iprobe(0, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    if (there == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  MPI_Recv(values, 2, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/// Cost of reading the clock.
double clock_cost() {
  std::vector<double> gaps;
  for (int i = 0; i < 1001; ++i) {
    auto const begin = MPI_Wtime();
    gaps.push_back(MPI_Wtime() - begin);
  }
  std::nth_element(gaps.begin(), gaps.begin() + 500, gaps.end());
  return gaps[500];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<float> data;
  auto const clock = clock_cost();
  if (rank == 0) {
    std::puts("ready");
    std::fflush(stdout);
  }
  for (;;) {
    double plan[2] = {0, 0};
    if (rank == 0 && std::scanf("%lf %lf", &plan[0], &plan[1]) != 2) plan[0] = 0;
    broadcast_patiently(plan, rank, ranks);
    auto const times = static_cast<std::ptrdiff_t>(std::min(plan[0], 2000.0));
    if (times == 0) break;
    data.resize(static_cast<std::size_t>(plan[1]) / sizeof(float));
    std::vector<double> taken;
    for (std::ptrdiff_t i = 0; i < times; ++i) {
      std::fill(data.begin(), data.end(), static_cast<float>(i % 8 + rank));
      MPI_Barrier(MPI_COMM_WORLD);
      auto const start = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      taken.push_back(MPI_Wtime() - start - clock);
    }
    std::nth_element(taken.begin(), taken.begin() + times / 2, taken.end());
    double median = taken[static_cast<std::size_t>(times / 2)];
    MPI_Allreduce(MPI_IN_PLACE, &median, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank != 0) continue;
    std::printf("%.9g\n", plan[0] * median);
    std::fflush(stdout);
  }
  MPI_Finalize();
}
