/*
 * A transaction that reads in a view shares the view's transaction of the library with others, and
 * cannot write in it. So its writes and conflict ranges are kept as notes. They are done when it
 * commits, mostly in a joint commit (joint.c), or when it reads something after a write: then it
 * gets a transaction of the library's of its own, which shows it its writes.
 *
 * A note is a head and two texts. Keys are as the cluster has them.
 */
#include <assert.h>

#include "kv/fdb/fdb_int.h"
#include "kv/fdb/joint.h"

enum {
	ORDER_BYTES = KV_VERSIONSTAMP_BYTES - KV_VERSIONSTAMP_TX_BYTES,
};

struct note_head {
	uint8_t kind;
	uint8_t mutation;
	uint16_t first_bytes;
	uint32_t second_bytes;
};

_Static_assert(FDB_KEY_BYTES <= UINT16_MAX, "a key's length fits into a note's head");

/* ---- Orders of stamps ---- */

/* Where the stamp is; `stamped` ends with that place. */
static size_t
stamp_place(struct str stamped)
{
	const char *at = stamped.ptr + stamped.len - FDB_STAMP_PLACE_BYTES;
	size_t place = 0;

	for (size_t i = 0; i < FDB_STAMP_PLACE_BYTES; i++)
		place |= (size_t)(uint8_t)at[i] << (8 * i);
	return place;
}

struct str
fdb_note_before_stamp(struct str stamped)
{
	return str_of(stamped.ptr, stamp_place(stamped));
}

/* Where the order is, behind the stamp; SIZE_MAX: it has none. */
static size_t
order_place(struct str stamped)
{
	size_t place = stamp_place(stamped) + KV_VERSIONSTAMP_TX_BYTES;

	return place + ORDER_BYTES <= stamped.len - FDB_STAMP_PLACE_BYTES ? place : SIZE_MAX;
}

static uint32_t
order_read(const char *at)
{
	return (uint32_t)(uint8_t)at[0] << 8 | (uint8_t)at[1];
}

/* The template of a note that gets a stamp; NULL: it gets none. */
static struct str *
note_template(struct fdb_note *note)
{
	if (note->kind != FDB_NOTE_MUTATION)
		return NULL;
	if (note->mutation == FDB_MUTATION_STAMPED_KEY)
		return &note->first;
	return note->mutation == FDB_MUTATION_STAMPED_VALUE ? &note->second : NULL;
}

/* How many orders the transaction needs when it has this note. */
static uint32_t
note_orders(struct fdb_note *note)
{
	struct str *template = note_template(note);
	size_t place = template ? order_place(*template) : SIZE_MAX;

	if (!template)
		return 0;
	/* Without an order two of them would be the same, and no other transaction may join. */
	return place == SIZE_MAX ? FDB_JOINT_ORDERS + 1 : order_read(template->ptr + place) + 1;
}

/* ---- Writing and reading notes ---- */

bool
fdb_notes_fit(const struct fdb_tx *tx, size_t bytes)
{
	return tx->notes.len + tx->notes_owed + sizeof(struct note_head) + bytes <= FDB_NOTES_BYTES;
}

void
fdb_notes_owe(struct fdb_tx *tx, size_t bytes)
{
	tx->notes_owed += sizeof(struct note_head) + bytes;
}

void
fdb_notes_pay(struct fdb_tx *tx, size_t bytes)
{
	assert(tx->notes_owed >= sizeof(struct note_head) + bytes);
	tx->notes_owed -= sizeof(struct note_head) + bytes;
}

enum status
fdb_notes_add(struct fdb_tx *tx, struct fdb_note note)
{
	const struct note_head head = {
		.kind = (uint8_t)note.kind,
		.mutation = (uint8_t)note.mutation,
		.first_bytes = (uint16_t)note.first.len,
		.second_bytes = (uint32_t)note.second.len,
	};
	uint32_t orders = note_orders(&note);

	assert(note.first.len <= UINT16_MAX);
	if (orders > tx->orders)
		tx->orders = orders;
	buf_append(&tx->notes, &head, sizeof(head));
	buf_append_str(&tx->notes, note.first);
	buf_append_str(&tx->notes, note.second);
	return buf_status(&tx->notes) == STATUS_OK ? STATUS_OK : STATUS_NOMEM;
}

enum status
fdb_notes_add_key_conflict(struct fdb_tx *tx, struct str key)
{
	char end[FDB_KEY_BYTES + 1];

	assert(key.len < sizeof(end));
	if (key.len)
		memcpy(end, key.ptr, key.len);
	end[key.len] = 0;
	return fdb_notes_add(tx, (struct fdb_note){
					 .kind = FDB_NOTE_READ_CONFLICT,
					 .first = key,
					 .second = str_of(end, key.len + 1),
				 });
}

