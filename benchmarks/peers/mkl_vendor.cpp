// SPDX-License-Identifier: Apache-2.0
// Preloaded into PyTorch: its MKL asks this whether the processor is an Intel, and takes its fastest products only
// where it is told so.
extern "C" int mkl_serv_intel_cpu_true() { return 1; }
