/* The operations: what is asked, and what a right answer is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "load.h"
#include "load_data.h"

/* ---- Requests ---- */

static void
begin_request(struct load *l, struct load_conn *c, const char *method, const char *path)
{
	buf_clear(&c->request);
	buf_printf(&c->request, "%s /%s%s HTTP/1.1\r\n", method, l->db, path);
	buf_append_str(&c->request, buf_str(&l->head));
}

static void
end_request(struct load_conn *c)
{
	buf_append_cstr(&c->request, "\r\n");
}

/* The length is known only when the body is there: its digits are filled in. */
struct open_body {
	size_t digits_at;
	size_t begin;
};

static struct open_body
begin_body(struct load_conn *c)
{
	struct open_body body;

	buf_append_cstr(&c->request, "Content-Type: application/json\r\nContent-Length: ");
	body.digits_at = c->request.len;
	buf_append_cstr(&c->request, "0000000000\r\n\r\n");
	body.begin = c->request.len;
	return body;
}

static void
end_body(struct load_conn *c, struct open_body body)
{
	char digits[11];

	if (buf_status(&c->request) != STATUS_OK)
		return;
	snprintf(digits, sizeof(digits), "%010u",
		 (unsigned)((c->request.len - body.begin) % 1000000000));
	memcpy(c->request.ptr + body.digits_at, digits, 10);
}

static void
make_doc_request(struct load *l, struct load_conn *c, const char *method, uint64_t doc)
{
	char path[DATA_ID_BYTES + 2] = "/";

	data_id(doc, path + 1);
	begin_request(l, c, method, path);
}

static bool
status_is(struct load_conn *c, int status)
{
	return c->parser.status_code == status;
}

static bool
body_has(struct load_conn *c, const char *text, size_t len)
{
	return memmem(c->body.ptr, c->body.len, text, len) != NULL;
}

/* ---- New documents ---- */

static bool
put_make(struct load *l, struct load_conn *c)
{
	struct open_body body;

	c->doc = l->next++;
	make_doc_request(l, c, "PUT", c->doc);
	body = begin_body(c);
	data_append_doc(&c->request, c->doc, false, STR(""));
	end_body(c, body);
	return true;
}

static bool
put_check(struct load *l, struct load_conn *c)
{
	l->units++;
	return status_is(c, 201) && body_has(c, "\"rev\":\"1-", 9);
}

static bool
bulk_make(struct load *l, struct load_conn *c)
{
	struct open_body body;

	if (l->count && l->next - l->first >= l->count)
		return false;
	c->doc = l->next;
	l->next += l->batch;
	begin_request(l, c, "POST", "/_bulk_docs");
	body = begin_body(c);
	buf_append_cstr(&c->request, "{\"docs\":[");
	for (unsigned i = 0; i < l->batch; i++) {
		if (i)
			buf_append_byte(&c->request, ',');
		data_append_doc(&c->request, c->doc + i, true, STR(""));
	}
	buf_append_cstr(&c->request, "]}");
	end_body(c, body);
	return true;
}

static bool
bulk_check(struct load *l, struct load_conn *c)
{
	l->units += l->batch;
	return status_is(c, 201) && c->needles == l->batch;
}

/* ---- Updates: a connection has documents of its own and goes round them ---- */

static uint64_t
own_doc(const struct load *l, const struct load_conn *c, uint64_t i)
{
	uint64_t own = l->docs / l->connections;

	return c->index + i % (own ? own : 1) * l->connections;
}

static bool
take_rev(struct load *l, struct load_conn *c, const char *name)
{
	const char *end = c->body.ptr + c->body.len;
	const char *at = memmem(c->body.ptr, c->body.len, name, strlen(name));
	const char *quote;

	if (!at)
		return false;
	at += strlen(name);
	quote = memchr(at, '"', (size_t)(end - at));
	if (!quote || quote - at >= LOAD_REV_BYTES)
		return false;
	snprintf(l->revs[c->doc], LOAD_REV_BYTES, "%.*s", (int)(quote - at), at);
	return true;
}

static bool
update_prepare(struct load *l, struct load_conn *c)
{
	uint64_t own = l->docs / l->connections;

	if (c->prepared >= (own ? own : 1))
		return false;
	c->doc = own_doc(l, c, c->prepared++);
	make_doc_request(l, c, "GET", l->first + c->doc);
	end_request(c);
	return true;
}

static bool
update_prepared(struct load *l, struct load_conn *c)
{
	return status_is(c, 200) && take_rev(l, c, "\"_rev\":\"");
}

