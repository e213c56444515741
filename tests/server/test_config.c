#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "server/config.h"

static enum status
read_text(struct config *c, const char *text, struct err *err)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	enum status status;

	assert_non_null(file);
	status = config_read(c, file, "frond.ini", err);
	fclose(file);
	return status;
}

/* Reading `text` fails with exactly this explanation. */
static void
assert_refused(const char *text, const char *explanation)
{
	struct config c;
	struct err err = { 0 };

	assert_int_equal(config_init(&c), STATUS_OK);
	assert_int_equal(read_text(&c, text, &err), STATUS_INVALID);
	assert_string_equal(err.text, explanation);
	config_fini(&c);
}

static void
defaults_are_couchdbs_port_on_loopback(void **state)
{
	struct config c;
	char text[CONFIG_LISTEN_TEXT_BYTES];

	(void)state;
	assert_int_equal(config_init(&c), STATUS_OK);
	config_listen_text(&c, text, sizeof(text));
	assert_string_equal(text, "127.0.0.1:5984");
	assert_string_equal(c.store, "embedded:./data");
	assert_true(config_is_loopback(&c));
	assert_int_equal(c.admins_count, 0);
	assert_false(c.cors.enabled);
	assert_null(c.cors.origins);
	assert_int_equal(c.answer_gzip_level, 1);
	config_fini(&c);
}

static void
every_setting_is_read(void **state)
{
	struct config c;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(config_init(&c), STATUS_OK);
	assert_int_equal(read_text(&c,
				   "; a comment\n"
				   "# another\n"
				   "\n"
				   "[chttpd]\n"
				   "bind_address = 0.0.0.0\n"
				   "  port = 6000 ; indented, and with a comment\n"
				   "max_connections = 100\n"
				   "max_http_request_size = 1000000\n"
				   "changes_timeout = 5000\n"
				   "enable_cors = true\n"
				   "[cors]\n"
				   "origins = https://a.example, https://b.example\n"
				   "credentials = true\n"
				   "methods = GET, PUT\n"
				   "headers = accept\n"
				   "exposed_headers = etag\n"
				   "max_age = 60\n"
				   "[chttpd_auth]\n"
				   "secret = 0123456789abcdef\n"
				   "[couchdb]\n"
				   "max_document_size = 8000000\n"
				   "[log]\n"
				   "level = warning\n"
				   "[admins]\n"
				   "anna = first\n"
				   "bert = -pbkdf2-0011,22,10\n"
				   "anna = se=cr:et\n"
				   "[frond]\r\n"
				   "store = embedded:/var/lib/frond\r\n"
				   "cache_bytes = 1048576\n"
				   "scheme = packed\n"
				   "loops = 3\n"
				   "pool_threads = 2\n"
				   "header_bytes = 2048\n"
				   "request_bytes = 1048576\n"
				   "output_bytes = 4096\n"
				   "header_timeout_ms = 1\n"
				   "idle_timeout_ms = 2\n"
				   "body_timeout_ms = 3\n"
				   "answer_gzip_level = 0\n"
				   "drain_timeout_ms = 4",
				   &err),
			 STATUS_OK);
	assert_string_equal(c.host, "0.0.0.0");
	assert_false(config_is_loopback(&c));
	assert_int_equal(c.port, 6000);
	assert_int_equal(c.server.max_connections, 100);
	assert_int_equal(c.body_bytes, 1000000);
	assert_int_equal(c.changes_timeout_ms, 5000);
	assert_true(c.cors.enabled);
	assert_true(c.cors.credentials);
	assert_string_equal(c.cors.origins, "https://a.example, https://b.example");
	assert_string_equal(c.cors.methods, "GET, PUT");
	assert_string_equal(c.cors.headers, "accept");
	assert_string_equal(c.cors.exposed_headers, "etag");
	assert_int_equal(c.cors.max_age_s, 60);
	assert_int_equal(c.answer_gzip_level, 0);
	assert_true(str_eq(c.secret, STR("0123456789abcdef")));
	assert_int_equal(c.doc_bytes, 8000000);
	assert_int_equal(c.log_level, LOG_LEVEL_WARN);
	assert_int_equal(c.admins_count, 2);
	assert_true(str_eq(c.admins[0].name, STR("anna")));
	assert_true(str_eq(c.admins[0].password, STR("se=cr:et")));
	assert_true(str_eq(c.admins[1].password, STR("-pbkdf2-0011,22,10")));
	assert_string_equal(c.store, "embedded:/var/lib/frond");
	assert_int_equal(c.cache_bytes, 1048576);
	assert_string_equal(c.scheme, "packed");
	assert_int_equal(c.server.loops, 3);
	assert_int_equal(c.server.pool_threads, 2);
	assert_int_equal(c.server.header_bytes, 2048);
	assert_int_equal(c.server.request_bytes, 1048576);
	assert_int_equal(c.server.output_bytes, 4096);
	assert_int_equal(c.server.header_timeout_ms, 1);
	assert_int_equal(c.server.idle_timeout_ms, 2);
	assert_int_equal(c.server.body_timeout_ms, 3);
	assert_int_equal(c.server.drain_timeout_ms, 4);
	config_fini(&c);
}

