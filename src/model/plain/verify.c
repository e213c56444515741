/* Checks a collection: documents and their leaves, texts in both directions, events, the count. */
#include <endian.h>

#include "catalog/check.h"
#include "model/plain/plain_int.h"

#define PLAIN_FINDING_DOCUMENT "plain_document" /* what is stored is no document with that key */
#define PLAIN_FINDING_TEXT     "plain_text"     /* a text that is not whole, or not its owner's */
#define PLAIN_FINDING_COUNT    "plain_count"    /* the counter is not the number of documents */
#define PLAIN_FINDING_OPTIONS  "plain_options"

enum {
	VERIFY_ARENA_BYTES = 256 * 1024 * 1024,
};

/* The record that is gone through: its leaves come one after the other. */
struct verify_record {
	struct arena *arena;
	struct buf key; /* of its root; empty: none has come yet */
	bool good;      /* the root could be parsed */
	struct plain_root root;
	struct plain_pairs leaves;
};

/* The key of a document is the one of its `_id`. */
static void
check_document(struct catalog_verify *v, struct str key, struct str document)
{
	AUTO(buf_release) struct buf expected = CATALOG_KEY_INIT;
	struct bson_value id;
	struct bson_iter i;
	struct bson_element e;

	if (bson_check(document, NULL) != STATUS_OK) {
		catalog_verify_found(v, PLAIN_FINDING_DOCUMENT, key, "not valid BSON");
		return;
	}
	bson_iter_begin(&i, document);
	if (!bson_iter_read(&i, &e) || !str_eq(e.name, STR("_id"))) {
		catalog_verify_found(v, PLAIN_FINDING_DOCUMENT, key,
				     "it does not begin with its _id");
		return;
	}
	id = e.value;
	if (plain_key_record(v->db, &id, &expected, NULL) != STATUS_OK ||
	    !str_eq(buf_str(&expected), key))
		catalog_verify_found(v, PLAIN_FINDING_DOCUMENT, key,
				     "its _id does not belong to this key");
}

/* A document refers to a text, which has to name the document as its owner. */
static enum status
check_reference(struct catalog_verify *v, struct verify_record *record)
{
	AUTO(buf_release) struct buf space = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct plain_text text = { 0 };
	struct kv_future *f;
	struct str value;

	plain_key_space(&space, v->db, PLAIN_SPACE_RECORDS);
	plain_key_text(v->db, record->root.text, &key);
	TRY(catalog_key_status(&space));
	TRY(catalog_key_status(&key));
	TRY(catalog_verify_get(v, buf_str(&key), &f));
	if (!kv_future_value(f, &value) ||
	    !catalog_verify_parsed_in(v, plain_text_parse(value, record->arena, &text, NULL),
				      record->arena) ||
	    text.length != record->root.length ||
	    !str_eq(text.owner, str_skip(buf_str(&record->key), space.len)))
		catalog_verify_found(v, PLAIN_FINDING_TEXT, buf_str(&record->key),
				     "the text that it refers to is not there, or another's");
	kv_future_free(f);
	return STATUS_OK;
}

/* All of a record has come. */
static enum status
record_end(struct catalog_verify *v, struct verify_record *record)
{
	struct str key = buf_str(&record->key), document;
	enum status status;

	if (!key.len)
		return STATUS_OK;
	v->sum.documents++;
	v->sum.leaves += record->leaves.count;
	if (!record->good)
		return STATUS_OK;
	if (record->root.form != PLAIN_FORM_LEAVES) {
		v->sum.packed++;
		if (record->leaves.count)
			catalog_verify_found(v, PLAIN_FINDING_DOCUMENT, key,
					     "a document in one piece has leaves");
		if (record->root.form == PLAIN_FORM_TEXT)
			return check_reference(v, record);
		check_document(v, key, record->root.document);
		return STATUS_OK;
	}
	status = plain_assemble(&record->root, record->leaves.pairs, record->leaves.count,
				record->arena, &document);
	if (status == STATUS_CORRUPT || status == STATUS_DOC_TOO_LARGE) {
		catalog_verify_found(v, PLAIN_FINDING_DOCUMENT, key,
				     "its leaves are not those of a document");
		return STATUS_OK;
	}
	TRY(status);
	check_document(v, key, document);
	if (document.len > record->root.length)
		catalog_verify_found(v, PLAIN_FINDING_DOCUMENT, key,
				     "it is longer than its root says");
	return STATUS_OK;
}

