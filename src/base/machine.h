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
 * machine_memory_bytes() as it would be on a machine that has `bytes` of memory and whose files are
 * below the directory `root`; an empty `root` stands for this machine's own files. For tests.
 */
uint64_t machine_memory_bytes_below(const char *root, uint64_t bytes);

#endif
