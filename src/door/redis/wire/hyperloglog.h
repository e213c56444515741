/*
 * HyperLogLogs: how many different elements a set has, about, in 12 KiB at most. They are strings,
 * with Redis's bytes: 16 of a header, then 16,384 registers, six bits each (dense), or as runs
 * (sparse). Threading: none.
 */
#ifndef FROND_DOOR_REDIS_WIRE_HYPERLOGLOG_H
#define FROND_DOOR_REDIS_WIRE_HYPERLOGLOG_H

#include "base/str.h"

enum {
	HLL_REGISTERS = 1 << 14,
	HLL_HEADER_BYTES = 16,
	HLL_DENSE_BYTES = HLL_HEADER_BYTES + HLL_REGISTERS * 6 / 8,
	/* Of runs of one register each: nothing longer is sound. */
	HLL_BYTES = HLL_HEADER_BYTES + 2 * HLL_REGISTERS,
	HLL_SPARE_BYTES = 8, /* of memory, for what is read and written behind the end */
};

struct hll {
	uint8_t *bytes; /* `room`, borrowed; those right behind `len` are zero */
	size_t room;    /* HLL_SPARE_BYTES more than it, its dense form or `sparse_most` may be */
	size_t len;
	uint8_t *scratch; /* HLL_REGISTERS, borrowed */
};

/* What a change has come to. */
enum hll_change {
	HLL_SAME,
	HLL_CHANGED,
	HLL_UNSOUND, /* it is none; nothing is said of its bytes then */
};

/* Makes it an empty one. */
void hll_init(struct hll *h);
/* False: these bytes are no HyperLogLog. Only its runs show whether a sparse one is. */
bool hll_is_sound(struct str bytes);
bool hll_is_dense(const struct hll *h);

/* Adds an element. Becomes dense rather than longer than `sparse_most` bytes. */
enum hll_change hll_add(struct hll *h, struct str element, size_t sparse_most);
/* Raises a register to `value`, likewise. */
enum hll_change hll_raise(struct hll *h, unsigned reg, uint8_t value, size_t sparse_most);
/* False: it is none. */
bool hll_make_dense(struct hll *h);
/* Raises `registers` to those that it has. False: it is none. */
bool hll_merge(const struct hll *h, uint8_t registers[static HLL_REGISTERS]);

/* How many elements these registers stand for. */
uint64_t hll_count(const uint8_t registers[static HLL_REGISTERS]);
/* The number that it has of itself, if that is right still. */
bool hll_known_count(const struct hll *h, uint64_t *ret);
/* It is not, any more. */
void hll_forget_count(struct hll *h);

#endif