static enum status
record_begin(struct catalog_verify *v, struct verify_record *record, const struct kv_pair *pair)
{
	struct err err = { 0 };
	enum status status;
	struct str value;

	arena_clear(record->arena);
	record->leaves = (struct plain_pairs){ 0 };
	buf_clear(&record->key);
	buf_append_str(&record->key, pair->key);
	TRY(buf_status(&record->key));
	value = arena_dup(record->arena, pair->value);
	if (!value.ptr)
		return STATUS_LIMIT;
	status = plain_root_parse(value, record->arena, &record->root, &err);
	record->good = catalog_verify_parsed_in(v, status, record->arena);
	if (!record->good)
		catalog_verify_unreadable(v, status, &err, pair->key, "not a document");
	return STATUS_OK;
}

static enum status
record_pair(struct catalog_verify *v, struct verify_record *record, const struct kv_pair *pair)
{
	size_t len;

	if (plain_key_record_bytes(v->db, pair->key, &len) != STATUS_OK) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key, "not a document's key");
		return STATUS_OK;
	}
	if (len == pair->key.len) {
		TRY(record_end(v, record));
		return record_begin(v, record, pair);
	}
	if (!record->key.len || !str_starts_with(pair->key, buf_str(&record->key))) {
		catalog_verify_found(v, PLAIN_FINDING_DOCUMENT, pair->key,
				     "a leaf without a document");
		return STATUS_OK;
	}
	return plain_pairs_add(&record->leaves, record->arena, str_skip(pair->key, record->key.len),
			       pair->value);
}

/* A document and its leaves. */
static size_t
record_unit(const struct catalog_verify *v, const struct catalog_verify_cursor *c)
{
	size_t len;

	return plain_key_record_bytes(v->db, c->pair.key, &len) == STATUS_OK ? len - c->prefix_len
									     : 0;
}

static enum status
record_check(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *record)
{
	return record_pair(v, record, &c->pair);
}

/* `range`: NULL for all of them. */
static enum status
records_range(struct catalog_verify *v, struct catalog_verify_range *range)
{
	struct verify_record record = { .arena = arena_new(VERIFY_ARENA_BYTES),
					.key = CATALOG_KEY_INIT };
	const struct catalog_verify_walk walk = { PLAIN_SPACE_RECORDS, "the document", record_unit,
						  record_check, &record };
	enum status status = record.arena ? STATUS_OK : STATUS_NOMEM;

	if (status == STATUS_OK)
		status = catalog_verify_walk(v, &walk, range);
	if (status == STATUS_OK)
		status = record_end(v, &record);
	buf_release(&record.key);
	arena_free(record.arena);
	return status;
}

/* ---- Texts ---- */

struct verify_text {
	struct buf key; /* of its header */
	uint64_t left;  /* bytes that are still to come */
	uint64_t next;  /* chunk */
	bool whole;     /* it is to be: one that was written ahead need not be */
};

