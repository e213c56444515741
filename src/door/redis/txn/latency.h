/*
 * LATENCY: commands that took latency-monitor-threshold milliseconds or longer, as samples of two
 * events, of commands that are fast by their nature and of all others. Of one second only the
 * longest is kept. Any thread.
 */
#ifndef FROND_DOOR_REDIS_TXN_LATENCY_H
#define FROND_DOOR_REDIS_TXN_LATENCY_H

#include "door/redis/acl/command.h"

enum latency_event {
	LATENCY_COMMAND,
	LATENCY_FAST_COMMAND,
	LATENCY_EVENTS,
};

enum {
	LATENCY_SAMPLES = 160, /* of an event; then the oldest goes */
};

struct latency_sample {
	uint64_t time_s; /* since 1970 */
	uint64_t ms;
};

struct latency;

struct latency *latency_new(void); /* NULL: there is no memory */
void latency_free(struct latency *l);

/* Samples are kept from so many milliseconds on; 0: never. */
void latency_limit(struct latency *l, uint64_t ms);
uint64_t latency_limit_of(const struct latency *l);

/* A call of the command has ended, after `ns`. */
void latency_note(struct latency *l, const struct command *command, uint64_t ns);

/* "command", "fast-command". */
const char *latency_name(enum latency_event event);
/* LATENCY_EVENTS: there is no event of that name, in any case. */
enum latency_event latency_find(struct str name);

/* Copies the samples of an event, the oldest first; how many, and the longest since a reset. */
size_t latency_read(struct latency *l, enum latency_event event,
		    struct latency_sample ret[LATENCY_SAMPLES], uint64_t *ret_most_ms);

/* Forgets the samples of an event. False: it had none. */
bool latency_reset(struct latency *l, enum latency_event event);

#endif
