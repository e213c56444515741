/* What browsers and proxies need: other origins, compression, names of requests. */
#include "common.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define PAGE   "https://app.example.com"
#define ORIGIN "Origin: " PAGE "\r\n"

enum {
	PLAIN_BYTES = 4 << 20,
};

static int
setup_browser(void **state)
{
	static const door_setting settings[] = {
		{ "chttpd", "enable_cors", "true" },
		{ "cors", "credentials", "true" },
		{ "cors", "origins", "http://localhost:3000, " PAGE },
		{ "cors", "max_age", "300" },
		{ NULL },
	};

	(void)state;
	d = door_start_with(true, settings, NULL);
	return 0;
}

static const char *
header(const char *name)
{
	const char *value = response_header(&d->last, name);

	return value ? value : "";
}

/* ---- Other origins ---- */

static void
preflight_is_granted_without_a_password(void **state)
{
	const struct response *r = door_request(
		d, "OPTIONS", "/db/doc",
		ORIGIN "Access-Control-Request-Method: PUT\r\n"
		       "Access-Control-Request-Headers: Content-Type, authorization\r\n",
		NULL);

	(void)state;
	assert_int_equal(r->status, 204);
	assert_int_equal(r->body_len, 0);
	assert_string_equal(header("Access-Control-Allow-Origin"), PAGE);
	assert_string_equal(header("Access-Control-Allow-Credentials"), "true");
	assert_string_equal(header("Access-Control-Max-Age"), "300");
	assert_string_equal(header("Access-Control-Allow-Headers"), "Content-Type, authorization");
	assert_non_null(strstr(header("Access-Control-Allow-Methods"), "PUT"));
	assert_non_null(strstr(header("Access-Control-Allow-Methods"), "PATCH"));
	assert_string_equal(header("Vary"), "Origin");
	assert_string_equal(header("Access-Control-Expose-Headers"), "");
}

static void
preflight_of_what_is_not_allowed_is_no_preflight(void **state)
{
	static const char *const refused[] = {
		"Origin: https://evil.example.com\r\nAccess-Control-Request-Method: PUT\r\n",
		"Origin: null\r\nAccess-Control-Request-Method: PUT\r\n",
		ORIGIN "Access-Control-Request-Method: BREW\r\n",
		ORIGIN "Access-Control-Request-Method: PUT\r\n"
		       "Access-Control-Request-Headers: x-spam\r\n",
		ORIGIN,
		"Access-Control-Request-Method: PUT\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const struct response *r = door_request(d, "OPTIONS", "/", refused[i], NULL);

		assert_int_equal(r->status, 405);
		assert_string_equal(header("Access-Control-Max-Age"), "");
		assert_string_equal(header("Access-Control-Allow-Methods"), "");
	}
}

static void
answers_name_the_origin_that_may_read_them(void **state)
{
	(void)state;
	door_request(d, "GET", "/", ORIGIN, NULL);
	assert_int_equal(d->last.status, 200);
	assert_string_equal(header("Access-Control-Allow-Origin"), PAGE);
	assert_string_equal(header("Access-Control-Allow-Credentials"), "true");
	assert_non_null(strstr(header("Access-Control-Expose-Headers"), "etag"));
	assert_string_equal(header("Vary"), "Origin");
	/* Errors, too, so that a page learns which. */
	door_request(d, "GET", "/none", ORIGIN, NULL);
	assert_int_equal(d->last.status, 404);
	assert_string_equal(header("Access-Control-Allow-Origin"), PAGE);
	door_request(d, "GET", "/%zz", ORIGIN, NULL);
	assert_int_equal(d->last.status, 400);
	assert_string_equal(header("Access-Control-Allow-Origin"), PAGE);
	/* Strangers, and those who are of no origin, get no such header, but caches are told. */
	door_request(d, "GET", "/", "Origin: http://localhost:3001\r\n", NULL);
	assert_int_equal(d->last.status, 200);
	assert_string_equal(header("Access-Control-Allow-Origin"), "");
	assert_string_equal(header("Vary"), "Origin");
	door_request(d, "GET", "/", NULL, NULL);
	assert_string_equal(header("Access-Control-Allow-Origin"), "");
}