/* The owner of a text refers to it. */
static enum status
check_owner(struct catalog_verify *v, const struct plain_text *text, const struct verify_text *t,
	    struct str id)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct plain_root root = { 0 };
	struct kv_future *f;
	struct str value;

	plain_key_space(&key, v->db, PLAIN_SPACE_RECORDS);
	buf_append_str(&key, text->owner);
	TRY(catalog_key_status(&key));
	TRY(catalog_verify_get(v, buf_str(&key), &f));
	if (!kv_future_value(f, &value) ||
	    plain_root_parse(value, v->scratch, &root, NULL) != STATUS_OK ||
	    root.form != PLAIN_FORM_TEXT || !str_eq(str_of(root.text, sizeof(root.text)), id))
		catalog_verify_found(v, PLAIN_FINDING_TEXT, buf_str(&t->key),
				     "no document refers to this text");
	kv_future_free(f);
	return STATUS_OK;
}

/* A text that was written ahead is in the list of those, or nobody would remove it. */
static enum status
check_staged(struct catalog_verify *v, const struct verify_text *t, struct str id)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str ignored;

	plain_key_staged(v->db, (const uint8_t *)id.ptr, &key);
	TRY(catalog_key_status(&key));
	TRY(catalog_verify_get(v, buf_str(&key), &f));
	if (!kv_future_value(f, &ignored))
		catalog_verify_found(v, PLAIN_FINDING_TEXT, buf_str(&t->key),
				     "it was written ahead, and is not in the list of such texts");
	kv_future_free(f);
	return STATUS_OK;
}

static void
text_end(struct catalog_verify *v, struct verify_text *t)
{
	if (t->key.len && t->whole && t->left)
		catalog_verify_found(v, PLAIN_FINDING_TEXT, buf_str(&t->key),
				     "chunks of the text are missing");
	buf_clear(&t->key);
}

static enum status
text_header(struct catalog_verify *v, struct verify_text *t, const struct kv_pair *pair,
	    struct str id)
{
	struct plain_text text = { 0 };
	struct err err = { 0 };
	enum status status;

	text_end(v, t);
	arena_clear(v->scratch);
	status = plain_text_parse(pair->value, v->scratch, &text, &err);
	if (status != STATUS_OK) {
		catalog_verify_unreadable(v, status, &err, pair->key, "not a text");
		return STATUS_OK;
	}
	buf_append_str(&t->key, pair->key);
	TRY(buf_status(&t->key));
	t->left = text.length;
	t->next = 0;
	t->whole = !text.staged_ms;
	return t->whole ? check_owner(v, &text, t, id) : check_staged(v, t, id);
}

static enum status
text_pair(struct catalog_verify *v, struct verify_text *t, const struct kv_pair *pair,
	  struct str tail)
{
	struct tuple_reader r = tuple_reader(tail);
	struct tuple_elem e;
	uint64_t n;

	if (tuple_next(&r, &e) != STATUS_OK || e.kind != TUPLE_UUID) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key, "not a text's key");
		return STATUS_OK;
	}
	if (!r.rest.len)
		return text_header(v, t, pair, e.raw);
	if (tuple_next_u64(&r, &n) != STATUS_OK || r.rest.len || !t->key.len ||
	    !str_starts_with(pair->key, buf_str(&t->key)) || n != t->next ||
	    pair->value.len != (t->left < DOC_CHUNK_BYTES ? t->left : DOC_CHUNK_BYTES)) {
		catalog_verify_found(v, PLAIN_FINDING_TEXT, pair->key,
				     "a chunk that no text can have here");
		return STATUS_OK;
	}
	t->next++;
	t->left -= pair->value.len;
	return STATUS_OK;
}

/* A text's header and its chunks. */
static size_t
text_unit(const struct catalog_verify *v, const struct catalog_verify_cursor *c)
{
	struct tuple_reader r = tuple_reader(c->tail);
	struct tuple_elem e;

	(void)v;
	return tuple_next(&r, &e) == STATUS_OK && e.kind == TUPLE_UUID ? c->tail.len - r.rest.len
								       : 0;
}

static enum status
text_check(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *text)
{
	return text_pair(v, text, &c->pair, c->tail);
}

