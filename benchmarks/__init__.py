"""How fast multiplay is, against what else there is, and how its time and memory grow."""

# Everything is measured on one thread. With two, BLAS makes SLSQP ten times slower on a busy
# machine, because its threads wait for each other.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