static void
star_lets_every_origin_in_by_its_name(void **state)
{
	static const door_setting settings[] = {
		{ "chttpd", "enable_cors", "true" },    { "cors", "origins", "*" },
		{ "cors", "methods", "GET, POST" },     { "cors", "headers", "x-one" },
		{ "cors", "exposed_headers", "x-two" }, { NULL },
	};
	struct door *other = door_start_with(false, settings, NULL);
	const struct response *r;

	(void)state;
	r = door_request(other, "GET", "/", ORIGIN, NULL);
	assert_string_equal(response_header(r, "Access-Control-Allow-Origin"), PAGE);
	assert_null(response_header(r, "Access-Control-Allow-Credentials"));
	assert_string_equal(response_header(r, "Access-Control-Expose-Headers"), "x-two");
	r = door_request(other, "OPTIONS", "/",
			 ORIGIN "Access-Control-Request-Method: POST\r\n"
				"Access-Control-Request-Headers: X-One\r\n",
			 NULL);
	assert_int_equal(r->status, 204);
	assert_string_equal(response_header(r, "Access-Control-Max-Age"), "600");
	r = door_request(other, "OPTIONS", "/", ORIGIN "Access-Control-Request-Method: PUT\r\n",
			 NULL);
	assert_int_equal(r->status, 405);
	door_stop(other);
}

static void
without_the_setting_there_is_nothing_of_it(void **state)
{
	struct door *other = door_start(false);
	const struct response *r;

	(void)state;
	r = door_request(other, "GET", "/", ORIGIN "Accept-Encoding: gzip\r\n", NULL);
	assert_null(response_header(r, "Access-Control-Allow-Origin"));
	assert_string_equal(response_header(r, "Vary"), "Accept");
	r = door_request(other, "OPTIONS", "/", ORIGIN "Access-Control-Request-Method: GET\r\n",
			 NULL);
	assert_int_equal(r->status, 405);
	door_stop(other);
}

/* ---- Without an administrator ---- */

/* The status of a request to a server, of which `head` is all but the first line. */
static int
status_of(const struct door *server, const char *line, const char *head, const char *text)
{
	struct client *c = client_open(server->port);
	struct response r;
	int status;

	client_send_raw(c, format("%s\r\n%s\r\n", line, head));
	r = client_receive(c, false);
	if (text && !strstr(r.body, text))
		fail_msg("%s %s: expected %s in %s", line, head, text, r.body);
	status = r.status;
	response_release(&r);
	client_close(c);
	return status;
}

static void
page_that_took_our_address_is_refused(void **state)
{
	static const char *const own[] = { "localhost", "127.0.0.1:5984", "127.3.2.1", "[::1]:80" };
	static const char *const others[] = { "evil.example.com", "evil.example.com:5984",
					      "127.0.0.1.example.com", "0.0.0.0:5984", "" };
	static const char *const lines[] = { "GET /_up HTTP/1.1", "GET /_all_dbs HTTP/1.1",
					     "PUT /_node/_local/_config/admins/me HTTP/1.1" };
	struct door *open = door_start(false);

	(void)state;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_int_equal(status_of(open, lines[1], format("Host: %s\r\n", own[i]), "[]"),
				 200);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		for (size_t j = 0; j < sizeof(lines) / sizeof(lines[0]); j++)
			assert_int_equal(
				status_of(open, lines[j], format("Host: %s\r\n", others[i]),
					  "{\"error\":\"forbidden\",\"reason\":\"This server "
					  "has no administrator, so it answers only to"),
				403);
	assert_int_equal(status_of(open, "GET /_up HTTP/1.0", "", "ok"), 200);
	/* With an administrator every name is good: a proxy may have any. */
	assert_int_equal(status_of(d, lines[0], "Host: couch.example.com\r\n", "ok"), 200);
	assert_int_equal(status_of(d, lines[2], "Host: couch.example.com\r\n", NULL), 401);
	door_stop(open);
}

