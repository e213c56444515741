/* Collections, views and changes of an import from MongoDB's protocol. */
#include <stdio.h>
#include <string.h>

#include "import/mongo.h"

enum {
	CODE_GONE = 26,    /* NamespaceNotFound */
	CODE_EXISTS = 48,  /* NamespaceExists */
	CODE_KILLED = 175, /* QueryPlanKilled: of a cursor whose collection went */
};

static void
misfit(struct mongo *m, const char *db, const char *collection, const char *what, const char *why)
{
	import_misfit(m->import, "%s.%s: %s: %s", db, collection, what, why);
}

static const char *
name_of(const bson_t *info)
{
	bson_iter_t it;

	return bson_iter_init_find(&it, info, "name") && BSON_ITER_HOLDS_UTF8(&it)
		       ? bson_iter_utf8(&it, NULL)
		       : "";
}

/* A member that is a document, as one that borrows it; empty if there is none. */
static bool
document_of(const bson_t *from, const char *name, bson_t *ret)
{
	bson_iter_t it;
	const uint8_t *bytes;
	uint32_t len;

	if (!bson_iter_init_find(&it, from, name) || !BSON_ITER_HOLDS_DOCUMENT(&it))
		return false;
	bson_iter_document(&it, &len, &bytes);
	return bson_init_static(ret, bytes, len);
}

/* ---- Making collections ---- */

static bool
create(struct mongo *m, const char *db, const char *name, const bson_t *options, bson_error_t *why)
{
	bson_t command = BSON_INITIALIZER;
	bool ok;

	BSON_APPEND_UTF8(&command, "create", name);
	if (options)
		bson_concat(&command, options);
	ok = mongoc_client_command_simple(m->target, db, &command, NULL, NULL, why);
	bson_destroy(&command);
	return ok || why->code == CODE_EXISTS;
}

/* With its options, and if they are refused without. */
static enum status
make_collection(struct mongo *m, const char *db, const bson_t *info, struct err *err)
{
	const char *name = name_of(info);
	bool has_options;
	bson_t options;
	bson_error_t why = { 0 };

	has_options = document_of(info, "options", &options);
	if (create(m, db, name, has_options ? &options : NULL, &why))
		return STATUS_OK;
	misfit(m, db, name, "its options", why.message);
	return create(m, db, name, NULL, &why) ? STATUS_OK : mongo_failed(name, &why, err);
}

enum status
mongo_copy_view(struct mongo *m, const char *db, const bson_t *info, struct err *err)
{
	const char *name = name_of(info);
	bson_t options;
	bson_error_t why = { 0 };

	(void)err;
	if (document_of(info, "options", &options) && !create(m, db, name, &options, &why))
		misfit(m, db, name, "a view", why.message);
	return STATUS_OK;
}

/* ---- Indexes ---- */

static void
make_index(struct mongo *m, const char *db, const char *collection, const bson_t *index)
{
	bson_t command = BSON_INITIALIZER, list, spec;
	bson_error_t why;

	BSON_APPEND_UTF8(&command, "createIndexes", collection);
	BSON_APPEND_ARRAY_BEGIN(&command, "indexes", &list);
	BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &spec);
	bson_copy_to_excluding_noinit(index, &spec, "ns", "v", "background", NULL);
	bson_append_document_end(&list, &spec);
	bson_append_array_end(&command, &list);
	if (!mongoc_client_command_simple(m->target, db, &command, NULL, NULL, &why))
		misfit(m, db, collection, name_of(index), why.message);
	bson_destroy(&command);
}

static enum status
copy_indexes(struct mongo *m, const char *db, const char *name, struct err *err)
{
	mongoc_collection_t *collection = mongoc_client_get_collection(m->source, db, name);
	mongoc_cursor_t *cursor = mongoc_collection_find_indexes_with_opts(collection, NULL);
	enum status status = STATUS_OK;
	const bson_t *index;
	bson_error_t why;

	while (mongoc_cursor_next(cursor, &index))
		if (strcmp(name_of(index), "_id_") != 0)
			make_index(m, db, name, index);
	if (mongoc_cursor_error(cursor, &why))
		status = mongo_failed(name, &why, err);
	mongoc_cursor_destroy(cursor);
	mongoc_collection_destroy(collection);
	return status;
}

/* ---- Documents ---- */

/* Documents on their way to the target. */
struct batch {
	struct mongo *m;
	const char *db;
	const char *name;
	mongoc_collection_t *target;
	mongoc_bulk_operation_t *bulk;
	bool replaces; /* what is there already */
	size_t docs;
	size_t bytes;
	bson_t last; /* {"_id": …} of the last one */
};

