/* Dumping from a server: answers are cut into rows as they come, never read as a whole. */
#include "cli/dump.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/quote.h"
#include "cli/input.h"
#include "cli/remote.h"
#include "http/escape.h"
#include "doc/json.h"

enum {
	PATH_BYTES = 64 * 1024,
	ID_ARENA_BYTES = 1024 * 1024,
};

struct server_dump {
	struct dump *dump;
	struct remote *remote;
	struct buf answer; /* of one document's leaves */
	struct err *err;
};

/*
 * The text of the member `name` of an object; ptr NULL if there is none. `string`: it has to be a
 * string, and its content is copied to the arena.
 */
static enum status
find_member(struct str object, struct str name, struct arena *string, struct str *ret,
	    struct err *err)
{
	enum json_token token = JSON_END;
	enum status status = STATUS_OK;
	struct json_reader r;
	struct str value;

	*ret = (struct str){ NULL, 0 };
	json_reader_init(&r, object, err);
	r.wrapped = JSON_WRAP_LIMIT;
	status = json_next(&r, &token);
	if (status == STATUS_OK && token != JSON_OBJECT_BEGIN)
		status = err_set(err, STATUS_INVALID, "a row is not an object");
	while (status == STATUS_OK) {
		bool wanted;

		status = json_next(&r, &token);
		if (status != STATUS_OK || token != JSON_KEY)
			break;
		wanted = str_eq(r.text, name);
		status = json_next(&r, &token);
		if (status == STATUS_OK && wanted && string && token == JSON_STRING) {
			*ret = arena_dup(string, r.text);
			if (!ret->ptr)
				status = STATUS_LIMIT;
			break;
		}
		if (status == STATUS_OK)
			status = json_skip(&r, token, &value);
		if (status == STATUS_OK && wanted && !string) {
			*ret = value;
			break;
		}
	}
	json_reader_release(&r);
	return status;
}

/* JSON text on one line: a line's end in it can only be white space. */
static void
append_one_line(struct buf *out, struct str text)
{
	size_t from = out->len;

	buf_append_str(out, text);
	for (size_t i = from; i < out->len; i++)
		if (out->ptr[i] == '\n' || out->ptr[i] == '\r')
			out->ptr[i] = ' ';
}

/* The document's members but for its _rev, _id first. */
static enum status
write_without_rev(struct server_dump *s, struct str doc)
{
	struct buf *out = output_buf(&s->dump->output);
	enum json_token token = JSON_END;
	enum status status;
	struct json_reader r;
	struct str id = { NULL, 0 };

	TRY(find_member(doc, STR("_id"), NULL, &id, s->err));
	buf_append_cstr(out, "{\"_id\":");
	buf_append_str(out, id.ptr ? id : STR("null"));
	json_reader_init(&r, doc, s->err);
	status = json_next(&r, &token);
	while (status == STATUS_OK) {
		const char *key;
		bool wanted;
		struct str value;

		status = json_next(&r, &token);
		if (status != STATUS_OK || token != JSON_KEY)
			break;
		key = r.token_begin;
		wanted = !str_eq(r.text, STR("_id")) && !str_eq(r.text, STR("_rev"));
		status = json_next(&r, &token);
		if (status == STATUS_OK)
			status = json_skip(&r, token, &value);
		if (status != STATUS_OK || !wanted)
			continue;
		buf_append_byte(out, ',');
		append_one_line(out, str_of(key, (size_t)(value.ptr + value.len - key)));
	}
	json_reader_release(&r);
	buf_append_byte(out, '}');
	return status;
}

/*
 * Tells which attachments the server has shown as stubs, although it was asked for their data. A
 * frond does so with one that is stored as gzip and is not valid gzip.
 */
static enum status
check_stubs(struct server_dump *s, struct str doc)
{
	enum json_token token = JSON_END;
	struct str atts, id, stub, value;
	enum status status;
	struct json_reader r;

	TRY(find_member(doc, STR("_attachments"), NULL, &atts, s->err));
	if (!atts.ptr || atts.ptr[0] != '{')
		return STATUS_OK;
	TRY(find_member(doc, STR("_id"), NULL, &id, s->err));
	json_reader_init(&r, atts, s->err);
	status = json_next(&r, &token);
	while (status == STATUS_OK) {
		char text[ERR_TEXT_BYTES];

		status = json_next(&r, &token);
		if (status != STATUS_OK || token != JSON_KEY)
			break;
		(void)snprintf(text, sizeof(text),
			       "the server gave no data for the attachment \"%s\" of %.*s",
			       QUOTE_SHOW(r.text), (int)(id.len < ERR_TEXT_BYTES ? id.len : 0),
			       id.ptr ? id.ptr : "");
		status = json_next(&r, &token);
		if (status == STATUS_OK)
			status = json_skip(&r, token, &value);
		if (status == STATUS_OK && value.ptr[0] == '{')
			status = find_member(value, STR("stub"), NULL, &stub, s->err);
		if (status != STATUS_OK || value.ptr[0] != '{' || !stub.ptr ||
		    !str_eq(stub, STR("true")))
			continue;
		dump_warn(s->dump, text);
		s->dump->left_out++;
	}
	json_reader_release(&r);
	return status;
}

