"""Benchmarks of time and memory, compared with other software."""

# All measurements use one thread. With two threads, BLAS makes SLSQP ten times slower on a busy
# machine, because the threads wait for each other.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
