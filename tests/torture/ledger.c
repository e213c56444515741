#include "ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	COMPLAINT_BYTES = 400,
};

static char complaint[COMPLAINT_BYTES];

#define COMPLAIN(...) (snprintf(complaint, sizeof(complaint), __VA_ARGS__), complaint)

/* Returns from the calling function when a part of the check has a complaint. */
#define CHECK(expr)                                                                                \
	do {                                                                                       \
		const char *complaint_ = (expr);                                                   \
		if (complaint_)                                                                    \
			return complaint_;                                                         \
	} while (0)

bool
ledger_init(struct ledger *l)
{
	*l = (struct ledger){ 0 };
	for (uint32_t w = 0; w < WRITERS; w++) {
		l->acks[w] = calloc(LEDGER_ACKS, sizeof(l->acks[w][0]));
		if (!l->acks[w])
			return false;
	}
	return true;
}

void
ledger_fini(struct ledger *l)
{
	for (uint32_t w = 0; w < WRITERS; w++)
		free(l->acks[w]);
}

void
ledger_start(struct ledger *l)
{
	l->version = 0;
	memset(l->n, 0, sizeof(l->n));
	memset(l->ack_count, 0, sizeof(l->ack_count));
}

static uint64_t
stamp_version(const uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES])
{
	uint64_t version = 0;

	for (size_t i = 0; i < sizeof(version); i++)
		version = version << 8 | stamp[i];
	return version;
}

const char *
ledger_note(struct ledger *l, const struct writer_ack *ack)
{
	const struct writer_ack *last = NULL;
	uint32_t *count;

	if (ack->writer >= WRITERS)
		return "an acknowledgement of no writer";
	count = &l->ack_count[ack->writer];
	if (*count == LEDGER_ACKS)
		return "too many acknowledgements";
	if (*count)
		last = &l->acks[ack->writer][*count - 1];
	if (ack->n != l->n[ack->writer] + *count + 1)
		return COMPLAIN("writer %u: transaction %u is acknowledged after %u", ack->writer,
				ack->n, l->n[ack->writer] + *count);
	if (stamp_version(ack->stamp) <= l->version ||
	    (last && memcmp(ack->stamp, last->stamp, sizeof(ack->stamp)) <= 0))
		return COMPLAIN("writer %u, transaction %u: its stamp went back", ack->writer,
				ack->n);
	l->acks[ack->writer][(*count)++] = *ack;
	l->acknowledged++;
	return NULL;
}

static const char *
check_version(struct ledger *l, struct kv_tx *tx)
{
	uint64_t version;

	if (kv_get_read_version(tx, &version) != STATUS_OK)
		return "no read version";
	for (uint32_t w = 0; w < WRITERS; w++) {
		uint64_t acked = 0;

		if (l->ack_count[w])
			acked = stamp_version(l->acks[w][l->ack_count[w] - 1].stamp);
		if (acked > version)
			return COMPLAIN("version %" PRIu64 " is below %" PRIu64
					", which was acknowledged",
					version, acked);
	}
	if (version < l->version)
		return COMPLAIN("version %" PRIu64 " is below %" PRIu64 ", which was seen before",
				version, l->version);
	l->version = version;
	return NULL;
}

static const char *
check_leaves(struct kv_tx *tx, uint32_t w, uint32_t n)
{
	char begin[WRITER_KEY_BYTES];
	char end[WRITER_KEY_BYTES];
	uint32_t count = 0;
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	if (kv_scan_init(&scan, tx, writer_key(begin, w, "leaf/"), writer_key(end, w, "leaf0"),
			 NULL) != STATUS_OK)
		return "no scan of leaves";
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		if (pair.value.len < sizeof(n) || memcmp(pair.value.ptr, &n, sizeof(n)) != 0)
			break;
		count++;
	}
	kv_scan_release(&scan);
	if (status == STATUS_OK)
		return COMPLAIN("writer %u: a leaf is not of transaction %u", w, n);
	if (status != STATUS_NOT_FOUND)
		return COMPLAIN("writer %u: reading leaves: %s", w, kv_tx_error(tx));
	if (count != (n ? writer_leaves(n) : 0))
		return COMPLAIN("writer %u: %u leaves of transaction %u", w, count, n);
	return NULL;
}

/* The last acknowledged one is there; at most the one under way is, too. */
static const char *
check_writer(struct ledger *l, struct kv_tx *tx, uint32_t w, uint32_t *ret_n)
{
	uint32_t acked = l->n[w] + l->ack_count[w];
	char key[WRITER_KEY_BYTES];

	if (writer_read_u32(tx, writer_key(key, w, "n"), ret_n) != STATUS_OK)
		return COMPLAIN("writer %u: reading its number: %s", w, kv_tx_error(tx));
	if (*ret_n < acked || *ret_n > acked + 1)
		return COMPLAIN("writer %u: transaction %u is there, %u was acknowledged", w,
				*ret_n, acked);
	return check_leaves(tx, w, *ret_n);
}