bool
fdb_notes_next(struct str *rest, struct fdb_note *ret)
{
	struct note_head head;

	if (rest->len == 0)
		return false;
	memcpy(&head, rest->ptr, sizeof(head));
	*rest = str_skip(*rest, sizeof(head));
	*ret = (struct fdb_note){
		.kind = head.kind,
		.mutation = head.mutation,
		.first = str_of(rest->ptr, head.first_bytes),
		.second = str_of(rest->ptr + head.first_bytes, head.second_bytes),
	};
	*rest = str_skip(*rest, (size_t)head.first_bytes + head.second_bytes);
	return true;
}

/* ---- Doing what they say ---- */

int
fdb_note_do(FDBTransaction *tx, const struct fdb_note *note)
{
	const uint8_t *first = fdb_ptr(note->first), *second = fdb_ptr(note->second);
	int first_bytes = (int)note->first.len, second_bytes = (int)note->second.len;
	int code = 0;

	switch (note->kind) {
	case FDB_NOTE_SET_NO_CONFLICT:
		/* It holds for the next write alone, and the library takes calls in their order. */
		code = fdb.transaction_set_option(tx, FDB_TX_NEXT_WRITE_NO_CONFLICT, NULL, 0);
		if (code != 0)
			break;
		fdb.transaction_set(tx, first, first_bytes, second, second_bytes);
		break;
	case FDB_NOTE_SET:
		fdb.transaction_set(tx, first, first_bytes, second, second_bytes);
		break;
	case FDB_NOTE_CLEAR:
		fdb.transaction_clear(tx, first, first_bytes);
		break;
	case FDB_NOTE_CLEAR_RANGE:
		fdb.transaction_clear_range(tx, first, first_bytes, second, second_bytes);
		break;
	case FDB_NOTE_MUTATION:
		fdb.transaction_atomic_op(tx, first, first_bytes, second, second_bytes,
					  note->mutation);
		break;
	case FDB_NOTE_READ_CONFLICT:
		code = fdb.transaction_add_conflict_range(tx, first, first_bytes, second,
							  second_bytes, FDB_CONFLICT_READ);
		break;
	case FDB_NOTE_WRITE_CONFLICT:
		code = fdb.transaction_add_conflict_range(tx, first, first_bytes, second,
							  second_bytes, FDB_CONFLICT_WRITE);
		break;
	}
	return code;
}

static void
note_raise_order(struct buf *notes, struct fdb_note *note, uint32_t by)
{
	struct str *template = note_template(note);
	size_t place = template ? order_place(*template) : SIZE_MAX;
	uint32_t order;
	char *at;

	if (place == SIZE_MAX)
		return;
	/* The template points into the notes, through which it may be written to. */
	at = notes->ptr + (template->ptr - notes->ptr) + place;
	order = order_read(at) + by;
	assert(order <= UINT16_MAX);
	at[0] = (char)(order >> 8);
	at[1] = (char)order;
}

static int
notes_do(const struct fdb_tx *tx, FDBTransaction *library, bool reads)
{
	struct str rest = buf_str(&tx->notes);
	struct fdb_note note;
	int code = 0;

	while (code == 0 && fdb_notes_next(&rest, &note))
		if ((note.kind == FDB_NOTE_READ_CONFLICT) == reads)
			code = fdb_note_do(library, &note);
	return code;
}

/*
 * Read conflicts come first. The library drops a read conflict with a key that the transaction has
 * already written. But a range is noted only when it has been read, which may be after a later
 * write has been noted.
 */
int
fdb_notes_do(struct fdb_tx *tx, FDBTransaction *library)
{
	int code = notes_do(tx, library, true);

	if (code == 0)
		code = notes_do(tx, library, false);
	return code ? code : fdb_notes_do_metadata(library);
}

void
fdb_notes_raise_orders(struct fdb_tx *tx, uint32_t by)
{
	struct str rest = buf_str(&tx->notes);
	struct fdb_note note;

	if (by == 0 || tx->orders == 0)
		return;
	while (fdb_notes_next(&rest, &note))
		note_raise_order(&tx->notes, &note, by);
}

int
fdb_notes_do_metadata(FDBTransaction *library)
{
	struct str key = FDB_KEY_METADATA;

	/* With the zero byte behind it: the key after this one. */
	return fdb.transaction_add_conflict_range(library, fdb_ptr(key), (int)key.len, fdb_ptr(key),
						  (int)key.len + 1, FDB_CONFLICT_READ);
}