static void
preflight_for_another_host_is_refused(void **state)
{
	static const door_setting settings[] = { { "chttpd", "enable_cors", "true" },
						 { "cors", "origins", "*" },
						 { NULL } };
	struct door *open = door_start_with(false, settings, NULL);
	struct client *c = client_open(open->port);
	struct response r;

	(void)state;
	client_send_raw(c, "OPTIONS / HTTP/1.1\r\nHost: evil.example.com\r\nOrigin: "
			   "http://evil.example.com\r\nAccess-Control-Request-Method: PUT\r\n\r\n");
	r = client_receive(c, false);
	assert_int_equal(r.status, 403);
	assert_null(response_header(&r, "Access-Control-Allow-Origin"));
	response_release(&r);
	client_close(c);
	door_stop(open);
}

static void
form_of_another_page_changes_nothing(void **state)
{
	static const char foreign[] = "Host: localhost\r\nOrigin: http://evil.example.com\r\n";
	static const char *const own[] = { "http://localhost:5984", "https://127.0.0.1",
					   "http://[::1]:3000" };
	struct door *open = door_start(false);

	(void)state;
	assert_int_equal(status_of(open, "PUT /mine HTTP/1.1", foreign,
				   "may change nothing unless [cors] origins has them"),
			 403);
	assert_int_equal(status_of(open, "POST /_session HTTP/1.1",
				   "Host: localhost\r\nOrigin: null\r\n", NULL),
			 403);
	assert_int_equal(status_of(open, "GET /_all_dbs HTTP/1.1", foreign, "[]"), 200);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_int_equal(status_of(open, format("PUT /own%zu HTTP/1.1", i),
					   format("Host: localhost\r\nOrigin: %s\r\n", own[i]),
					   "ok"),
				 201);
	door_expect(open, "PUT", "/_node/_local/_config/cors/origins",
		    "\"http://evil.example.com\"", 200, "\"\"");
	assert_int_equal(status_of(open, "PUT /mine HTTP/1.1", foreign, NULL), 403);
	door_expect(open, "PUT", "/_node/_local/_config/chttpd/enable_cors", "\"true\"", 200, "");
	assert_int_equal(status_of(open, "PUT /mine HTTP/1.1", foreign, "ok"), 201);
	door_stop(open);
}

/* ---- Answers ---- */

#define ADMIN "Authorization: Basic YWRtaW46c2VjcmV0\r\n"

static void
must(const char *method, const char *target, const char *body, int status)
{
	const struct response *r = door_request(d, method, target, ADMIN, body);

	if (r->status != status)
		fail_msg("%s %s: %d %s", method, target, r->status, r->body);
}

/* The last answer's body, which must be gzip, as text. */
static const char *
plain(void)
{
	static char text[PLAIN_BYTES];
	z_stream z = { .next_in = (Bytef *)d->last.body, .avail_in = (uInt)d->last.body_len };

	assert_string_equal(header("Content-Encoding"), "gzip");
	assert_int_equal(inflateInit2(&z, 31), Z_OK);
	z.next_out = (Bytef *)text;
	z.avail_out = sizeof(text) - 1;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	text[z.total_out] = '\0';
	(void)inflateEnd(&z);
	return text;
}

static void
long_answers_come_compressed_to_who_accepts_it(void **state)
{
	struct buf body = BUF_INIT(1 << 20);
	const char *text;

	(void)state;
	must("PUT", "/gzip", NULL, 201);
	buf_append_cstr(&body, "{\"a\":\"");
	for (int i = 0; i < 100000; i++)
		buf_append_byte(&body, (uint8_t)('a' + i % 26));
	buf_append(&body, "\"}", 3);
	must("PUT", "/gzip/doc", body.ptr, 201);
	door_request(d, "GET", "/gzip/doc", ADMIN "Accept-Encoding: deflate, gzip;q=0.5\r\n", NULL);
	assert_int_equal(d->last.status, 200);
	assert_true(d->last.body_len < 5000);
	text = plain();
	assert_non_null(strstr(text, "\"_id\":\"doc\""));
	assert_int_equal(text[strlen(text) - 1], '\n');
	assert_memory_equal(header("ETag"), "\"1-", 3);
	/* Two of that name: for this, and for the origin. */
	assert_non_null(strstr(d->last.head, "Vary: Accept-Encoding"));
	door_request(d, "GET", "/gzip/doc", ADMIN, NULL);
	assert_string_equal(header("Content-Encoding"), "");
	assert_true(d->last.body_len > 100000);
	assert_non_null(strstr(d->last.head, "Vary: Accept-Encoding"));
	door_request(d, "GET", "/gzip/doc", ADMIN "Accept-Encoding: gzip;q=0, *\r\n", NULL);
	assert_string_equal(header("Content-Encoding"), "");
	door_request(d, "HEAD", "/gzip/doc", ADMIN "Accept-Encoding: gzip\r\n", NULL);
	assert_string_equal(header("Content-Encoding"), "gzip");
	/* Short ones are not worth it. */
	door_request(d, "GET", "/gzip", ADMIN "Accept-Encoding: gzip\r\n", NULL);
	assert_string_equal(header("Content-Encoding"), "");
	assert_null(strstr(d->last.head, "Vary: Accept-Encoding"));
	buf_release(&body);
}