/* `range`: NULL for all of them. */
static enum status
texts_range(struct catalog_verify *v, struct catalog_verify_range *range)
{
	struct verify_text t = { .key = CATALOG_KEY_INIT };
	const struct catalog_verify_walk walk = { PLAIN_SPACE_TEXTS, "the text", text_unit,
						  text_check, &t };
	enum status status = catalog_verify_walk(v, &walk, range);

	if (status == STATUS_OK)
		text_end(v, &t);
	buf_release(&t.key);
	return status;
}

/* A pair of the list of texts that were written ahead. */
static enum status
staged_pair(struct catalog_verify *v, const struct catalog_verify_cursor *c, uint64_t *images)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct tuple_reader r = tuple_reader(c->tail);
	struct tuple_reader ms = tuple_reader(c->pair.value);
	struct plain_text text = { 0 };
	struct kv_future *f = NULL;
	struct tuple_elem e;
	struct str value;
	uint64_t ignored;

	if (tuple_next(&r, &e) != STATUS_OK || e.kind != TUPLE_UUID || r.rest.len ||
	    (c->pair.value.len && (tuple_next_u64(&ms, &ignored) != STATUS_OK || ms.rest.len))) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, c->pair.key,
				     "not a text that was written ahead");
		return STATUS_OK;
	}
	if (c->pair.value.len) {
		(*images)++;
		return STATUS_OK;
	}
	plain_key_text(v->db, (const uint8_t *)e.raw.ptr, &key);
	TRY(catalog_key_status(&key));
	TRY(catalog_verify_get(v, buf_str(&key), &f));
	if (!kv_future_value(f, &value) ||
	    !catalog_verify_parsed(v, plain_text_parse(value, v->scratch, &text, NULL)) ||
	    !text.staged_ms)
		catalog_verify_found(v, PLAIN_FINDING_TEXT, c->pair.key,
				     "no text was written ahead under this id");
	kv_future_free(f);
	return STATUS_OK;
}

static enum status
pairs_range(struct catalog_verify *v, struct catalog_verify_range *range)
{
	return catalog_verify_walk(v, range->arg, range);
}

/* A pair of the list of texts that were written ahead, which names those, and no others. */
static enum status
staged_check(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *images)
{
	return staged_pair(v, c, images);
}

static struct catalog_verify_walk
staged_walk(uint64_t *images)
{
	return (struct catalog_verify_walk){ PLAIN_SPACE_STAGED, "the pair", NULL, staged_check,
					     images };
}

/* ---- The rest ---- */

static enum status
event_check(struct catalog_verify *v, const struct catalog_verify_cursor *c, void *arg)
{
	struct plain_event event = { 0 };
	struct err err = { 0 };
	enum status status = plain_seq_parse(c->tail, &event.seq);

	(void)arg;
	arena_clear(v->scratch);
	if (status == STATUS_OK)
		status = plain_event_parse(c->pair.value, v->scratch, &event, &err);
	if (status == STATUS_NEWER)
		catalog_verify_unreadable(v, status, &err, c->pair.key, "not an event");
	else if (!catalog_verify_parsed(v, status) ||
		 (event.detail.len && bson_check(event.detail, NULL) != STATUS_OK))
		catalog_verify_found(v, PLAIN_FINDING_EVENT, c->pair.key, "not an event");
	return STATUS_OK;
}

static struct catalog_verify_walk
log_walk(void)
{
	return (struct catalog_verify_walk){ PLAIN_SPACE_LOG, "the event", NULL, event_check,
					     NULL };
}

enum {
	ANY_COUNT = -1, /* that documents are not counted, and the counter is not compared */
};

