/*
 * Interleavings of transactions, as text. A spec has comments (#), what is there before, what each
 * session does in one transaction, and what has to come of it:
 *
 *     setup: set x 1
 *     s1: get x
 *     s1: set x x+1
 *     s1: commit
 *     s2: ...
 *     every: 20 interleavings, 18 refused, 0 anomalies
 *     order s1 s1 s2 s1 s2 s2: s1 1 ok; s2 1 conflict; x=2
 *
 * `every` runs all interleavings of the sessions' steps; `order` runs one, a session's next step
 * for each time that it is named, and tells what each session read and how it ended, and what is
 * stored at last. An anomaly is an outcome that no serial order of the transactions explains, of
 * those orders that keep whoever ended before another began before it. Refused transactions count:
 * what they read must be explained as well.
 *
 * Values are numbers, 32 bits wide and little-endian; x+1 is what the session last read of x, and
 * one more. Steps:
 *
 *     get K           sget K          reads; the latter, a snapshot read, without a conflict
 *     range A B       srange A B      {K=V,...} of A <= key < B
 *     set K V         add K V         clear K             clear-range A B
 *     stamp-key K V                   the key is K and the versionstamp; read as K*
 *     read-conflict A B               write-conflict A B
 *     commit          rollback        one of them ends a session
 */
#ifndef FROND_TESTS_ISO_SPEC_H
#define FROND_TESTS_ISO_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SPEC_SESSIONS = 4,
	SPEC_STEPS = 8, /* of one session */
	SPEC_ORDERS = 16,
	SPEC_WORD_BYTES = 16,
	SPEC_LINE_BYTES = 256,
	SPEC_ORDER_STEPS = SPEC_SESSIONS * SPEC_STEPS,
};

enum spec_op {
	SPEC_GET,
	SPEC_SNAPSHOT_GET,
	SPEC_RANGE,
	SPEC_SNAPSHOT_RANGE,
	SPEC_SET,
	SPEC_ADD,
	SPEC_CLEAR,
	SPEC_CLEAR_RANGE,
	SPEC_STAMP_KEY,
	SPEC_READ_CONFLICT,
	SPEC_WRITE_CONFLICT,
	SPEC_COMMIT,
	SPEC_ROLLBACK,
};

struct spec_step {
	enum spec_op op;
	char key[SPEC_WORD_BYTES];
	char end[SPEC_WORD_BYTES]; /* of a range */
	char of[SPEC_WORD_BYTES];  /* the value is what was read of this key, and `number` */
	int32_t number;
};

struct spec_session {
	char name[SPEC_WORD_BYTES];
	struct spec_step steps[SPEC_STEPS];
	int count;
};

struct spec_order {
	int sessions[SPEC_ORDER_STEPS]; /* whose turn it is */
	int count;
	char expected[SPEC_LINE_BYTES];
};

struct spec {
	struct spec_session setup;
	struct spec_session sessions[SPEC_SESSIONS];
	int session_count;
	struct spec_order orders[SPEC_ORDERS];
	int order_count;
	bool has_every;
	int interleavings;
	int refused;
	int anomalies;
};

/* NULL, or what is wrong with the file, in static memory. */
const char *spec_read(const char *path, struct spec *ret);

#endif
