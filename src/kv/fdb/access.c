/* What transactions read and write. */
#include "base/clock.h"
#include "base/mem.h"
#include "kv/fdb/fdb_int.h"
#include "kv/fdb/joint.h"

enum {
	/* The library takes this value for that key and no other: a template and its offset. */
	METADATA_VALUE_BYTES = KV_VERSIONSTAMP_TX_BYTES + FDB_STAMP_PLACE_BYTES,
};

/* ---- Reads ---- */

/* A read must see what the transaction has written before, which a view does not. */
static enum status
tx_enter_read(struct fdb_tx *tx, size_t note_bytes)
{
	TRY(fdb_tx_check(tx));
	if (tx->noting && (tx->written || !fdb_notes_fit(tx, note_bytes)))
		return fdb_view_leave(tx);
	return STATUS_OK;
}

/* Read-only transactions cannot conflict. */
static bool
tx_conflicts(const struct fdb_tx *tx, enum kv_read mode)
{
	return mode != KV_SNAPSHOT && tx->base.kind != KV_TX_READ_ONLY;
}

enum status
fdb_tx_get(struct fdb_tx *tx, struct str key, enum kv_read mode, struct fdb_future **ret)
{
	bool conflicts = tx_conflicts(tx, mode);
	FDBFuture *part;

	TRY(tx_enter_read(tx, 2 * key.len + 1));
	if (conflicts && tx->noting)
		TRY(fdb_notes_add_key_conflict(tx, key));
	fdb_time_begin(tx);
	part = fdb.transaction_get(tx->tx, fdb_ptr(key), (int)key.len, !conflicts || tx->noting);
	*ret = fdb_future_new(tx, FDB_GET, part, 0);
	if (!*ret)
		return STATUS_NOMEM;
	fdb_future_start(*ret);
	return STATUS_OK;
}

struct kv_future *
fdb_get(struct kv_tx *base, struct str key, enum kv_read mode)
{
	struct fdb_tx *tx = (struct fdb_tx *)base;
	struct fdb_future *f;
	enum status status = fdb_tx_get(tx, fdb_tx_key(tx, 0, key), mode, &f);

	return status == STATUS_OK ? &f->base : kv_future_failed(status);
}

static enum status
tx_get_range(struct fdb_tx *tx, struct str begin, struct str end,
	     const struct kv_range_options *options, struct fdb_future **ret)
{
	bool conflicts = tx_conflicts(tx, options->mode);
	struct fdb_future *f;

	TRY(tx_enter_read(tx, 2 * tx->base.store->prefix_bytes + begin.len + end.len));
	fdb_time_begin(tx);
	if (str_cmp(begin, end) > 0)
		end = begin;
	begin = fdb_tx_key(tx, 0, begin);
	end = fdb_tx_key(tx, 1, end);
	f = fdb_future_new(tx, FDB_RANGE, NULL, begin.len + end.len);
	if (!f)
		return STATUS_NOMEM;
	if (begin.len)
		memcpy(f->bounds, begin.ptr, begin.len);
	if (end.len)
		memcpy(f->bounds + begin.len, end.ptr, end.len);
	f->begin = str_of(f->bounds, begin.len);
	f->end = str_of(f->bounds + begin.len, end.len);
	f->options = *options;
	f->whole_begin = f->begin;
	f->whole_end = f->end;
	f->notes = conflicts && tx->noting;
	if (f->notes)
		fdb_notes_owe(tx, begin.len + end.len);
	/*
	 * For a reverse read with a limit the library would conflict with the whole range. So it is
	 * read as a snapshot read, and future.c adds the conflict of what has been read.
	 */
	f->conflicts = options->reverse && conflicts && !tx->noting;
	f->snapshot = options->reverse || !conflicts || tx->noting;
	tx->ranges_open = true;
	fdb_future_start(f);
	*ret = f;
	return STATUS_OK;
}

struct kv_future *
fdb_get_range(struct kv_tx *tx, struct str begin, struct str end,
	      const struct kv_range_options *options)
{
	struct fdb_future *f;
	enum status status = tx_get_range((struct fdb_tx *)tx, begin, end, options, &f);

	return status == STATUS_OK ? &f->base : kv_future_failed(status);
}