static void
listings_are_compressed_as_they_stream(void **state)
{
	struct buf docs = BUF_INIT(1 << 20);
	const char *text;
	size_t rows = 0;

	(void)state;
	buf_append_cstr(&docs, "{\"docs\":[");
	for (int i = 0; i < 3000; i++)
		buf_printf(&docs, "%s{\"_id\":\"row%05d\"}", i ? "," : "", i);
	buf_append(&docs, "]}", 3);
	must("POST", "/gzip/_bulk_docs", docs.ptr, 201);
	door_request(d, "GET", "/gzip/_all_docs", ADMIN "Accept-Encoding: gzip\r\n", NULL);
	text = plain();
	for (const char *at = text; (at = strstr(at, "\"id\":\"row")); at++)
		rows++;
	assert_int_equal(rows, 3000);
	assert_string_equal(header("Transfer-Encoding"), "chunked");
	door_request(d, "GET", "/gzip/_changes", ADMIN "Accept-Encoding: gzip\r\n", NULL);
	assert_non_null(strstr(plain(), "\"pending\":0}"));
	/* Feeds come as they are. */
	door_request(d, "GET", "/gzip/_changes?feed=longpoll", ADMIN "Accept-Encoding: gzip\r\n",
		     NULL);
	assert_string_equal(header("Content-Encoding"), "");
	door_request(d, "GET", "/gzip/_all_docs?limit=1", ADMIN "Accept-Encoding: gzip\r\n", NULL);
	assert_string_equal(header("Content-Encoding"), "");
	buf_release(&docs);
}

/* ---- Requests ---- */

/*
 * PUT of `text` as gzip, of which the last `cut` bytes are left out; `lie` is added to its length.
 */
static int
put_gzip(const char *target, const void *text, size_t len, size_t cut, int lie)
{
	size_t room = len + 1000;
	Bytef *packed = malloc(room);
	z_stream z = { .next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)len };
	size_t n;

	assert_non_null(packed);
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = packed;
	z.avail_out = (uInt)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	n = z.total_out;
	(void)deflateEnd(&z);
	packed[n - 4] = (Bytef)(packed[n - 4] + lie);
	response_release(&d->last);
	client_send_bytes(d->client, "PUT", target,
			  ADMIN "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
			  packed, n - cut);
	d->last = client_receive(d->client, false);
	free(packed);
	return d->last.status;
}

static void
bodies_may_come_compressed(void **state)
{
	static const char doc[] = "{\"a\":[1,2,3],\"b\":\"compressed\"}";

	(void)state;
	must("PUT", "/in", NULL, 201);
	assert_int_equal(put_gzip("/in/doc", doc, strlen(doc), 0, 0), 201);
	door_request(d, "GET", "/in/doc", ADMIN, NULL);
	door_has(d, "\"a\":[1,2,3],\"b\":\"compressed\"}");
}