static void
old_section_httpd_is_taken_too(void **state)
{
	struct config c;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(config_init(&c), STATUS_OK);
	assert_int_equal(read_text(&c, "[httpd]\nbind_address = ::1\nport = 0\n", &err), STATUS_OK);
	assert_string_equal(c.host, "::1");
	assert_int_equal(c.port, 0);
	assert_true(config_is_loopback(&c));
	config_fini(&c);
}

static void
mistakes_name_file_line_and_key(void **state)
{
	(void)state;
	assert_refused("[chttpd]\nenable_cors = yes\n",
		       "frond.ini:2: [chttpd] enable_cors: \"yes\" is neither true nor false");
	assert_refused("[chttpd]\n\nprot = 1\n", "frond.ini:3: [chttpd] has no setting \"prot\"");
	assert_refused("[chtpd]\nport = 1\n",
		       "frond.ini:2: there is no section [chtpd] (with \"port\" in it)");
	assert_refused("port = 1\n", "frond.ini:1: \"port\" stands before the first [section]");
	assert_refused("[log]\nlevel\n",
		       "frond.ini:2: this is neither \"name = value\" nor a [section]");
	assert_refused("[log\n", "frond.ini:1: the section's name has no ]");
	assert_refused("[chttpd]\nport = 65536\n",
		       "frond.ini:2: [chttpd] port: \"65536\" is not a whole number from 0 to "
		       "65535");
	assert_refused("[chttpd]\nport = eighty\n",
		       "frond.ini:2: [chttpd] port: \"eighty\" is not a whole number from 0 to "
		       "65535");
	assert_refused("[couchdb]\nmax_document_size = 8000001\n",
		       "frond.ini:2: [couchdb] max_document_size: \"8000001\" is not a whole "
		       "number from 1 to 8000000");
	assert_refused("[frond]\nstore =\n", "frond.ini:2: [frond] store: must not be empty");
	assert_refused("[admins]\nanna =\n",
		       "frond.ini:2: [admins] anna: the password must not be empty");
	assert_refused("[chttpd_auth]\nsecret = short\n",
		       "frond.ini:2: [chttpd_auth] secret: must have at least 16 characters");
	assert_refused("[log]\nlevel = loud\n",
		       "frond.ini:2: [log] level: \"loud\" is none of debug, info, notice, "
		       "warning, error, critical, none");
}

static void
first_of_several_mistakes_is_told(void **state)
{
	(void)state;
	assert_refused("[log]\nlevl = info\n[chttpd]\nport = x\n",
		       "frond.ini:2: [log] has no setting \"levl\"");
}

static void
long_lines_are_refused_and_not_cut(void **state)
{
	char text[400] = "[frond]\nstore = ";

	(void)state;
	memset(text + strlen(text), 'x', 300);
	assert_refused(text, "frond.ini:2: the line is longer than 190 bytes");
}

static void
missing_file_is_not_found(void **state)
{
	struct config c;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(config_init(&c), STATUS_OK);
	assert_int_equal(config_read_file(&c, "/nonexistent/frond.ini", &err), STATUS_NOT_FOUND);
	assert_string_equal(err.text, "/nonexistent/frond.ini: No such file or directory");
	config_fini(&c);
}

static void
listen_addresses_are_taken_apart(void **state)
{
	static const char *const bad[] = { "",       "127.0.0.1", ":80",     "host:",
					   "host:x", "h:-1",      "h:65536", "::1:80" };
	struct config c;
	struct err err = { 0 };
	char text[CONFIG_LISTEN_TEXT_BYTES];

	(void)state;
	assert_int_equal(config_init(&c), STATUS_OK);
	assert_int_equal(config_set_listen(&c, "[::1]:80", &err), STATUS_OK);
	assert_string_equal(c.host, "::1");
	config_listen_text(&c, text, sizeof(text));
	assert_string_equal(text, "[::1]:80");
	assert_int_equal(config_set_listen(&c, "localhost:81", &err), STATUS_OK);
	assert_true(config_is_loopback(&c));
	config_listen_text(&c, text, sizeof(text));
	assert_string_equal(text, "127.0.0.1:81");
	assert_int_equal(config_set_listen(&c, "10.0.0.1:82", &err), STATUS_OK);
	assert_false(config_is_loopback(&c));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(config_set_listen(&c, bad[i], &err), STATUS_INVALID);
	assert_string_equal(c.host, "10.0.0.1");
	config_fini(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_couchdbs_port_on_loopback),
		cmocka_unit_test(every_setting_is_read),
		cmocka_unit_test(old_section_httpd_is_taken_too),
		cmocka_unit_test(mistakes_name_file_line_and_key),
		cmocka_unit_test(first_of_several_mistakes_is_told),
		cmocka_unit_test(long_lines_are_refused_and_not_cut),
		cmocka_unit_test(missing_file_is_not_found),
		cmocka_unit_test(listen_addresses_are_taken_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
