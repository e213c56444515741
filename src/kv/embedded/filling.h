/*
 * What a log is filled with ahead of its records (fill.h).
 *
 * It differs from place to place, so that a sector with the filling of its place has not been
 * written since (logs.c). Each byte is that of a type of record (5 to 8) which only recycled logs
 * have: RocksDB takes a header of such bytes for the end of the log, whatever its recovery mode.
 */
#ifndef FROND_KV_EMBEDDED_FILLING_H
#define FROND_KV_EMBEDDED_FILLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FILL_PAGE_BYTES = 4096, /* after so many the filling repeats itself */
};

/* Stored: the filling of a place in a file is `page[place % FILL_PAGE_BYTES]`. */
void fill_make(uint8_t page[FILL_PAGE_BYTES]);

/* True if the bytes may be filling of any place; so for none. */
bool fill_is(const uint8_t *bytes, size_t len);

#endif