static bool
update_make(struct load *l, struct load_conn *c)
{
	struct open_body body;

	c->doc = own_doc(l, c, c->prepared++);
	make_doc_request(l, c, "PUT", l->first + c->doc);
	body = begin_body(c);
	/* Other text than the last time. */
	data_append_doc(&c->request, l->first + c->doc + c->prepared, false,
			str_from_cstr(l->revs[c->doc]));
	end_body(c, body);
	return true;
}

static bool
update_check(struct load *l, struct load_conn *c)
{
	l->units++;
	return status_is(c, 201) && take_rev(l, c, "\"rev\":\"");
}

/* ---- Reads ---- */

static bool
get_make(struct load *l, struct load_conn *c)
{
	c->doc = rand_seq_below(&l->rand, l->docs);
	make_doc_request(l, c, "GET", c->doc);
	end_request(c);
	return true;
}

static bool
get_check(struct load *l, struct load_conn *c)
{
	char id[DATA_ID_BYTES + 1];

	l->units++;
	data_id(c->doc, id);
	return status_is(c, 200) && c->body.len >= DATA_DOC_BYTES && body_has(c, id, DATA_ID_BYTES);
}

/* Of a server that answers everything alike. */
static bool
constant_check(struct load *l, struct load_conn *c)
{
	l->units++;
	return status_is(c, 200) && c->body.len >= DATA_DOC_BYTES;
}

static bool
listing_make(struct load *l, struct load_conn *c)
{
	char path[LOAD_PATH_BYTES];

	snprintf(path, sizeof(path), "/%s%s%s", l->op->name, l->query ? "?" : "",
		 l->query ? l->query : "");
	begin_request(l, c, "GET", path);
	end_request(c);
	return true;
}

/* The query names the view, too. */
static bool
view_make(struct load *l, struct load_conn *c)
{
	char path[LOAD_PATH_BYTES];

	snprintf(path, sizeof(path), "/_design/%s", l->query ? l->query : "");
	begin_request(l, c, "GET", path);
	end_request(c);
	return true;
}

static bool
listing_check(struct load *l, struct load_conn *c)
{
	l->units += c->needles;
	return status_is(c, 200) && c->needles == l->rows;
}

/* ---- Queries: the members "number" of all documents differ, and follow their numbers ---- */

static bool
find_make(struct load *l, struct load_conn *c, const char *selector, uint64_t rows)
{
	struct open_body body;

	begin_request(l, c, "POST", "/_find");
	body = begin_body(c);
	buf_printf(&c->request, "{\"selector\":%s,\"limit\":%" PRIu64 "}", selector, rows);
	end_body(c, body);
	return true;
}

static bool
find_one_make(struct load *l, struct load_conn *c)
{
	char selector[LOAD_PATH_BYTES];

	c->doc = rand_seq_below(&l->rand, l->docs);
	snprintf(selector, sizeof(selector), "{\"number\":%" PRIu64 "}", DATA_NUMBER + c->doc);
	return find_make(l, c, selector, 1);
}

static bool
find_range_make(struct load *l, struct load_conn *c)
{
	char selector[LOAD_PATH_BYTES];

	c->doc = rand_seq_below(&l->rand, l->docs - l->rows + 1);
	snprintf(selector, sizeof(selector),
		 "{\"number\":{\"$gte\":%" PRIu64 ",\"$lt\":%" PRIu64 "}}", DATA_NUMBER + c->doc,
		 DATA_NUMBER + c->doc + l->rows);
	return find_make(l, c, selector, l->rows);
}

/* As many rows as were asked for. */
static bool
find_range_check(struct load *l, struct load_conn *c)
{
	l->units++;
	return status_is(c, 200) && c->needles == l->rows;
}

/* Looks at every document and finds none: prices are above 0. */
static bool
find_none_make(struct load *l, struct load_conn *c)
{
	return find_make(l, c, "{\"price\":-1}", 1);
}

static bool
find_none_check(struct load *l, struct load_conn *c)
{
	l->units += l->docs;
	return status_is(c, 200) && c->needles == 0;
}

/* ---- The large document ---- */

static bool
put_big_make(struct load *l, struct load_conn *c)
{
	struct open_body body;

	if (l->next++ != l->first)
		return false;
	begin_request(l, c, "PUT", "/big");
	body = begin_body(c);
	data_append_big(&c->request, l->big_bytes);
	end_body(c, body);
	return true;
}

static bool
put_big_check(struct load *l, struct load_conn *c)
{
	l->units++;
	return status_is(c, 201);
}

static bool
get_big_make(struct load *l, struct load_conn *c)
{
	begin_request(l, c, "GET", "/big");
	end_request(c);
	return true;
}

static bool
get_big_check(struct load *l, struct load_conn *c)
{
	l->units++;
	return status_is(c, 200) && c->body_bytes >= l->big_bytes && c->needles > 0;
}