static void
broken_and_endless_compressed_bodies_are_refused(void **state)
{
	static const char doc[] = "{\"a\":[1,2,3],\"b\":\"compressed\"}";
	char *zeros = calloc(1, 80 << 20);
	int status;

	(void)state;
	assert_non_null(zeros);
	/* What is there instead of the length may claim anything. */
	status = put_gzip("/in/cut", doc, strlen(doc), 3, 0);
	assert_true(status == 400 || status == 413);
	status = put_gzip("/in/cut", doc, strlen(doc), 20, 0);
	assert_true(status == 400 || status == 413);
	status = put_gzip("/in/short", doc, 2, 3, 0);
	assert_true(status == 400 || status == 413);
	assert_int_equal(put_gzip("/in/more", doc, strlen(doc), 0, 7), 400);
	assert_int_equal(put_gzip("/in/less", doc, strlen(doc), 0, -7), 400);
	assert_int_equal(put_gzip("/in/none", "", 0, 0, 0), 400);
	door_has(d, "JSON");
	assert_int_equal(put_gzip("/in/bomb", zeros, 80 << 20, 0, 0), 413);
	door_request(d, "PUT", "/in/br", ADMIN "Content-Encoding: br\r\n", "{}");
	assert_int_equal(d->last.status, 415);
	door_request(d, "PUT", "/in/plain", ADMIN "Content-Encoding: gzip\r\n", "{\"a\":1}");
	assert_int_equal(d->last.status, 400);
	free(zeros);
}

/* ---- Others ---- */

static void
every_answer_has_the_name_of_its_request(void **state)
{
	char first[64];

	(void)state;
	door_request(d, "GET", "/", NULL, NULL);
	(void)snprintf(first, sizeof(first), "%s", header("X-Couch-Request-ID"));
	assert_int_equal(strlen(first), 10);
	assert_int_equal(strspn(first, "0123456789abcdef"), 10);
	door_request(d, "GET", "/none/x", NULL, NULL);
	assert_int_equal(strlen(header("X-Couch-Request-ID")), 10);
	assert_string_not_equal(header("X-Couch-Request-ID"), first);
	door_request(d, "GET", "/", "X-Couch-Request-ID: my-Own_1\r\n", NULL);
	assert_string_equal(header("X-Couch-Request-ID"), "my-Own_1");
	door_request(d, "GET", "/", "X-Couch-Request-ID: not mine\r\n", NULL);
	assert_int_equal(strlen(header("X-Couch-Request-ID")), 10);
}

static void
icon_is_there_and_may_be_kept(void **state)
{
	(void)state;
	door_request(d, "GET", "/favicon.ico", NULL, NULL);
	assert_int_equal(d->last.status, 200);
	assert_string_equal(header("Content-Type"), "image/x-icon");
	assert_memory_equal(d->last.body, "\0\0\1\0\1\0", 6);
	assert_non_null(strstr(header("Cache-Control"), "max-age="));
	door_request(d, "PUT", "/favicon.ico", NULL, "{}");
	assert_int_equal(d->last.status, 405);
}

/* ---- Pages ---- */

static char pages[64];
static struct door *with_pages;

static const char *
below_pages(const char *name)
{
	return format("%s/%s", pages, name);
}