enum status
fdb_tx_wait_for_number(struct fdb_tx *tx, FDBFuture *part, uint64_t *ret)
{
	struct fdb_future *f = fdb_future_new(tx, FDB_NUMBER, part, 0);
	enum status status;

	if (!f)
		return STATUS_NOMEM;
	fdb_time_begin(tx);
	fdb_future_start(f);
	status = fdb_future_wait(f);
	if (status == STATUS_OK)
		*ret = (uint64_t)f->number;
	else
		fdb_future_explain(&f->base);
	fdb_future_release(tx, f);
	return status;
}

enum status
fdb_get_read_version(struct kv_tx *base, uint64_t *ret)
{
	struct fdb_tx *tx = (struct fdb_tx *)base;

	TRY(fdb_tx_check(tx));
	if (!tx->version)
		TRY(fdb_tx_wait_for_number(tx, fdb.transaction_get_read_version(tx->tx),
					   &tx->version));
	*ret = tx->version;
	return STATUS_OK;
}

enum status
fdb_tx_estimate(struct fdb_tx *tx, struct str begin, struct str end, uint64_t *ret)
{
	FDBFuture *part;

	TRY(fdb_tx_check(tx));
	begin = fdb_tx_key(tx, 0, begin);
	end = fdb_tx_key(tx, 1, end);
	part = fdb.transaction_get_estimated_range_size_bytes(
		tx->tx, fdb_ptr(begin), (int)begin.len, fdb_ptr(end), (int)end.len);

	return fdb_tx_wait_for_number(tx, part, ret);
}

/* ---- Writes ---- */

/* Before each write. Ranges that are under way must not see it; those in a view do not. */
static enum status
tx_enter_write(struct fdb_tx *tx, const struct fdb_note *note)
{
	TRY(fdb_tx_check(tx));
	if (tx->noting && !fdb_notes_fit(tx, note->first.len + note->second.len))
		TRY(fdb_view_leave(tx));
	if (!tx->noting)
		fdb_tx_settle_ranges(tx);
	return STATUS_OK;
}

/* Of keys as the cluster has them. */
static enum status
tx_write(struct fdb_tx *tx, struct fdb_note note)
{
	int code;

	TRY(tx_enter_write(tx, &note));
	tx->written |= note.kind != FDB_NOTE_READ_CONFLICT;
	if (tx->noting)
		return fdb_notes_add(tx, note);
	code = fdb_note_do(tx->tx, &note);
	if (code != 0)
		return err_set(&tx->base.err, fdb_status(code), "%s", fdb.get_error(code));
	return STATUS_OK;
}

static enum status
tx_write_pair(struct fdb_tx *tx, enum fdb_note_kind kind, struct str key, struct str value)
{
	return tx_write(tx, (struct fdb_note){
				    .kind = kind,
				    .first = fdb_tx_key(tx, 0, key),
				    .second = value,
			    });
}

static enum status
tx_write_range(struct fdb_tx *tx, enum fdb_note_kind kind, struct str begin, struct str end)
{
	if (str_cmp(begin, end) >= 0)
		return fdb_tx_check(tx);
	return tx_write(tx, (struct fdb_note){
				    .kind = kind,
				    .first = fdb_tx_key(tx, 0, begin),
				    .second = fdb_tx_key(tx, 1, end),
			    });
}

enum status
fdb_set(struct kv_tx *tx, struct str key, struct str value)
{
	return tx_write_pair((struct fdb_tx *)tx, FDB_NOTE_SET, key, value);
}

enum status
fdb_set_no_conflict(struct kv_tx *tx, struct str key, struct str value)
{
	return tx_write_pair((struct fdb_tx *)tx, FDB_NOTE_SET_NO_CONFLICT, key, value);
}

enum status
fdb_clear(struct kv_tx *tx, struct str key)
{
	return tx_write_pair((struct fdb_tx *)tx, FDB_NOTE_CLEAR, key, (struct str){ 0 });
}