static void
batch_begin(struct batch *b)
{
	bson_t options = BSON_INITIALIZER;

	BSON_APPEND_BOOL(&options, "ordered", false);
	b->bulk = mongoc_collection_create_bulk_operation_with_opts(b->target, &options);
	b->docs = b->bytes = 0;
	bson_destroy(&options);
}

/* Which documents the target has refused. */
static void
tell_refused(const struct batch *b, const bson_t *answer)
{
	bson_iter_t it, errors;

	if (!bson_iter_init_find(&it, answer, "writeErrors") || !bson_iter_recurse(&it, &errors))
		return;
	while (bson_iter_next(&errors)) {
		bson_iter_t error;
		if (!bson_iter_recurse(&errors, &error) || !bson_iter_find(&error, "errmsg"))
			continue;
		misfit(b->m, b->db, b->name, "a document", bson_iter_utf8(&error, NULL));
		if (b->m->import->copied)
			b->m->import->copied--;
	}
}

static bool
has_errors(const bson_t *answer)
{
	bson_iter_t it, errors;

	return bson_iter_init_find(&it, answer, "writeErrors") && bson_iter_recurse(&it, &errors) &&
	       bson_iter_next(&errors);
}

static enum status
batch_write(struct batch *b, struct err *err)
{
	enum status status = STATUS_OK;
	bson_error_t why;
	bson_t answer;

	if (b->docs) {
		bool ok = mongoc_bulk_operation_execute(b->bulk, &answer, &why) != 0;

		if (!ok && !has_errors(&answer))
			status = mongo_failed(b->name, &why, err);
		else
			tell_refused(b, &answer);
		bson_destroy(&answer);
	}
	mongoc_bulk_operation_destroy(b->bulk);
	b->bulk = NULL;
	if (status == STATUS_OK)
		batch_begin(b);
	return status;
}

static enum status
batch_add(struct batch *b, const bson_t *doc, struct err *err)
{
	bson_t selector = BSON_INITIALIZER, options = BSON_INITIALIZER;
	bson_error_t why;
	bson_iter_t id;
	bool ok;

	if (!bson_iter_init_find(&id, doc, "_id"))
		return err_set(err, STATUS_CORRUPT, "%s.%s: a document has no _id", b->db, b->name);
	bson_append_iter(&selector, "_id", -1, &id);
	if (b->replaces) {
		BSON_APPEND_BOOL(&options, "upsert", true);
		ok = mongoc_bulk_operation_replace_one_with_opts(b->bulk, &selector, doc, &options,
								 &why);
	} else {
		ok = mongoc_bulk_operation_insert_with_opts(b->bulk, doc, NULL, &why);
	}
	bson_destroy(&b->last);
	bson_copy_to(&selector, &b->last);
	bson_destroy(&selector);
	bson_destroy(&options);
	if (!ok)
		return mongo_failed(b->name, &why, err);
	b->docs++;
	b->bytes += doc->len;
	import_count(b->m->import, doc->len);
	return STATUS_OK;
}

/* A batch is at the target: the state says so now and then. */
static enum status
batch_keep_place(struct batch *b, struct err *err)
{
	char ns[MONGO_NS_BYTES];
	bson_iter_t id;

	(void)snprintf(ns, sizeof(ns), "%s.%s", b->db, b->name);
	bson_reinit(&b->m->place);
	BSON_APPEND_UTF8(&b->m->place, "ns", ns);
	if (bson_iter_init_find(&id, &b->last, "_id"))
		bson_append_iter(&b->m->place, "_id", -1, &id);
	return import_state_due(b->m->import) ? mongo_state_write(b->m, err) : STATUS_OK;
}

static enum status
copy_found(struct batch *b, mongoc_cursor_t *cursor, struct err *err)
{
	const bson_t *doc;
	bson_error_t why;

	while (!import_stopped() && mongoc_cursor_next(cursor, &doc)) {
		TRY(batch_add(b, doc, err));
		if (b->docs < MONGO_BATCH_DOCS && b->bytes < MONGO_BATCH_BYTES)
			continue;
		TRY(batch_write(b, err));
		TRY(batch_keep_place(b, err));
	}
	/* What became of a collection that was dropped or renamed meanwhile, the stream tells. */
	if (mongoc_cursor_error(cursor, &why) && !(why.code == CODE_KILLED && b->m->has_stream))
		return mongo_failed(b->name, &why, err);
	TRY(batch_write(b, err));
	return batch_keep_place(b, err);
}

