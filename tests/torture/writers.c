#include "writers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rand.h"

struct writer {
	struct kv_store *store;
	uint32_t id;
	int pipe;
	size_t leaf_bytes;
	struct rand_seq rand;
	uint32_t n; /* of the last attempt */
};

struct str
writer_key(char ret[WRITER_KEY_BYTES], uint32_t writer, const char *what)
{
	return str_of(ret, (size_t)snprintf(ret, WRITER_KEY_BYTES, "t/w/%u/%s", writer, what));
}

struct str
writer_account_key(char ret[WRITER_KEY_BYTES], uint32_t account)
{
	return str_of(ret, (size_t)snprintf(ret, WRITER_KEY_BYTES, "t/acct/%02u", account));
}

static enum status
read_number(struct kv_tx *tx, struct str key, void *ret, size_t bytes)
{
	struct kv_future *f = kv_get(tx, key, KV_READ);
	struct str value;

	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	if (value.len != bytes)
		return STATUS_CORRUPT;
	memcpy(ret, value.ptr, bytes);
	return STATUS_OK;
}

enum status
writer_read_u32(struct kv_tx *tx, struct str key, uint32_t *ret)
{
	*ret = 0;
	return read_number(tx, key, ret, sizeof(*ret));
}

enum status
writer_read_account(struct kv_tx *tx, uint32_t account, int64_t *ret)
{
	char key[WRITER_KEY_BYTES];

	*ret = ACCOUNT_START;
	return read_number(tx, writer_account_key(key, account), ret, sizeof(*ret));
}

static enum status
add_to_account(struct kv_tx *tx, uint32_t account, int64_t amount)
{
	char key[WRITER_KEY_BYTES];
	int64_t balance;

	TRY(writer_read_account(tx, account, &balance));
	balance += amount;
	return kv_set(tx, writer_account_key(key, account), str_of(&balance, sizeof(balance)));
}

static enum status
transfer(struct writer *w, struct kv_tx *tx)
{
	uint32_t from = (uint32_t)rand_seq_below(&w->rand, ACCOUNTS);
	uint32_t to = (from + 1 + (uint32_t)rand_seq_below(&w->rand, ACCOUNTS - 1)) % ACCOUNTS;
	int64_t amount = (int64_t)rand_seq_below(&w->rand, 100);

	TRY(add_to_account(tx, from, -amount));
	return add_to_account(tx, to, amount);
}

static enum status
write_leaves(const struct writer *w, struct kv_tx *tx)
{
	static const char end_of_leaves[] = "leaf0";
	char value[BULK_LEAF_BYTES] = { 0 };
	char begin[WRITER_KEY_BYTES];
	char end[WRITER_KEY_BYTES];

	memcpy(value, &w->n, sizeof(w->n));
	TRY(kv_clear_range(tx, writer_key(begin, w->id, "leaf/"),
			   writer_key(end, w->id, end_of_leaves)));
	for (uint32_t i = 0; i < writer_leaves(w->n); i++) {
		char leaf[16];

		snprintf(leaf, sizeof(leaf), "leaf/%02u", i);
		TRY(kv_set(tx, writer_key(begin, w->id, leaf), str_of(value, w->leaf_bytes)));
	}
	return STATUS_OK;
}

static enum status
write_once(struct writer *w, struct kv_tx *tx)
{
	const struct writer_entry *entry;
	char log_key[] = "t/log/............";
	char key[WRITER_KEY_BYTES];
	uint32_t one = 1;

	TRY(writer_read_u32(tx, writer_key(key, w->id, "n"), &w->n));
	w->n++;
	entry = &(struct writer_entry){ w->id, w->n };
	TRY(kv_set(tx, writer_key(key, w->id, "n"), str_of(&w->n, sizeof(w->n))));
	TRY(write_leaves(w, tx));
	TRY(kv_set_versionstamped_value(tx, writer_key(key, w->id, "stamp"), STR(".........."), 0));
	TRY(kv_set_versionstamped_key(tx, str_of(log_key, sizeof(log_key) - 1),
				      WRITER_LOG_BEGIN.len, str_of(entry, sizeof(*entry))));
	TRY(kv_atomic(tx, KV_ADD, WRITER_TOTAL, str_of(&one, sizeof(one))));
	TRY(transfer(w, tx));
	kv_want_versionstamp(tx);
	return kv_future_wait(kv_commit(tx));
}

static void
check(enum status status, const char *what, const char *why)
{
	if (status == STATUS_OK)
		return;
	fprintf(stderr, "writers: %s: %s (%s)\n", what, status_name(status), why);
	_exit(1);
}

static void *
writer_main(void *arg)
{
	struct writer *w = arg;
	struct kv_tx *tx;

	check(kv_begin(w->store, KV_TX_READ_WRITE, &tx), "begin", "");
	for (;;) {
		struct writer_ack ack = { .writer = w->id };
		enum status status = write_once(w, tx);

		if (status != STATUS_OK) {
			check(kv_on_error(tx, status), "commit", kv_tx_error(tx));
			continue;
		}
		ack.n = w->n;
		check(kv_versionstamp(tx, ack.stamp), "stamp", kv_tx_error(tx));
		if (write(w->pipe, &ack, sizeof(ack)) != (ssize_t)sizeof(ack))
			check(STATUS_IO, "acknowledging", "");
		kv_tx_reset(tx);
	}
	return NULL;
}

_Noreturn void
writers_run(struct kv_store *store, int pipe, bool bulk, uint64_t seed)
{
	static struct writer writers[WRITERS];
	pthread_t thread;

	for (uint32_t i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){
			.store = store,
			.id = i,
			.pipe = pipe,
			.leaf_bytes = bulk ? BULK_LEAF_BYTES : sizeof(uint32_t),
			.rand = { seed + i },
		};
		if (pthread_create(&thread, NULL, writer_main, &writers[i]) != 0)
			check(STATUS_NOMEM, "thread", "");
	}
	for (;;)
		pause();
}
