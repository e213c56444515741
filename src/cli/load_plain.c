#include "cli/load_plain.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/quote.h"
#include "bson/json.h"
#include "cli/load.h"
#include "model/plain/index.h"
#include "model/plain/plain.h"

/* A document of the batch. */
struct plain_item {
	size_t from; /* in the text of the batch */
	size_t length;
	uint64_t line;
	struct plain_doc doc; /* once the batch is applied */
};

struct plain_load {
	const struct load_request *request;
	struct load_files files;
	struct kv_store *store;
	struct arena *arena; /* of one attempt at a transaction */
	struct err err;

	struct buf text; /* the documents of the batch */
	struct plain_item *items;
	size_t count;
	size_t from, to; /* those of one transaction */

	struct str header; /* the line that describes the collection */
	struct catalog_db *db;
};

/* ---- The collection ---- */

/* Creates the collection if it is missing, by the header if there is one. */
static enum status
load_create_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf room = BUF_INIT(BSON_MOST_BYTES);
	struct plain_load *l = arg;
	const struct load_request *r = l->request;
	struct str name = str_from_cstr(r->db.name);
	struct plain_dump_header header = { .scheme = r->exploded ? PLAIN_EXPLODED : PLAIN_PACKED,
					    .options = BSON_EMPTY,
					    .indexes = BSON_EMPTY };
	enum status status;

	arena_clear(l->arena);
	catalog_db_unref(l->db);
	l->db = NULL;
	if (l->header.len)
		TRY(plain_dump_header_read(l->header, &room, &header, &l->err));
	status = catalog_open(tx, NULL, CATALOG_SPACE_MONGO, name, &l->db, &l->err);
	if (status != STATUS_NOT_FOUND)
		return status;
	if (!r->create)
		return err_set(&l->err, status, "there is no collection %s", r->name);
	l->err = (struct err){ 0 };
	return plain_dump_create(tx, name, &header, l->arena, &l->err);
}

static enum status
open_body(struct kv_tx *tx, void *arg)
{
	struct plain_load *l = arg;

	catalog_db_unref(l->db);
	l->db = NULL;
	return catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(l->request->db.name),
			    &l->db, &l->err);
}

/* Indexes cannot be read in the transaction that makes them. */
static enum status
collection_open(struct plain_load *l)
{
	TRY(kv_run(l->store, load_create_body, l, NULL, &l->err));
	return l->db ? STATUS_OK : kv_run(l->store, open_body, l, NULL, &l->err);
}

/* ---- Batches ---- */

/* Opens the collection: since the last transaction it may have got an index, or lost one. */
static enum status
batch_open(struct plain_load *l, struct kv_tx *tx)
{
	uint64_t number = l->db->number;

	TRY(open_body(tx, l));
	return l->db->number == number
		       ? STATUS_OK
		       : err_set(&l->err, STATUS_NOT_FOUND,
				 "the collection was dropped and made anew while it was loaded");
}

/* Why an index does not take a document. */
static enum status
batch_refused(struct plain_load *l, const struct plain_refused *refused, enum status status)
{
	if (!refused->def)
		return status;
	return err_set(&l->err, STATUS_INVALID,
		       status == STATUS_DUPLICATE
			       ? "another document has the values that the unique index \"%s\" has "
				 "of this one"
			       : "the index \"%s\" cannot have the arrays of this document",
		       QUOTE_SHOW(refused->def->name));
}

static enum status
batch_body(struct kv_tx *tx, void *arg)
{
	struct plain_load *l = arg;
	struct plain p;

	TRY(batch_open(l, tx));
	plain_init(&p, tx, l->db, 0, &l->err);
	for (size_t i = l->from; i < l->to; i++) {
		enum status status;

		arena_clear(l->arena);
		l->files.line = l->items[i].line;
		status = plain_replace(&p, &l->items[i].doc, true, PLAIN_EVENT_REPLACE, STR(""),
				       l->arena);
		if (status == STATUS_DUPLICATE || status == STATUS_UNSUPPORTED)
			return batch_refused(l, &p.refused, status);
		TRY(status);
		/* Entries of indexes may take much more than the documents that they are of. */
		if (kv_tx_stats(tx).size_bytes > LOAD_PLAIN_TX_BYTES && i + 1 < l->to)
			l->to = i + 1;
	}
	return STATUS_OK;
}

/* What is too long for a transaction is written ahead of it. */
static enum status
batch_prepare(struct plain_load *l)
{
	for (size_t i = 0; i < l->count; i++) {
		struct plain_item *item = &l->items[i];
		struct str bytes = str_of(l->text.ptr + item->from, item->length);

		l->files.line = item->line;
		item->doc = plain_doc_of(bytes);
		if (bytes.len > PLAIN_AHEAD_BYTES)
			TRY(plain_stage(l->store, l->db, bytes, &item->doc, &l->err));
	}
	return STATUS_OK;
}

