/*
 * From a server of MongoDB's protocol: collections with their options, documents and indexes, then
 * views, and then what its change stream tells was changed since the import began.
 *
 * == Going on after an end ==
 *
 * The state has the collections that are done, the last `_id` of the one that is not, and the token
 * of the change stream, which is opened before anything is copied. An import that goes on asks the
 * stream for all that came behind that token. Documents are then written over what is there, since
 * some may be there already; what the stream tells of is applied in order, so that the last state
 * wins.
 */
#include "import/mongo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* ---- The change stream ---- */

static void
keep_token(struct mongo *m, mongoc_change_stream_t *stream)
{
	const bson_t *token = mongoc_change_stream_get_resume_token(stream);

	if (!token)
		return;
	bson_destroy(&m->token);
	bson_copy_to(token, &m->token);
}

/* Opens the stream at the state's token, or now. NULL in `*ret`: the source has none. */
static enum status
open_stream(struct mongo *m, mongoc_change_stream_t **ret, struct err *err)
{
	bson_t options = BSON_INITIALIZER, pipeline = BSON_INITIALIZER;
	mongoc_change_stream_t *stream;
	const bson_t *event, *answer;
	mongoc_database_t *db;
	bson_error_t why;
	bool resumes = !bson_empty(&m->token);
	enum status status = STATUS_OK;

	BSON_APPEND_UTF8(&options, "fullDocument", "updateLookup");
	BSON_APPEND_INT32(&options, "maxAwaitTimeMS", IMPORT_QUIET_MS);
	if (resumes)
		BSON_APPEND_DOCUMENT(&options, "resumeAfter", &m->token);
	db = m->only ? mongoc_client_get_database(m->source, m->only) : NULL;
	stream = db ? mongoc_database_watch(db, &pipeline, &options)
		    : mongoc_client_watch(m->source, &pipeline, &options);
	/*
	 * The first look says whether there can be one. An event that it brings to an import that
	 * begins is not applied: nothing is copied yet, so the copy has what it tells, and the
	 * state, without which nothing may be written to the target, is not there yet.
	 */
	if (mongoc_change_stream_next(stream, &event) && resumes) {
		m->has_stream = true;
		status = mongo_apply(m, event, err);
	}
	if (status == STATUS_OK && mongoc_change_stream_error_document(stream, &why, &answer)) {
		if (resumes) {
			status = mongo_failed("the change stream cannot go on where it was", &why,
					      err);
		} else {
			import_misfit(m->import,
				      "changes while this runs, as the source has no change "
				      "stream (%s): let nobody write to it",
				      why.message);
			mongoc_change_stream_destroy(stream);
			stream = NULL;
		}
	}
	if (status == STATUS_OK && stream)
		keep_token(m, stream);
	if (status != STATUS_OK) {
		mongoc_change_stream_destroy(stream);
		stream = NULL;
	}
	m->has_stream = stream != NULL;
	*ret = stream;
	mongoc_database_destroy(db);
	bson_destroy(&options);
	bson_destroy(&pipeline);
	return status;
}

/* Applies what comes until nothing does, or until a signal. */
static enum status
drain_stream(struct mongo *m, mongoc_change_stream_t *stream, struct err *err)
{
	const bson_t *event, *answer;
	bson_error_t why;

	while (!import_stopped()) {
		if (mongoc_change_stream_next(stream, &event)) {
			TRY(mongo_apply(m, event, err));
			m->import->changed++;
			progress_update(&m->import->progress,
					m->import->copied + m->import->changed, m->import->bytes);
		} else if (mongoc_change_stream_error_document(stream, &why, &answer)) {
			return mongo_failed("the change stream", &why, err);
		} else if (!m->import->follow) {
			return STATUS_OK;
		}
		keep_token(m, stream);
		if (import_state_due(m->import))
			TRY(mongo_state_write(m, err));
	}
	return STATUS_OK;
}

/* ---- Databases ---- */

static bool
database_is_copied(const struct mongo *m, const char *name)
{
	if (strcmp(name, "admin") == 0 || strcmp(name, "local") == 0 || strcmp(name, "config") == 0)
		return false;
	return !m->only || strcmp(m->only, name) == 0;
}

static const char *
text_of(const bson_t *from, const char *name)
{
	bson_iter_t it;

	return bson_iter_init_find(&it, from, name) && BSON_ITER_HOLDS_UTF8(&it)
		       ? bson_iter_utf8(&it, NULL)
		       : "";
}

/* Collections first, then, with `views`, the views of them. */
static enum status
copy_database(struct mongo *m, const char *name, bool views, struct err *err)
{
	mongoc_database_t *db = mongoc_client_get_database(m->source, name);
	mongoc_cursor_t *cursor = mongoc_database_find_collections_with_opts(db, NULL);
	enum status status = STATUS_OK;
	const bson_t *info;
	bson_error_t why;

	while (status == STATUS_OK && !import_stopped() && mongoc_cursor_next(cursor, &info)) {
		const char *type = text_of(info, "type");
		const char *collection = text_of(info, "name");
		bool is_view = strcmp(type, "view") == 0;

		if (strncmp(collection, "system.", 7) == 0)
			continue;
		if (strcmp(type, "timeseries") == 0) {
			if (!views)
				import_misfit(m->import, "%s.%s: a time series", name, collection);
		} else if (is_view == views) {
			status = is_view ? mongo_copy_view(m, name, info, err)
					 : mongo_copy_collection(m, name, info, err);
		}
	}
	if (status == STATUS_OK && mongoc_cursor_error(cursor, &why))
		status = mongo_failed(name, &why, err);
	mongoc_cursor_destroy(cursor);
	mongoc_database_destroy(db);
	return status;
}

