/*
 * frond user with a server: reads and writes documents of _users by HTTP. The server hashes
 * passwords.
 */
#include "cli/user.h"

#include <assert.h>

#include "base/mem.h"
#include "cli/input.h"
#include "cli/remote.h"
#include "doc/json_value.h"
#include "http/escape.h"

#define USERS_PATH "/_users"
/* ';' is the byte after ':'. */
#define USERS_LIST                                                                                 \
	USERS_PATH "/_all_docs?include_docs=true&start_key=%22org.couchdb.user%3A%22"              \
		   "&end_key=%22org.couchdb.user%3B%22"

struct user_server {
	struct user_place place;
	struct remote *remote;
	struct buf path;
	struct buf answer;
};

/* Sends a request for one document, or for the database if the id's ptr is NULL. */
static enum status
server_request(struct user_server *s, const char *method, struct str id, struct str body,
	       int *ret_code, struct err *err)
{
	buf_clear(&s->path);
	buf_append_cstr(&s->path, USERS_PATH);
	if (id.ptr) {
		buf_append_byte(&s->path, '/');
		http_escape(&s->path, id);
	}
	TRY(buf_status(&s->path));
	return remote_request(s->remote, method, buf_str(&s->path), body, ret_code, &s->answer,
			      err);
}

static enum status
server_refused(struct user_server *s, int code, struct err *err)
{
	return remote_refused(s->remote, buf_str(&s->path), code, buf_str(&s->answer), err);
}

static enum status
user_server_get(struct user_place *place, struct str id, struct arena *arena, struct str *ret,
		struct err *err)
{
	struct user_server *s = (struct user_server *)place;
	int code = 0;

	TRY(server_request(s, "GET", id, (struct str){ NULL, 0 }, &code, err));
	if (code == 404)
		return STATUS_NOT_FOUND;
	if (code != 200)
		return server_refused(s, code, err);
	*ret = buf_dup(&s->answer, arena);
	return ret->ptr ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
}

static enum status
user_server_put(struct user_place *place, struct str id, struct str text, bool create,
		const struct user_at_door *own, struct arena *arena, struct err *err)
{
	struct user_server *s = (struct user_server *)place;
	int code = 0;

	(void)arena;
	assert(!own);
	if (create) {
		TRY(server_request(s, "PUT", (struct str){ NULL, 0 }, (struct str){ NULL, 0 },
				   &code, err));
		if (code / 100 != 2 && code != 412)
			return server_refused(s, code, err);
	}
	TRY(server_request(s, "PUT", id, text, &code, err));
	if (code == 409)
		return STATUS_DOC_CONFLICT;
	/* CouchDB answers 200, and not 201, when a document is deleted. */
	return code / 100 == 2 ? STATUS_OK : server_refused(s, code, err);
}

/* Takes a row of _all_docs. Its document need not be a user's. */
static enum status
server_take_row(struct str row, struct arena *arena, user_take *take, void *arg, struct err *err)
{
	const struct json_value *doc, *name, *roles;
	struct json_member *members;
	struct json_value value;
	size_t count;

	TRY(json_value_read(row, arena, &value, err));
	TRY(json_value_members(&value, arena, &members, &count, err));
	doc = json_value_find(members, count, "doc");
	if (!doc || doc->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK; /* deleted while the answer was made */
	TRY(json_value_members(doc, arena, &members, &count, err));
	name = json_value_find(members, count, "name");
	roles = json_value_find(members, count, "roles");
	if (!name || name->kind != JSON_STRING || !roles || roles->kind != JSON_ARRAY_BEGIN)
		return STATUS_OK;
	return take(arg, name->string, roles->text, err);
}

static enum status
server_take_rows(struct input *in, user_take *take, void *arg, struct err *err)
{
	struct arena *arena = arena_new(USER_ARENA_BYTES);
	enum status status = arena ? STATUS_OK : STATUS_NOMEM;

	while (status == STATUS_OK) {
		struct input_item row;

		status = input_next(in, &row, err);
		if (status == STATUS_OK && row.too_large)
			status = err_set(err, STATUS_LIMIT, "a document is larger than %d bytes",
					 INPUT_VALUE_BYTES);
		if (status != STATUS_OK)
			break;
		arena_clear(arena);
		status = server_take_row(row.text, arena, take, arg, err);
	}
	arena_free(arena);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
user_server_list(struct user_place *place, user_take *take, void *arg, struct err *err)
{
	struct user_server *s = (struct user_server *)place;
	struct remote_stream *stream;
	struct input *in;
	enum status status;

	TRY(remote_open(s->remote, STR(USERS_LIST), &stream, err));
	in = input_new(remote_read, stream, INPUT_ROWS, "rows");
	status = in ? server_take_rows(in, take, arg, err) : STATUS_NOMEM;
	input_free(in);
	remote_close(stream);
	return status;
}

static void
user_server_free(struct user_place *place)
{
	struct user_server *s = (struct user_server *)place;

	remote_free(s->remote);
	buf_release(&s->path);
	buf_release(&s->answer);
	mem_free(s);
}

enum status
user_place_server(const char *url, struct user_place **ret, struct err *err)
{
	struct user_server *s = mem_zalloc(sizeof(*s));
	enum status status;

	if (!s)
		return err_set(err, STATUS_NOMEM, "out of memory");
	*s = (struct user_server){
		.place = { user_server_get, user_server_put, user_server_list, user_server_free },
		.path = BUF_INIT(4 * USER_ID_BYTES),
		.answer = BUF_INIT(REMOTE_ANSWER_BYTES),
	};
	status = remote_new(url, &s->remote, err);
	if (status != STATUS_OK) {
		user_server_free(&s->place);
		return status;
	}
	*ret = &s->place;
	return STATUS_OK;
}