static enum status
batch_flush(void *arg)
{
	struct plain_load *l = arg;

	if (!l->count)
		return STATUS_OK;
	if (!l->db)
		TRY(collection_open(l));
	if (plain_options_are_view(plain_options_of(l->db)))
		return err_set(&l->err, STATUS_INVALID,
			       "%s is a view, which has no documents of its own", l->request->name);
	TRY(batch_prepare(l));
	for (l->from = 0; l->from < l->count; l->from = l->to) {
		l->to = l->count;
		l->files.first_line = l->items[l->from].line;
		TRY(kv_run(l->store, batch_body, l, NULL, &l->err));
		l->files.loaded += l->to - l->from;
	}
	l->count = 0;
	l->files.first_line = 0;
	buf_clear(&l->text);
	return STATUS_OK;
}

/* ---- Lines ---- */

/* Appends the document with its `_id` in front, which is made if there is none. */
static enum status
document_append(struct plain_load *l, struct str doc)
{
	char fresh[BSON_OBJECT_ID_BYTES];
	struct bson_value id;
	struct bson_element e;
	struct bson_builder b;
	struct bson_iter i;
	bool left_out = false;

	if (!bson_find(doc, STR("_id"), &id)) {
		bson_object_id_new((uint32_t)(clock_wall_ms() / 1000), fresh);
		id = (struct bson_value){ .type = BSON_OBJECT_ID,
					  .as_text = str_of(fresh, sizeof(fresh)) };
	}
	if (id.type == BSON_ARRAY || id.type == BSON_REGEX || id.type == BSON_UNDEFINED)
		return err_set(&l->err, STATUS_INVALID, "an _id cannot be of the type %s",
			       bson_type_name(id.type));
	bson_builder_init(&b, &l->text);
	bson_begin(&b);
	bson_put(&b, STR("_id"), &id);
	for (bson_iter_begin(&i, doc); bson_iter_read(&i, &e);) {
		if (!left_out && str_eq(e.name, STR("_id")))
			left_out = true;
		else
			bson_put_element(&b, &e);
	}
	bson_end(&b);
	return buf_status(&l->text);
}

/* Adds a document to the batch. */
static enum status
document_take(struct plain_load *l, const struct input_item *line)
{
	AUTO(buf_release) struct buf doc = BUF_INIT(BSON_MOST_BYTES);
	struct plain_item *item = &l->items[l->count];
	size_t from = l->text.len;

	l->files.line = line->line;
	if (!l->count)
		l->files.first_line = line->line;
	TRY(bson_json_read(line->text, &doc, &l->err));
	TRY(document_append(l, buf_str(&doc)));
	*item = (struct plain_item){ .from = from,
				     .length = l->text.len - from,
				     .line = line->line };
	if (item->length > BSON_DOCUMENT_BYTES)
		return err_set(&l->err, STATUS_DOC_TOO_LARGE,
			       "a document may have %d bytes (BSON_DOCUMENT_BYTES)",
			       BSON_DOCUMENT_BYTES);
	l->count++;
	if (l->count < l->request->batch_lines && l->text.len < LOAD_PLAIN_BATCH_BYTES)
		return STATUS_OK;
	return batch_flush(l);
}

static enum status
line_take(void *arg, const struct input_item *item)
{
	struct plain_load *l = arg;

	if (!load_is_header(item->text))
		return document_take(l, item);
	TRY(batch_flush(l));
	l->files.first_line = item->line;
	l->files.line = item->line;
	l->header = item->text;
	TRY(collection_open(l));
	l->header = STR("");
	return STATUS_OK;
}

/* ---- The whole ---- */

int
load_plain(const struct load_request *request)
{
	struct kv_options kv = { .create = request->create };
	struct plain_load l = {
		.request = request,
		.files = { .request = request, .take = line_take, .flush = batch_flush },
		.text = BUF_INIT(LOAD_PLAIN_BATCH_BYTES + BSON_MOST_BYTES),
		.arena = arena_new(LOAD_ARENA_BYTES),
		.items = mem_alloc(request->batch_lines * sizeof(*l.items)),
	};
	enum status status = l.arena && l.items ? STATUS_OK : STATUS_NOMEM;

	l.files.arg = &l;
	l.files.err = &l.err;
	if (status == STATUS_OK)
		status = cli_open_store(request->store_url, &kv, &l.store);
	if (status == STATUS_OK)
		status = load_files_run(&l.files);
	catalog_db_unref(l.db);
	kv_close(l.store);
	arena_free(l.arena);
	mem_free(l.items);
	buf_release(&l.text);
	return status == STATUS_OK ? CLI_OK : CLI_FAILED;
}