/* A subspace that is one key. */
static enum status
verify_single(struct catalog_verify *v, enum plain_space space, int64_t documents)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	uint64_t count = 0;
	bool good = true;

	TRY(catalog_verify_cursor_open(v, &c, space));
	while (!c.done) {
		if (c.tail.len)
			catalog_verify_found(v, CATALOG_FINDING_KEY, c.pair.key,
					     "nothing can be at this place");
		else if (space == PLAIN_SPACE_COUNT)
			good = c.pair.value.len == CATALOG_COUNTER_BYTES;
		else if (space == PLAIN_SPACE_CHANGED && c.pair.value.len != KV_VERSIONSTAMP_BYTES)
			catalog_verify_found(v, CATALOG_FINDING_VALUE, c.pair.key,
					     "not a versionstamp");
		if (space == PLAIN_SPACE_COUNT && good)
			memcpy(&count, c.pair.value.ptr, sizeof(count));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	if (space != PLAIN_SPACE_COUNT ||
	    (good && (documents == ANY_COUNT || (int64_t)le64toh(count) == documents)))
		return STATUS_OK;
	TRY(plain_key_single(v->db, space, &v->key));
	catalog_verify_found(v, PLAIN_FINDING_COUNT, buf_str(&v->key),
			     good ? "the counter says %lld, and there are %lld documents"
				  : "not a counter (%lld, of %lld documents)",
			     (long long)le64toh(count), (long long)documents);
	return STATUS_OK;
}

static enum status
verify_options(struct catalog_verify *v)
{
	void *extension = NULL;
	unsigned failures = 0;
	enum status status;
	struct err err;

	for (;;) {
		err = (struct err){ 0 };
		status = plain_extend(v->tx, v->db, &extension, &err);
		plain_extension_free(extension);
		if (status == STATUS_CORRUPT || status == STATUS_NEWER)
			break;
		if (status == STATUS_OK)
			return STATUS_OK;
		TRY(catalog_verify_again(v, &failures, status));
	}
	TRY(plain_key_single(v->db, PLAIN_SPACE_OPTIONS, &v->key));
	catalog_verify_found(v, PLAIN_FINDING_OPTIONS, buf_str(&v->key), "%s", err.text);
	return STATUS_OK;
}

static enum status
verify_singles(struct catalog_verify *v)
{
	TRY(verify_options(v));
	TRY(verify_single(v, PLAIN_SPACE_OPTIONS, ANY_COUNT));
	TRY(verify_single(v, PLAIN_SPACE_CHANGED, ANY_COUNT));
	return verify_single(v, PLAIN_SPACE_COUNT, ANY_COUNT);
}

/* How many documents and images there are takes all of them at one version, and is not told. */
static enum status
verify_in_ranges(struct catalog_verify *v)
{
	uint64_t ignored = 0;
	struct catalog_verify_walk staged = staged_walk(&ignored), log = log_walk();

	TRY(catalog_verify_ranges(v, records_range, NULL));
	TRY(catalog_verify_ranges(v, texts_range, NULL));
	TRY(catalog_verify_ranges(v, pairs_range, &staged));
	TRY(catalog_verify_ranges(v, pairs_range, &log));
	TRY(plain_verify_images_in_ranges(v));
	TRY(plain_verify_indexes_in_ranges(v));
	return catalog_verify_once(v, verify_singles, "options and counters");
}

enum status
plain_verify(struct catalog_verify *v)
{
	uint64_t before = v->sum.documents, images = 0;
	const struct catalog_verify_walk staged = staged_walk(&images), log = log_walk();

	if (catalog_verify_needs_ranges(v))
		return verify_in_ranges(v);
	TRY(verify_options(v));
	TRY(records_range(v, NULL));
	TRY(texts_range(v, NULL));
	TRY(catalog_verify_walk(v, &staged, NULL));
	TRY(catalog_verify_walk(v, &log, NULL));
	TRY(plain_verify_images(v, images));
	TRY(plain_verify_indexes(v));
	TRY(verify_single(v, PLAIN_SPACE_OPTIONS, 0));
	TRY(verify_single(v, PLAIN_SPACE_CHANGED, 0));
	return verify_single(v, PLAIN_SPACE_COUNT, (int64_t)(v->sum.documents - before));
}
