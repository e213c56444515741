/* insert. Many documents are written in several transactions, in order. */
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/validate.h"
#include "door/mongo/cmd/write.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/run.h"
#include "door/mongo/txn/txn.h"

enum {
	INSERT_ID_ROOM = 100, /* for an `_id` that a document is given */
};

const struct arg args_insert[] = {
	[WRITE_STATEMENTS] = { "documents", ARG_DOCUMENTS | ARG_REQUIRED },
	[WRITE_ORDERED] = { "ordered", ARG_BOOL },
	[WRITE_BYPASS] = { "bypassDocumentValidation", ARG_BOOL },
	{ NULL, 0 },
};

enum status
writing_insert(struct writing *w, struct str given, bool is_new, size_t *bytes)
{
	struct call *c = w->call;
	struct plain_doc one = w->staged;
	struct bson_value id = BSON_OF_NULL;
	struct str doc = one.bytes;
	enum status status = STATUS_OK;

	if (!w->is_staged) {
		status = data_document(c, given, &doc);
		if (status == STATUS_OK)
			one = plain_doc_of(doc);
		one.is_new = is_new;
	}
	if (status == STATUS_OK)
		status = validate_document(&w->data, doc, STR(""));
	if (status == STATUS_OK)
		status = data_keep_images(&w->data, STR(""), one.bytes);
	if (status == STATUS_OK)
		status = plain_insert(&w->data.plain, &one, c->arena);
	*bytes += given.len;
	if (status == STATUS_EXISTS) {
		(void)bson_find(doc, STR("_id"), &id);
		return writing_note_duplicate(w, &id);
	}
	w->now.matched += status == STATUS_OK;
	if (status == STATUS_OK)
		return retry_note(&w->retry, w->now.index, STR(""));
	return writing_settle(w, status);
}

bool
writing_insert_is_large(struct str given)
{
	return given.len > PLAIN_AHEAD_BYTES - INSERT_ID_ROOM;
}

/* Which of the documents of a page are new, by their places in it. */
struct page_news {
	bool *are_new;
	size_t count; /* nothing is known of those behind */
};

/*
 * Looks for the `_id`s of a page before the first of its documents is written. One that is to be
 * given its `_id` here, or that was inserted by this command before it was sent again, ends that.
 */
static enum status
insert_look(struct writing *w, struct page_news *ret)
{
	struct arena *arena = w->call->arena;
	struct data_list list = w->now.list;
	struct bson_value *ids;
	size_t count = 0, bytes = 0;
	struct str doc;

	*ret = (struct page_news){ 0 };
	if (!w->data.is_there || w->is_staged || w->retry.places.len)
		return STATUS_OK;
	while (count < DATA_PAGE_DOCS && bytes < DATA_PAGE_BYTES && data_list_next(&list, &doc) &&
	       !writing_insert_is_large(doc)) {
		bytes += doc.len;
		count++;
	}
	if (count < 2)
		return STATUS_OK;
	ids = arena_alloc(arena, count * sizeof(*ids));
	ret->are_new = arena_alloc(arena, count * sizeof(*ret->are_new));
	if (!ids || !ret->are_new)
		return STATUS_LIMIT;
	list = w->now.list;
	while (ret->count < count && data_list_next(&list, &doc) &&
	       bson_find(doc, STR("_id"), &ids[ret->count]))
		ret->count++;
	return plain_find_new(&w->data.plain, ids, ret->count, arena, ret->are_new);
}

static enum status
insert_page(struct kv_tx *tx, void *arg)
{
	struct writing *w = arg;
	struct page_news news;
	struct str known;
	size_t bytes = 0;

	TRY(writing_attempt(w, tx));
	TRY(insert_look(w, &news));
	for (size_t docs = 0; docs < DATA_PAGE_DOCS && bytes < DATA_PAGE_BYTES; docs++) {
		struct data_list before = w->now.list;
		struct str doc;

		if (!data_list_next(&w->now.list, &doc)) {
			w->now.ends = true;
			break;
		}
		if (retry_find(&w->retry, w->now.index, &known)) {
			w->now.matched++;
			w->now.index++;
			if (w->is_staged)
				break; /* it was this one */
			continue;
		}
		/* A large one has a transaction of its own, for which it is staged. */
		if (writing_insert_is_large(doc) && (docs || !w->is_staged)) {
			w->now.list = before;
			break;
		}
		TRY(writing_insert(w, doc, docs < news.count && news.are_new[docs], &bytes));
		w->now.index++;
		if (w->now.ends || w->is_staged)
			break;
	}
	return retry_end(&w->retry, tx);
}

static enum status
make_collection(struct kv_tx *tx, void *arg)
{
	struct writing *w = arg;

	return data_begin(&w->data, tx);
}

enum status
writing_insert_stage(struct writing *w, struct str given, const struct data_list *behind)
{
	struct call *c = w->call;
	enum status status;
	struct str doc;

	if (c->in_transaction)
		return txn_refuse_large(c);
	/* Its collection has to be there then. */
	TRY(call_run(c, make_collection, w));
	status = data_refuse_view(&w->data);
	if (status == STATUS_OK)
		status = data_document(c, given, &doc);
	if (status == STATUS_OK)
		status = plain_stage(c->mongo->config.store, w->data.db, doc, &w->staged, &c->err);
	if (status == STATUS_OK) {
		w->is_staged = true;
		w->data.mark = arena_mark(c->arena); /* the document lies there */
		return STATUS_OK;
	}
	w->now = w->done;
	TRY(writing_settle(w, status));
	w->now.list = *behind;
	w->now.index++;
	writing_keep(w);
	return STATUS_OK;
}

/* Writes the next document ahead if it is large. */
static enum status
insert_stage(struct writing *w)
{
	struct data_list list = w->done.list;
	struct str given;

	if (!data_list_next(&list, &given) || !writing_insert_is_large(given))
		return STATUS_OK;
	return writing_insert_stage(w, given, &list);
}

enum status
mongo_run_insert(struct call *c)
{
	struct writing w;
	enum status status = writing_begin(&w, c, true);

	if (status == STATUS_OK)
		status = writing_run(&w, insert_page, insert_stage);
	return writing_answer(&w, status);
}
