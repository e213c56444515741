/*
 * What the tortured process writes, from several threads, and what has to be true of it whenever
 * the process ends. Transaction n of writer w, in one commit:
 *
 *     t/w/W/n          = n
 *     t/w/W/leaf/NN    = n in each of writer_leaves(n) leaves, after a clear of the range
 *     t/w/W/stamp      = its versionstamp
 *     t/log/<stamp>    = (w, n)
 *     t/total          + 1
 *     t/acct/NN        a transfer between two of the accounts, which makes writers conflict
 */
#ifndef FROND_TESTS_TORTURE_WRITERS_H
#define FROND_TESTS_TORTURE_WRITERS_H

#include "kv/kv.h"

enum {
	WRITERS = 4,
	ACCOUNTS = 8,
	ACCOUNT_START = 1000,
	WRITER_KEY_BYTES = 48,
	BULK_LEAF_BYTES = 20000, /* so that the store flushes and compacts soon */
};

#define WRITER_LOG_BEGIN STR("t/log/")
#define WRITER_LOG_END   STR("t/log0")
#define WRITER_TOTAL     STR("t/total")

/* What is written to the pipe, in one piece, once a commit has been acknowledged. */
struct writer_ack {
	uint32_t writer;
	uint32_t n;
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
};

struct writer_entry {
	uint32_t writer;
	uint32_t n;
};

static inline uint32_t
writer_leaves(uint32_t n)
{
	return 3 + n % 20;
}

struct str writer_key(char ret[WRITER_KEY_BYTES], uint32_t writer, const char *what);
struct str writer_account_key(char ret[WRITER_KEY_BYTES], uint32_t account);

/* A stored number; `absent` when there is none. STATUS_CORRUPT when it is no number. */
enum status writer_read_u32(struct kv_tx *tx, struct str key, uint32_t *ret);
enum status writer_read_account(struct kv_tx *tx, uint32_t account, int64_t *ret);

/* Writes until the process ends. A failure ends it with a message. */
_Noreturn void writers_run(struct kv_store *store, int pipe, bool bulk, uint64_t seed);

#endif