/* From the state's place on, if that is in this collection. */
static enum status
copy_documents(struct mongo *m, const char *db, const char *name, const char *ns, bool resumes,
	       struct err *err)
{
	struct batch b = { .m = m, .db = db, .name = name };
	mongoc_collection_t *source = mongoc_client_get_collection(m->source, db, name);
	bson_t filter = BSON_INITIALIZER, options = BSON_INITIALIZER, by_id = BSON_INITIALIZER;
	mongoc_cursor_t *cursor;
	enum status status;
	bson_iter_t it, id;

	b.target = mongoc_client_get_collection(m->target, db, name);
	b.replaces = resumes || mongoc_collection_estimated_document_count(b.target, NULL, NULL,
									   NULL, NULL) > 0;
	bson_init(&b.last);
	batch_begin(&b);
	BSON_APPEND_INT32(&by_id, "_id", 1);
	BSON_APPEND_DOCUMENT(&options, "sort", &by_id);
	BSON_APPEND_DOCUMENT(&options, "hint", &by_id);
	BSON_APPEND_INT32(&options, "batchSize", MONGO_BATCH_DOCS);
	/* `min` goes over values of every type; a comparison only over one. */
	if (bson_iter_init_find(&it, &m->place, "ns") &&
	    strcmp(bson_iter_utf8(&it, NULL), ns) == 0 &&
	    bson_iter_init_find(&id, &m->place, "_id")) {
		bson_t from = BSON_INITIALIZER;

		bson_append_iter(&from, "_id", -1, &id);
		BSON_APPEND_DOCUMENT(&options, "min", &from);
		bson_destroy(&from);
	}
	cursor = mongoc_collection_find_with_opts(source, &filter, &options, NULL);
	status = copy_found(&b, cursor, err);
	mongoc_cursor_destroy(cursor);
	if (b.bulk)
		mongoc_bulk_operation_destroy(b.bulk);
	mongoc_collection_destroy(b.target);
	mongoc_collection_destroy(source);
	bson_destroy(&b.last);
	bson_destroy(&filter);
	bson_destroy(&options);
	bson_destroy(&by_id);
	return status;
}

static enum status
copy_whole(struct mongo *m, const char *db, const bson_t *info, bool replaces, struct err *err)
{
	char ns[MONGO_NS_BYTES], name[MONGO_NAME_BYTES];
	uint64_t before = m->import->copied;

	(void)snprintf(name, sizeof(name), "%s", name_of(info));
	(void)snprintf(ns, sizeof(ns), "%s.%s", db, name);
	TRY(make_collection(m, db, info, err));
	TRY(copy_documents(m, db, name, ns, replaces, err));
	if (import_stopped())
		return STATUS_OK;
	TRY(copy_indexes(m, db, name, err));
	import_tell(m->import, "%s: %llu documents", ns,
		    (unsigned long long)(m->import->copied - before));
	return STATUS_OK;
}

enum status
mongo_copy_collection(struct mongo *m, const char *db, const bson_t *info, struct err *err)
{
	bool resumes = !bson_empty(&m->place) || !bson_empty(&m->done);
	char ns[MONGO_NS_BYTES];
	bson_iter_t it;

	(void)snprintf(ns, sizeof(ns), "%s.%s", db, name_of(info));
	/* Not bson_has_field(), which takes the points of a name for a path. */
	if (bson_iter_init_find(&it, &m->done, ns))
		return STATUS_OK;
	TRY(copy_whole(m, db, info, resumes, err));
	if (import_stopped())
		return STATUS_OK;
	BSON_APPEND_BOOL(&m->done, ns, true);
	bson_reinit(&m->place);
	return m->import->state ? mongo_state_write(m, err) : STATUS_OK;
}

/* ---- Changes ---- */

static bool
names_of(const bson_t *event, const char *member, const char **db, const char **collection)
{
	bson_iter_t it, in;

	*db = *collection = "";
	if (!bson_iter_init_find(&it, event, member) || !bson_iter_recurse(&it, &in))
		return false;
	while (bson_iter_next(&in)) {
		if (strcmp(bson_iter_key(&in), "db") == 0)
			*db = bson_iter_utf8(&in, NULL);
		else if (strcmp(bson_iter_key(&in), "coll") == 0)
			*collection = bson_iter_utf8(&in, NULL);
	}
	return true;
}