enum status
fdb_clear_range(struct kv_tx *tx, struct str begin, struct str end)
{
	return tx_write_range((struct fdb_tx *)tx, FDB_NOTE_CLEAR_RANGE, begin, end);
}

/* Of a key as the cluster has it. */
static enum status
tx_mutate(struct fdb_tx *tx, int type, struct str key, struct str operand)
{
	return tx_write(tx, (struct fdb_note){
				    .kind = FDB_NOTE_MUTATION,
				    .mutation = type,
				    .first = key,
				    .second = operand,
			    });
}

enum status
fdb_atomic(struct kv_tx *base, enum kv_atomic op, struct str key, struct str operand)
{
	static const int types[] = {
		[KV_ADD] = FDB_MUTATION_ADD,
		[KV_MAX] = FDB_MUTATION_MAX,
		[KV_MIN] = FDB_MUTATION_MIN,
		[KV_BYTE_MAX] = FDB_MUTATION_BYTE_MAX,
		[KV_BYTE_MIN] = FDB_MUTATION_BYTE_MIN,
		[KV_COMPARE_AND_CLEAR] = FDB_MUTATION_COMPARE_AND_CLEAR,
	};
	struct fdb_tx *tx = (struct fdb_tx *)base;

	return tx_mutate(tx, types[op], fdb_tx_key(tx, 0, key), operand);
}

/* A copy of `template` with the place of the stamp behind it; NULL when out of memory. */
static char *
template_with_offset(struct str template, size_t offset)
{
	char *copy = mem_alloc(template.len + FDB_STAMP_PLACE_BYTES);

	if (!copy)
		return NULL;
	memcpy(copy, template.ptr, template.len);
	for (size_t i = 0; i < FDB_STAMP_PLACE_BYTES; i++)
		copy[template.len + i] = (char)(offset >> (8 * i));
	return copy;
}

enum status
fdb_set_versionstamped_key(struct kv_tx *base, struct str key, size_t offset, struct str value)
{
	struct fdb_tx *tx = (struct fdb_tx *)base;
	enum status status;
	char *copy;

	key = fdb_tx_key(tx, 0, key);
	copy = template_with_offset(key, base->store->prefix_bytes + offset);
	if (!copy)
		return STATUS_NOMEM;
	status = tx_mutate(tx, FDB_MUTATION_STAMPED_KEY,
			   str_of(copy, key.len + FDB_STAMP_PLACE_BYTES), value);
	mem_free(copy);
	return status;
}

enum status
fdb_set_versionstamped_value(struct kv_tx *base, struct str key, struct str value, size_t offset)
{
	struct fdb_tx *tx = (struct fdb_tx *)base;
	char *copy = template_with_offset(value, offset);
	enum status status;

	if (!copy)
		return STATUS_NOMEM;
	status = tx_mutate(tx, FDB_MUTATION_STAMPED_VALUE, fdb_tx_key(tx, 0, key),
			   str_of(copy, value.len + FDB_STAMP_PLACE_BYTES));
	mem_free(copy);
	return status;
}

enum status
fdb_touch_metadata_version(struct kv_tx *base)
{
	static const char value[METADATA_VALUE_BYTES];
	struct fdb_tx *tx = (struct fdb_tx *)base;

	TRY(fdb_tx_check(tx));
	TRY(fdb_view_leave(tx));
	TRY(tx_mutate(tx, FDB_MUTATION_STAMPED_VALUE, FDB_KEY_METADATA,
		      str_of(value, sizeof(value))));
	tx->touched_metadata = true;
	return STATUS_OK;
}

enum status
fdb_add_read_conflict(struct kv_tx *tx, struct str begin, struct str end)
{
	return tx_write_range((struct fdb_tx *)tx, FDB_NOTE_READ_CONFLICT, begin, end);
}

enum status
fdb_add_write_conflict(struct kv_tx *tx, struct str begin, struct str end)
{
	return tx_write_range((struct fdb_tx *)tx, FDB_NOTE_WRITE_CONFLICT, begin, end);
}
