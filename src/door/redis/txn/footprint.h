/*
 * What the process takes and moves, as INFO and MEMORY STATS tell it. All doors are in it, since
 * they share the process. Any thread. Clients ask for INFO whenever they connect, so nothing here
 * waits for a disk or for who collects metrics.
 */
#ifndef FROND_DOOR_REDIS_TXN_FOOTPRINT_H
#define FROND_DOOR_REDIS_TXN_FOOTPRINT_H

#include <stdint.h>

struct budget;
struct redis;

/* Bytes. */
struct footprint {
	uint64_t used;     /* that malloc has given out */
	uint64_t active;   /* that malloc has of the system */
	uint64_t resident; /* of the process; never below `used`, as far as it is told */
	uint64_t peak;     /* the most that `resident` was */
	uint64_t startup;  /* `used` when the door began */
	uint64_t clients;  /* that requests and connections have taken of memory_bytes */
	uint64_t overhead; /* of `used`: startup, clients */
	uint64_t system;   /* of the machine */
};

/* `memory`: of which requests and connections take theirs. */
struct footprint footprint_of(const struct redis *r, const struct budget *memory);

/* What connections have moved. */
struct traffic {
	uint64_t received, sent; /* bytes */
	uint64_t refused;        /* connections, since there were too many */
};

struct traffic traffic_of_process(void);
/* What malloc has given out now. */
uint64_t footprint_used(void);

/* What is neither overhead: caches of the store, since data are on disk. */
static inline uint64_t
footprint_dataset(const struct footprint *f)
{
	return f->used > f->overhead ? f->used - f->overhead : 0;
}

static inline double
footprint_ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static inline double
footprint_percent(uint64_t part, uint64_t whole)
{
	return 100 * footprint_ratio(part, whole);
}

#endif
