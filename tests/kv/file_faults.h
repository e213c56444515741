/*
 * A disk that does what disks do: for programs that are linked with -Wl,--wrap=read and
 * -Wl,--wrap=pread64. Threading: one thread.
 */
#ifndef FROND_TESTS_KV_FILE_FAULTS_H
#define FROND_TESTS_KV_FILE_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* From now on every other read is interrupted, and what the others read is little. */
void file_faults_interrupt(void);

/* The `nth` read from now on fails, and those after it do not. */
void file_faults_fail(unsigned nth);

/* Reads fail that want any of these bytes of a file, by pread() alone. */
void file_faults_spoil(uint64_t begin, uint64_t end);

/* A file ends there, by pread() alone: it is being cut while it is read. */
void file_faults_cut(uint64_t end);

/* No read fails any more. True if one has failed, was interrupted or cut since. */
bool file_faults_end(void);

#endif