static enum status
dump_row(struct server_dump *s, struct str row)
{
	uint64_t from = output_position(&s->dump->output);
	struct str doc;

	TRY(find_member(row, STR("doc"), NULL, &doc, s->err));
	if (!doc.ptr || doc.ptr[0] != '{')
		return STATUS_OK; /* deleted while the answer was made */
	TRY(check_stubs(s, doc));
	TRY(write_without_rev(s, doc));
	return dump_end_line(s->dump, from, s->err);
}

/* [{"ok": leaf}, ...], as open_revs=all has it. */
static enum status
write_leaves(struct server_dump *s, struct str answer)
{
	struct buf *out = output_buf(&s->dump->output);
	enum json_token token = JSON_END;
	enum status status;
	struct json_reader r;

	json_reader_init(&r, answer, s->err);
	r.wrapped = JSON_WRAP_LIMIT;
	status = json_next(&r, &token);
	while (status == STATUS_OK) {
		uint64_t from = output_position(&s->dump->output);
		struct str leaf;
		struct str element;

		status = json_next(&r, &token);
		if (status != STATUS_OK || token == JSON_ARRAY_END || token == JSON_END)
			break;
		status = json_skip(&r, token, &element);
		if (status == STATUS_OK)
			status = find_member(element, STR("ok"), NULL, &leaf, s->err);
		if (status != STATUS_OK || !leaf.ptr)
			continue;
		status = check_stubs(s, leaf);
		if (status != STATUS_OK)
			break;
		append_one_line(out, leaf);
		status = dump_end_line(s->dump, from, s->err);
	}
	json_reader_release(&r);
	return status;
}

/* CouchDB sends whoever escapes the slash of a design document's id elsewhere. */
static void
append_id(struct buf *path, struct str id)
{
	const struct str design = STR("_design/");

	if (str_starts_with(id, design)) {
		buf_append_str(path, design);
		id = str_skip(id, design.len);
	}
	http_escape(path, id);
}

static enum status
dump_leaves(struct server_dump *s, struct str row)
{
	AUTO(buf_release) struct buf path = BUF_INIT(PATH_BYTES);
	struct arena *arena = arena_new(ID_ARENA_BYTES);
	enum status status = STATUS_NOMEM;
	int http_status = 0;
	struct str id;

	if (arena)
		status = find_member(row, STR("id"), arena, &id, s->err);
	if (status == STATUS_OK && !id.ptr)
		status = err_set(s->err, STATUS_INVALID, "a row of _changes has no id");
	if (status == STATUS_OK) {
		buf_append_byte(&path, '/');
		http_escape(&path, str_from_cstr(s->dump->db));
		buf_append_byte(&path, '/');
		append_id(&path, id);
		buf_append_cstr(&path, "?open_revs=all&revs=true&attachments=true");
		status = buf_status(&path);
	}
	arena_free(arena);
	TRY(status);
	TRY(remote_request(s->remote, "GET", buf_str(&path), (struct str){ NULL, 0 }, &http_status,
			   &s->answer, s->err));
	if (http_status != 200)
		return remote_refused(s->remote, buf_str(&path), http_status, buf_str(&s->answer),
				      s->err);
	return write_leaves(s, buf_str(&s->answer));
}

static enum status
dump_rows(struct server_dump *s, struct input *in)
{
	for (;;) {
		struct input_item row;
		enum status status = input_next(in, &row, s->err);

		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		if (row.too_large)
			return err_set(s->err, STATUS_LIMIT, "a document is larger than %d bytes",
				       INPUT_VALUE_BYTES);
		if (s->dump->revs)
			TRY(dump_leaves(s, row.text));
		else
			TRY(dump_row(s, row.text));
	}
}

enum status
dump_server(struct dump *d, const char *url, struct err *err)
{
	AUTO(buf_release) struct buf path = BUF_INIT(PATH_BYTES);
	struct server_dump s = { .dump = d, .answer = BUF_INIT(REMOTE_ANSWER_BYTES), .err = err };
	struct remote_stream *stream = NULL;
	struct input *in = NULL;
	enum status status = remote_new(url, &s.remote, err);

	buf_append_byte(&path, '/');
	http_escape(&path, str_from_cstr(d->db));
	buf_append_cstr(&path,
			d->revs ? "/_changes" : "/_all_docs?include_docs=true&attachments=true");
	if (status == STATUS_OK)
		status = buf_status(&path);
	if (status == STATUS_OK)
		status = remote_open(s.remote, buf_str(&path), &stream, err);
	if (status == STATUS_OK) {
		in = input_new(remote_read, stream, INPUT_ROWS, d->revs ? "results" : "rows");
		status = in ? dump_rows(&s, in) : STATUS_NOMEM;
	}
	if (status != STATUS_OK && !err->text[0])
		status = err_set(err, status, "cannot read from %s: %s",
				 s.remote ? remote_name(s.remote) : "the server",
				 status_name(status));
	input_free(in);
	remote_close(stream);
	remote_free(s.remote);
	buf_release(&s.answer);
	return status;
}