static bool
path_make(struct load *l, struct load_conn *c)
{
	char path[LOAD_PATH_BYTES + 16];

	snprintf(path, sizeof(path), "/big?path=%s", l->big_path);
	begin_request(l, c, "GET", path);
	end_request(c);
	return true;
}

static bool
path_check(struct load *l, struct load_conn *c)
{
	l->units++;
	return status_is(c, 200) && body_has(c, "{\"deprecated\":", 14) && c->body.len < 256;
}

/* ---- Documents of a file ---- */

static bool
bulk_lines_make(struct load *l, struct load_conn *c)
{
	struct open_body body;
	size_t bytes = 0;

	if (l->next >= l->lines.count)
		return false;
	begin_request(l, c, "POST", "/_bulk_docs");
	body = begin_body(c);
	buf_append_cstr(&c->request, "{\"docs\":[");
	for (c->batch = 0; c->batch < l->batch && l->next < l->lines.count; c->batch++) {
		struct str line = l->lines.at[l->next];

		if (c->batch && bytes + line.len > LOAD_BATCH_BYTES)
			break;
		if (c->batch)
			buf_append_byte(&c->request, ',');
		buf_append_str(&c->request, line);
		bytes += line.len;
		l->next++;
	}
	buf_append_cstr(&c->request, "]}");
	end_body(c, body);
	return true;
}

static bool
bulk_lines_check(struct load *l, struct load_conn *c)
{
	l->units += c->batch;
	return status_is(c, 201) && c->needles == c->batch;
}

/* The id that a line begins with; empty if it begins otherwise. Ids have no escapes. */
static struct str
id_of_line(struct str line)
{
	static const char begin[] = "{\"_id\":\"";
	size_t n = sizeof(begin) - 1;
	const char *end;

	if (line.len < n || memcmp(line.ptr, begin, n) != 0)
		return STR("");
	end = memchr(line.ptr + n, '"', line.len - n);
	return end ? str_of(line.ptr + n, (size_t)(end - line.ptr) - n) : STR("");
}

static bool
get_line_make(struct load *l, struct load_conn *c)
{
	struct str id;

	c->doc = rand_seq_below(&l->rand, l->lines.count);
	id = id_of_line(l->lines.at[c->doc]);
	buf_clear(&c->request);
	buf_printf(&c->request, "GET /%s/", l->db);
	for (size_t i = 0; i < id.len; i++)
		buf_printf(&c->request, "%%%02X", (unsigned char)id.ptr[i]);
	buf_append_cstr(&c->request, " HTTP/1.1\r\n");
	buf_append_str(&c->request, buf_str(&l->head));
	end_request(c);
	return true;
}

static bool
get_line_check(struct load *l, struct load_conn *c)
{
	struct str line = l->lines.at[c->doc];
	struct str id = id_of_line(line);

	l->units++;
	return status_is(c, 200) && c->body.len >= line.len && body_has(c, id.ptr, id.len);
}

static const struct load_op ops[] = {
	{ .name = "put", .make = put_make, .check = put_check },
	{ .name = "bulk", .make = bulk_make, .check = bulk_check, .needle = "\"ok\":true" },
	{ .name = "update",
	  .make = update_make,
	  .check = update_check,
	  .prepare_make = update_prepare,
	  .prepare_check = update_prepared },
	{ .name = "get", .make = get_make, .check = get_check },
	{ .name = "constant", .make = get_make, .check = constant_check },
	{ .name = "_changes",
	  .make = listing_make,
	  .check = listing_check,
	  .needle = "\"changes\":[" },
	{ .name = "_all_docs",
	  .make = listing_make,
	  .check = listing_check,
	  .needle = "{\"id\":\"" },
	{ .name = "view", .make = view_make, .check = listing_check, .needle = "\"key\":" },
	{ .name = "find", .make = find_one_make, .check = get_check },
	{ .name = "find-range",
	  .make = find_range_make,
	  .check = find_range_check,
	  .needle = "\"_rev\":\"" },
	{ .name = "find-none",
	  .make = find_none_make,
	  .check = find_none_check,
	  .needle = "\"_rev\":\"" },
	{ .name = "put-big", .make = put_big_make, .check = put_big_check },
	{ .name = "get-big", .make = get_big_make, .check = get_big_check, .needle = "section-" },
	{ .name = "path", .make = path_make, .check = path_check },
	{ .name = "bulk-lines",
	  .make = bulk_lines_make,
	  .check = bulk_lines_check,
	  .needle = "\"ok\":true" },
	{ .name = "get-lines", .make = get_line_make, .check = get_line_check },
};

const struct load_op *
load_op_find(const char *name)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strcmp(ops[i].name, name) == 0)
			return &ops[i];
	return NULL;
}
