/* What the tortured process has been promised, and whether the store still keeps it. */
#ifndef FROND_TESTS_TORTURE_LEDGER_H
#define FROND_TESTS_TORTURE_LEDGER_H

#include "writers.h"

enum {
	LEDGER_ACKS = 65536, /* of one writer in one run */
};

struct ledger {
	uint64_t version;                 /* the newest seen */
	uint32_t n[WRITERS];              /* as the store had them when it was last checked */
	struct writer_ack *acks[WRITERS]; /* since then */
	uint32_t ack_count[WRITERS];
	uint64_t acknowledged; /* since ledger_init() */
	uint64_t verified;     /* entries of the log compared, likewise */
};

/* False when memory is short. */
bool ledger_init(struct ledger *l);
void ledger_fini(struct ledger *l);

/* A new store: forgets everything but the sums. */
void ledger_start(struct ledger *l);

/* NULL, or what is wrong with it, in static memory. */
const char *ledger_note(struct ledger *l, const struct writer_ack *ack);

/*
 * Is the store one version of what the writers write, not older than the one seen before? They may
 * still be at it. NULL, or what is wrong, likewise.
 */
const char *ledger_look(struct ledger *l, struct kv_store *store);

/* Compares with the store, and takes over what it has. NULL, or what is wrong, likewise. */
const char *ledger_check(struct ledger *l, struct kv_store *store);

#endif
