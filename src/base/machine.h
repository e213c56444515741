/* How much memory there is for this process, by which caches are sized. */
#ifndef FROND_BASE_MACHINE_H
#define FROND_BASE_MACHINE_H

#include <stdint.h>

/* The bytes of memory that the machine has. At least 1. Thread-safe. */
uint64_t machine_installed_bytes(void);

/*
 * The bytes of memory that this process may use: all of the machine's, or less where a control
 * group that the process is in has a lower limit. Both interfaces of the kernel to control groups
 * are known. Reads files of /proc and /sys; thread-safe.
 */
uint64_t machine_memory_bytes(void);

/*
 * For tests: the same for a machine that has `bytes`, and whose root directory is `root`. An empty
 * `root` is this machine's.
 */
uint64_t machine_memory_bytes_below(const char *root, uint64_t bytes);

#endif