static void
apply_to_document(struct mongo *m, const bson_t *event, const char *db, const char *name)
{
	mongoc_collection_t *target = mongoc_client_get_collection(m->target, db, name);
	bson_t key, doc, selector = BSON_INITIALIZER, options = BSON_INITIALIZER;
	bool ok = true;
	bson_error_t why;
	bson_iter_t id;

	if (document_of(event, "documentKey", &key) && bson_iter_init_find(&id, &key, "_id")) {
		bson_append_iter(&selector, "_id", -1, &id);
		BSON_APPEND_BOOL(&options, "upsert", true);
		/* A document that was deleted since its update has an event for that, too. */
		if (document_of(event, "fullDocument", &doc))
			ok = mongoc_collection_replace_one(target, &selector, &doc, &options, NULL,
							   &why);
		else
			ok = mongoc_collection_delete_one(target, &selector, NULL, NULL, &why);
	}
	if (!ok)
		misfit(m, db, name, "a changed document", why.message);
	bson_destroy(&selector);
	bson_destroy(&options);
	mongoc_collection_destroy(target);
}

static void
apply_command(struct mongo *m, const char *run_on, const bson_t *command, const char *db,
	      const char *name, const char *what)
{
	bson_error_t why;

	if (!mongoc_client_command_simple(m->target, run_on, command, NULL, NULL, &why) &&
	    why.code != CODE_GONE /* it was not copied yet */)
		misfit(m, db, name, what, why.message);
}

/* Copies a collection over what the target has of it; nothing if the source has none such. */
static enum status
copy_again(struct mongo *m, const char *db, const char *name, struct err *err)
{
	bson_t options = BSON_INITIALIZER, filter = BSON_INITIALIZER;
	mongoc_database_t *source = mongoc_client_get_database(m->source, db);
	enum status status = STATUS_OK;
	mongoc_cursor_t *cursor;
	const bson_t *info;
	bson_error_t why;

	BSON_APPEND_UTF8(&filter, "name", name);
	BSON_APPEND_DOCUMENT(&options, "filter", &filter);
	cursor = mongoc_database_find_collections_with_opts(source, &options);
	bson_reinit(&m->place);
	if (mongoc_cursor_next(cursor, &info))
		status = copy_whole(m, db, info, true, err);
	else if (mongoc_cursor_error(cursor, &why))
		status = mongo_failed(name, &why, err);
	mongoc_cursor_destroy(cursor);
	mongoc_database_destroy(source);
	bson_destroy(&options);
	bson_destroy(&filter);
	return status;
}

/*
 * A renamed collection is copied again: under its old name the source had nothing of it any more
 * when that was to be copied, nor when documents were looked up that updates had changed before.
 */
static enum status
apply_rename(struct mongo *m, const bson_t *event, const char *db, const char *name,
	     struct err *err)
{
	char from[MONGO_NS_BYTES], to[MONGO_NS_BYTES];
	const char *to_db, *to_name;
	bson_t command = BSON_INITIALIZER;

	if (!names_of(event, "to", &to_db, &to_name))
		return STATUS_OK;
	(void)snprintf(from, sizeof(from), "%s.%s", db, name);
	(void)snprintf(to, sizeof(to), "%s.%s", to_db, to_name);
	BSON_APPEND_UTF8(&command, "renameCollection", from);
	BSON_APPEND_UTF8(&command, "to", to);
	BSON_APPEND_BOOL(&command, "dropTarget", true);
	apply_command(m, "admin", &command, db, name, "its new name");
	bson_destroy(&command);
	return copy_again(m, to_db, to_name, err);
}

static bool
namespace_is_copied(const char *db, const char *name)
{
	return strcmp(db, "admin") != 0 && strcmp(db, "local") != 0 && strcmp(db, "config") != 0 &&
	       strncmp(name, "system.", 7) != 0;
}

enum status
mongo_apply(struct mongo *m, const bson_t *event, struct err *err)
{
	const char *db, *name, *type = "";
	enum status status = STATUS_OK;
	bson_t command = BSON_INITIALIZER;
	bson_iter_t it;

	if (bson_iter_init_find(&it, event, "operationType") && BSON_ITER_HOLDS_UTF8(&it))
		type = bson_iter_utf8(&it, NULL);
	if (!names_of(event, "ns", &db, &name) || !namespace_is_copied(db, name))
		type = "";
	if (strcmp(type, "drop") == 0) {
		BSON_APPEND_UTF8(&command, "drop", name);
		apply_command(m, db, &command, db, name, "dropping it");
	} else if (strcmp(type, "dropDatabase") == 0) {
		BSON_APPEND_INT32(&command, "dropDatabase", 1);
		apply_command(m, db, &command, db, name, "dropping the database");
	} else if (strcmp(type, "rename") == 0) {
		status = apply_rename(m, event, db, name, err);
	} else if (strcmp(type, "insert") == 0 || strcmp(type, "update") == 0 ||
		   strcmp(type, "replace") == 0 || strcmp(type, "delete") == 0) {
		apply_to_document(m, event, db, name);
	}
	bson_destroy(&command);
	return status;
}