static void
write_page(const char *name, const char *text)
{
	FILE *file = fopen(below_pages(name), "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int
setup_pages(void **state)
{
	static const door_setting none[] = { { NULL } };

	(void)state;
	(void)snprintf(pages, sizeof(pages), "/tmp/frond-pages-XXXXXX");
	assert_non_null(mkdtemp(pages));
	assert_int_equal(mkdir(below_pages("js"), 0700), 0);
	write_page("index.html", "<p>hello</p>");
	write_page("js/a.js", "1;");
	write_page(".hidden", "secret");
	assert_int_equal(symlink("/etc/passwd", below_pages("link")), 0);
	assert_int_equal(symlink("/etc", below_pages("etc")), 0);
	with_pages = door_start_with(true, none, pages);
	return 0;
}

static int
teardown_pages(void **state)
{
	static const char *const names[] = { "index.html", "js/a.js", "js", ".hidden",
					     "link",       "etc",     "" };

	(void)state;
	door_stop(with_pages);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)remove(below_pages(names[i]));
	return 0;
}

static const char *
page_header(const char *name)
{
	const char *value = response_header(&with_pages->last, name);

	return value ? value : "";
}

static void
pages_are_served_to_everybody(void **state)
{
	const struct response *r = door_request(with_pages, "GET", "/_utils/", NULL, NULL);
	char tag[64];

	(void)state;
	assert_int_equal(r->status, 200);
	assert_string_equal(r->body, "<p>hello</p>");
	assert_string_equal(page_header("Content-Type"), "text/html; charset=utf-8");
	assert_string_equal(page_header("Cache-Control"), "private, must-revalidate");
	assert_non_null(strstr(page_header("Content-Security-Policy"), "default-src 'self'"));
	(void)snprintf(tag, sizeof(tag), "%s", page_header("ETag"));
	r = door_request(with_pages, "GET", "/_utils/index.html",
			 format("If-None-Match: %s\r\n", tag), NULL);
	assert_int_equal(r->status, 304);
	r = door_request(with_pages, "GET", "/_utils/js/a.js", NULL, NULL);
	assert_int_equal(r->status, 200);
	assert_string_equal(r->body, "1;");
	assert_string_equal(page_header("Content-Type"), "text/javascript; charset=utf-8");
	assert_string_not_equal(page_header("ETag"), tag);
	r = door_request(with_pages, "HEAD", "/_utils/js/a.js", NULL, NULL);
	assert_int_equal(r->status, 200);
	assert_string_equal(page_header("Content-Length"), "2");
	r = door_request(with_pages, "GET", "/_utils", NULL, NULL);
	assert_int_equal(r->status, 301);
	assert_string_equal(page_header("Location"), "/_utils/");
	r = door_request(with_pages, "PUT", "/_utils/index.html", NULL, "{}");
	assert_int_equal(r->status, 405);
}

static void
nothing_outside_of_the_pages_is_served(void **state)
{
	static const char *const targets[] = {
		"/_utils/none",
		"/_utils/js",
		"/_utils/js/",
		"/_utils/index.html/x",
		"/_utils/.hidden",
		"/_utils/../_utils/index.html",
		"/_utils/js/../index.html",
		"/_utils/js/%2e%2e/index.html",
		"/_utils/..%2f..%2f..%2fetc%2fpasswd",
		"/_utils/js%2fa.js",
		"/_utils/%2fetc%2fpasswd",
		"/_utils/index.html%00.js",
		"/_utils/link",
		"/_utils/etc/passwd",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		const struct response *r = door_request(with_pages, "GET", targets[i], NULL, NULL);

		if (r->status != 404)
			fail_msg("%s: %d %s", targets[i], r->status, r->body);
	}
}

static void
without_pages_it_is_told_how_to_get_them(void **state)
{
	(void)state;
	door_request(d, "GET", "/_utils/", NULL, NULL);
	assert_int_equal(d->last.status, 404);
	assert_string_equal(header("Content-Type"), "text/html; charset=utf-8");
	assert_non_null(strstr(d->last.body, "make fauxton"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(preflight_is_granted_without_a_password),
		cmocka_unit_test(preflight_of_what_is_not_allowed_is_no_preflight),
		cmocka_unit_test(answers_name_the_origin_that_may_read_them),
		cmocka_unit_test(star_lets_every_origin_in_by_its_name),
		cmocka_unit_test(without_the_setting_there_is_nothing_of_it),
		cmocka_unit_test(page_that_took_our_address_is_refused),
		cmocka_unit_test(preflight_for_another_host_is_refused),
		cmocka_unit_test(form_of_another_page_changes_nothing),
		cmocka_unit_test(long_answers_come_compressed_to_who_accepts_it),
		cmocka_unit_test(listings_are_compressed_as_they_stream),
		cmocka_unit_test(bodies_may_come_compressed),
		cmocka_unit_test(broken_and_endless_compressed_bodies_are_refused),
		cmocka_unit_test(every_answer_has_the_name_of_its_request),
		cmocka_unit_test(icon_is_there_and_may_be_kept),
		cmocka_unit_test_setup_teardown(pages_are_served_to_everybody, setup_pages,
						teardown_pages),
		cmocka_unit_test_setup_teardown(nothing_outside_of_the_pages_is_served, setup_pages,
						teardown_pages),
		cmocka_unit_test(without_pages_it_is_told_how_to_get_them),
	};

	return cmocka_run_group_tests(tests, setup_browser, teardown);
}