/* One entry of the log, in the order of stamps. */
static const char *
check_entry(struct ledger *l, const struct kv_pair *pair, uint32_t seen[WRITERS])
{
	const uint8_t *stamp = (const uint8_t *)pair->key.ptr + WRITER_LOG_BEGIN.len;
	const struct writer_ack *ack;
	struct writer_entry entry;
	uint32_t w;

	if (pair->value.len != sizeof(entry))
		return "an entry of the log has another size";
	memcpy(&entry, pair->value.ptr, sizeof(entry));
	w = entry.writer;
	if (w >= WRITERS || entry.n != seen[w] + 1)
		return COMPLAIN("writer %u: entry %u of the log follows entry %u", w, entry.n,
				w < WRITERS ? seen[w] : 0);
	seen[w]++;
	l->verified++;
	if (stamp_version(stamp) > l->version)
		return "an entry of the log is stamped above the store's version";
	if (entry.n <= l->n[w] || entry.n > l->n[w] + l->ack_count[w])
		return NULL;
	ack = &l->acks[w][entry.n - l->n[w] - 1];
	if (memcmp(ack->stamp, stamp, sizeof(ack->stamp)) != 0)
		return COMPLAIN("writer %u: transaction %u has not the stamp that it was told", w,
				entry.n);
	return NULL;
}

static const char *
check_log(struct ledger *l, struct kv_tx *tx, const uint32_t n[WRITERS])
{
	const char *wrong = NULL;
	uint32_t seen[WRITERS] = { 0 };
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	if (kv_scan_init(&scan, tx, WRITER_LOG_BEGIN, WRITER_LOG_END, NULL) != STATUS_OK)
		return "no scan of the log";
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK && !wrong)
		wrong = check_entry(l, &pair, seen);
	kv_scan_release(&scan);
	if (wrong)
		return wrong;
	if (status != STATUS_NOT_FOUND)
		return COMPLAIN("reading the log: %s", kv_tx_error(tx));
	if (memcmp(seen, n, sizeof(seen)) != 0)
		return "the log does not have as many entries as there were transactions";
	return NULL;
}

static const char *
check_sums(struct kv_tx *tx, const uint32_t n[WRITERS])
{
	uint32_t expected = 0;
	uint32_t total;
	int64_t sum = 0;

	for (uint32_t w = 0; w < WRITERS; w++)
		expected += n[w];
	if (writer_read_u32(tx, WRITER_TOTAL, &total) != STATUS_OK)
		return "reading the total failed";
	if (total != expected)
		return COMPLAIN("the total is %u, and there are %u transactions", total, expected);
	for (uint32_t i = 0; i < ACCOUNTS; i++) {
		int64_t amount;

		if (writer_read_account(tx, i, &amount) != STATUS_OK)
			return "reading an account failed";
		sum += amount;
	}
	if (sum != (int64_t)ACCOUNTS * ACCOUNT_START)
		return COMPLAIN("the accounts have %" PRId64 " together", sum);
	return NULL;
}

static const char *
check_all(struct ledger *l, struct kv_tx *tx)
{
	uint32_t n[WRITERS];

	CHECK(check_version(l, tx));
	for (uint32_t w = 0; w < WRITERS; w++)
		CHECK(check_writer(l, tx, w, &n[w]));
	CHECK(check_log(l, tx, n));
	CHECK(check_sums(tx, n));
	memcpy(l->n, n, sizeof(n));
	memset(l->ack_count, 0, sizeof(l->ack_count));
	return NULL;
}

/* As if every writer had been told of all that is there. */
static const char *
look_at_all(struct ledger *l, struct kv_tx *tx)
{
	for (uint32_t w = 0; w < WRITERS; w++) {
		char key[WRITER_KEY_BYTES];
		uint32_t n;

		if (writer_read_u32(tx, writer_key(key, w, "n"), &n) != STATUS_OK)
			return COMPLAIN("writer %u: reading its number: %s", w, kv_tx_error(tx));
		if (n < l->n[w])
			return COMPLAIN("writer %u: transaction %u was there, %u is", w, l->n[w],
					n);
		l->n[w] = n;
	}
	return check_all(l, tx);
}

static const char *
check_store(struct ledger *l, struct kv_store *store,
	    const char *(*check)(struct ledger *l, struct kv_tx *tx))
{
	const char *wrong;
	struct kv_tx *tx;

	if (kv_begin(store, KV_TX_READ_ONLY, &tx) != STATUS_OK)
		return "no transaction can begin";
	wrong = check(l, tx);
	kv_tx_free(tx);
	return wrong;
}

const char *
ledger_check(struct ledger *l, struct kv_store *store)
{
	return check_store(l, store, check_all);
}

const char *
ledger_look(struct ledger *l, struct kv_store *store)
{
	return check_store(l, store, look_at_all);
}