/* Nobody can have the passwords: a person is made by hand. */
static void
tell_people(struct mongo *m)
{
	bson_t command = BSON_INITIALIZER, all = BSON_INITIALIZER, answer;
	bson_iter_t it, users;

	BSON_APPEND_BOOL(&all, "forAllDBs", true);
	BSON_APPEND_DOCUMENT(&command, "usersInfo", &all);
	if (mongoc_client_command_simple(m->source, "admin", &command, NULL, &answer, NULL) &&
	    bson_iter_init_find(&it, &answer, "users") && bson_iter_recurse(&it, &users))
		while (bson_iter_next(&users)) {
			const uint8_t *bytes;
			uint32_t len;
			bson_t user, short_user = BSON_INITIALIZER;
			char *text;

			bson_iter_document(&users, &len, &bytes);
			if (!bson_init_static(&user, bytes, len))
				continue;
			bson_copy_to_excluding_noinit(&user, &short_user, "_id", "userId",
						      "mechanisms", "credentials", NULL);
			text = bson_as_relaxed_extended_json(&short_user, NULL);
			import_misfit(m->import, "a person, who needs a password there: %s", text);
			bson_free(text);
			bson_destroy(&short_user);
		}
	bson_destroy(&answer);
	bson_destroy(&command);
	bson_destroy(&all);
}

static enum status
copy_databases(struct mongo *m, char **names, struct err *err)
{
	for (int views = 0; views <= 1; views++)
		for (char **name = names; *name && !import_stopped(); name++)
			if (database_is_copied(m, *name))
				TRY(copy_database(m, *name, views, err));
	return STATUS_OK;
}

/* Whether the source can be asked at all: a stream that is not there says nothing of that. */
static enum status
ask_source(struct mongo *m, struct err *err)
{
	bson_t command = BSON_INITIALIZER;
	bson_error_t why;
	bool ok;

	BSON_APPEND_INT32(&command, "ping", 1);
	ok = mongoc_client_command_simple(m->source, "admin", &command, NULL, NULL, &why);
	bson_destroy(&command);
	return ok ? STATUS_OK : mongo_failed("the source", &why, err);
}

/* Copies what there is once the stream is open: it tells of all that comes later. */
static enum status
copy_all(struct mongo *m, struct err *err)
{
	bson_error_t why;
	char **names = mongoc_client_get_database_names_with_opts(m->source, NULL, &why);
	enum status status;

	if (!names)
		return mongo_failed("the source", &why, err);
	status = copy_databases(m, names, err);
	bson_strfreev(names);
	return status;
}

static enum status
mongo_run(struct mongo *m, struct err *err)
{
	mongoc_change_stream_t *stream;
	enum status status;

	TRY(mongo_state_read(m, err));
	TRY(ask_source(m, err));
	TRY(open_stream(m, &stream, err));
	status = mongo_state_write(m, err);
	if (status == STATUS_OK)
		status = copy_all(m, err);
	if (status == STATUS_OK && stream && !import_stopped())
		status = drain_stream(m, stream, err);
	if (status == STATUS_OK && import_stopped()) {
		status = mongo_state_write(m, err);
	} else if (status == STATUS_OK) {
		tell_people(m);
		import_state_remove(m->import);
	}
	mongoc_change_stream_destroy(stream);
	return status;
}

static enum status
connect_to(const char *url, mongoc_client_t **ret, struct err *err)
{
	bson_error_t why;
	mongoc_uri_t *uri = mongoc_uri_new_with_error(url, &why);

	if (!uri)
		return err_set(err, STATUS_INVALID, "%s", why.message);
	mongoc_uri_set_option_as_bool(uri, MONGOC_URI_RETRYWRITES, false);
	*ret = mongoc_client_new_from_uri(uri);
	mongoc_uri_destroy(uri);
	if (!*ret)
		return err_set(err, STATUS_INVALID, "a client of that URL cannot be made");
	mongoc_client_set_error_api(*ret, MONGOC_ERROR_API_VERSION_2);
	(void)mongoc_client_set_appname(*ret, "frond import");
	return STATUS_OK;
}

static void
no_log(mongoc_log_level_t level, const char *domain, const char *text, void *arg)
{
	(void)level;
	(void)domain;
	(void)text;
	(void)arg;
}

enum status
import_mongo(struct import *i, struct err *err)
{
	struct mongo m = { .import = i };
	enum status status;

	/* Its counters in shared memory outlive a process that is killed, and nobody reads them. */
	(void)setenv("MONGOC_DISABLE_SHM", "1", true);
	mongoc_log_set_handler(no_log, NULL);
	mongoc_init();
	bson_init(&m.done);
	bson_init(&m.place);
	bson_init(&m.token);
	status = connect_to(i->source, &m.source, err);
	if (status == STATUS_OK)
		status = connect_to(i->target, &m.target, err);
	if (status == STATUS_OK) {
		m.only = mongoc_uri_get_database(mongoc_client_get_uri(m.source));
		status = mongo_run(&m, err);
	}
	mongoc_client_destroy(m.source);
	mongoc_client_destroy(m.target);
	bson_destroy(&m.done);
	bson_destroy(&m.place);
	bson_destroy(&m.token);
	mongoc_cleanup();
	return status;
}
