/* JSON Web Tokens as credentials of requests: who somebody is, until when, and by which keys. */
#include "common.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"

#define ADMIN  "Authorization: Basic YWRtaW46c2VjcmV0\r\n"
#define SECRET "the secret of this server"
#define LIST                                                                                       \
	"{chttpd_auth, jwt_authentication_handler}, "                                              \
	"{chttpd_auth, cookie_authentication_handler}, "                                           \
	"{chttpd_auth, default_authentication_handler}"

static int
setup_tokens(void **state)
{
	static const door_setting settings[] = { { "chttpd", "authentication_handlers", LIST },
						 { "jwt_keys", "hmac:_default", "aGVsbG8=" },
						 { "chttpd_auth", "secret", SECRET },
						 { NULL } };

	(void)state;
	d = door_start_with(true, settings, NULL);
	return 0;
}

/* A header with a token of these claims, beside an exp that is `seconds` from now. */
static const char *
bearer_until(const char *claims, int seconds)
{
	AUTO(buf_release) struct buf b = BUF_INIT(4096);
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned len = sizeof(digest);
	size_t message;

	base64_encode(&b, STR("{\"alg\":\"HS256\",\"typ\":\"JWT\"}"), BASE64_URL);
	buf_append_byte(&b, '.');
	base64_encode(&b,
		      str_from_cstr(format("{%s,\"exp\":%lld}", claims,
					   (long long)(clock_wall_ms() / 1000) + seconds)),
		      BASE64_URL);
	message = b.len;
	assert_non_null(
		HMAC(EVP_sha256(), "hello", 5, (const uint8_t *)b.ptr, message, digest, &len));
	buf_append_byte(&b, '.');
	base64_encode(&b, str_of(digest, len), BASE64_URL);
	return format("Authorization: Bearer %.*s\r\n", STR_ARG(buf_str(&b)));
}

static const char *
bearer(const char *claims)
{
	return bearer_until(claims, 1000);
}

static void
a_token_says_who_somebody_is(void **state)
{
	const char *anna = bearer("\"sub\":\"anna\",\"_couchdb.roles\":[\"player\"]");

	(void)state;
	/* Once read, and once remembered. */
	for (int i = 0; i < 2; i++) {
		expect_as(anna, "GET", "/_session", NULL, 200,
			  "\"userCtx\":{\"name\":\"anna\",\"roles\":[\"player\"]}");
		assert_non_null(strstr(d->last.body,
				       "\"authentication_handlers\":[\"jwt\",\"cookie\","
				       "\"default\"],\"authenticated\":\"jwt\""));
	}
	expect_as(anna, "GET", "/_all_dbs", NULL, 401, "You are not a server admin.");
	expect_as(ADMIN, "PUT", "/club", NULL, 201, "ok");
	expect_as(anna, "GET", "/club", NULL, 403, "forbidden");
	expect_as(ADMIN, "PUT", "/club/_security", "{\"members\":{\"roles\":[\"player\"]}}", 200,
		  "ok");
	expect_as(anna, "GET", "/club", NULL, 200, "club");
	expect_as(bearer("\"sub\":\"bert\",\"_couchdb.roles\":[\"_admin\"]"), "GET", "/_all_dbs",
		  NULL, 200, "club");
	/* The name of an administrator gives no rights: roles do. */
	expect_as(bearer("\"sub\":\"admin\""), "GET", "/_all_dbs", NULL, 401, "unauthorized");
}

static void
a_wrong_token_is_refused_and_never_anonymous(void **state)
{
	(void)state;
	expect_as("Authorization: Bearer x\r\n", "GET", "/", NULL, 400,
		  "{\"error\":\"bad_request\",\"reason\":\"Malformed token\"}");
	expect_as(bearer_until("\"sub\":\"anna\"", -1), "GET", "/", NULL, 401,
		  "{\"error\":\"unauthorized\",\"reason\":\"exp not in future\"}");
	expect_as(bearer("\"name\":\"anna\""), "GET", "/", NULL, 401, "Token missing sub claim.");
}

/* Where roles are in a path that the settings name, as CouchDB answers it. */
static void
a_token_without_the_roles_of_the_path_is_not_found(void **state)
{
	static const char *const paths[] = { "a.b", "<<a.b", "123456" };

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		expect_as(ADMIN, "PUT", "/_node/_local/_config/jwt_auth/roles_claim_path",
			  format("\"%s\"", paths[i]), 200, "\"");
		expect_as(bearer("\"sub\":\"anna\",\"_couchdb.roles\":[\"_admin\"]"), "GET",
			  "/_session", NULL, 404,
			  "{\"error\":\"not_found\",\"reason\":\"missing json key: ");
	}
	expect_as(ADMIN, "PUT", "/_node/_local/_config/jwt_auth/roles_claim_path", "\"a.b\"", 200,
		  "\"");
	expect_as(bearer("\"sub\":\"anna\",\"a\":7"), "GET", "/", NULL, 404,
		  "{\"error\":\"not_found\",\"reason\":\"json_mismatch\"}");
	expect_as(bearer("\"sub\":\"anna\",\"a\":{\"b\":\"x, y\"}"), "GET", "/_session", NULL, 200,
		  "\"roles\":[\"x\",\"y\"]");
	expect_as(ADMIN, "DELETE", "/_node/_local/_config/jwt_auth/roles_claim_path", NULL, 200,
		  "\"");
}

static void
keys_are_settings_that_administrators_change_and_read(void **state)
{
	const char *anna = bearer("\"sub\":\"anna\"");
	const char *chief = bearer("\"sub\":\"chief\",\"_couchdb.roles\":[\"chiefs\"]");

	(void)state;
	expect_as(anna, "GET", "/_session", NULL, 200, "anna");
	expect_as(anna, "GET", "/_node/_local/_config/jwt_keys", NULL, 401, "unauthorized");
	expect_as(chief, "GET", "/_node/_local/_config", NULL, 401, "unauthorized");
	expect_as(ADMIN, "GET", "/_node/_local/_config/jwt_keys", NULL, 200,
		  "{\"hmac:_default\":\"aGVsbG8=\"}");
	expect_as(ADMIN, "PUT", "/_node/_local/_config/jwt_keys/rsa:x", "\"aGVsbG8=\"", 400,
		  "is not a public key in PEM");
	expect_as(ADMIN, "PUT", "/_node/_local/_config/jwt_auth/required_claims", "\"aud\"", 400,
		  "required_claims");
	/* A token that is remembered ends with its key. */
	expect_as(ADMIN, "PUT", "/_node/_local/_config/jwt_keys/hmac:_default", "\"b3RoZXI=\"", 200,
		  "aGVsbG8=");
	expect_as(anna, "GET", "/_session", NULL, 400, "Bad HMAC");
	expect_as(ADMIN, "DELETE", "/_node/_local/_config/jwt_keys/hmac:_default", NULL, 200, "");
	expect_as(anna, "GET", "/_session", NULL, 400, "Unknown kid");
	expect_as(ADMIN, "PUT", "/_node/_local/_config/jwt_keys/hmac:_default", "\"aGVsbG8=\"", 200,
		  "");
	expect_as(anna, "GET", "/_session", NULL, 200, "anna");
}

static void
tokens_are_ignored_without_their_handler(void **state)
{
	const char *anna = bearer("\"sub\":\"anna\"");

	(void)state;
	expect_as(ADMIN, "PUT", "/_node/_local/_config/chttpd/authentication_handlers",
		  "\"{chttpd_auth, default_authentication_handler}\"", 200, "jwt");
	expect_as(anna, "GET", "/_session", NULL, 200,
		  "{\"name\":null,\"roles\":[]},\"info\":{\"authentication_handlers\":[\"default\"]"
		  "}}");
	expect_as(ADMIN, "PUT", "/_node/_local/_config/chttpd/authentication_handlers",
		  "\"{chttpd_auth, null_authentication_handler}\"", 400, "authentication_handlers");
	expect_as(ADMIN, "PUT", "/_node/_local/_config/chttpd/authentication_handlers",
		  "\"" LIST "\"", 200, "default");
}

/* A replication would run with the rights of the person of that name. */
static void
a_token_in_the_name_of_an_administrator_starts_no_replication(void **state)
{
	(void)state;
	expect_as(bearer("\"sub\":\"admin\""), "POST", "/_replicate",
		  "{\"source\":\"club\",\"target\":\"copy\",\"create_target\":true}", 403,
		  "A token starts no replications");
	expect_as(ADMIN, "PUT", "/_replicator", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/_replicator/_security", "{}", 200, "ok");
	expect_as(bearer("\"sub\":\"admin\""), "PUT", "/_replicator/r",
		  "{\"source\":\"club\",\"target\":\"copy\"}", 403,
		  "A token starts no replications");
	expect_as(ADMIN, "DELETE", "/_replicator", NULL, 200, "ok");
}

/* The headers of a proxy, with a token by this secret. */
static const char *
proxy_headers(const EVP_MD *md, const char *secret, const char *name)
{
	AUTO(buf_release) struct buf digits = BUF_INIT(200);
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned len = sizeof(digest);

	assert_non_null(HMAC(md, secret, (int)strlen(secret), (const uint8_t *)name, strlen(name),
			     digest, &len));
	buf_append_hex(&digits, str_of(digest, len));
	return format("X-Auth-CouchDB-UserName: %s\r\nX-Auth-CouchDB-Roles: player , x\r\n"
		      "X-Auth-CouchDB-Token: %.*s\r\n",
		      name, STR_ARG(buf_str(&digits)));
}

static void
set_option(const char *path, const char *text)
{
	expect_as(ADMIN, "PUT", format("/_node/_local/_config/%s", path), format("\"%s\"", text),
		  200, "\"");
}

static void
a_proxy_with_the_secret_says_who_somebody_is(void **state)
{
	const char *who = "\"userCtx\":{\"name\":\"anna\",\"roles\":[\"player\",\"x\"]}";
	const char *nobody = "\"name\":null";

	(void)state;
	/* Not while its handler is not listed. */
	expect_as(proxy_headers(EVP_sha256(), SECRET, "anna"), "GET", "/_session", NULL, 200,
		  nobody);
	set_option("chttpd/authentication_handlers",
		   "{chttpd_auth, proxy_authentication_handler}, "
		   "{chttpd_auth, default_authentication_handler}");
	expect_as(proxy_headers(EVP_sha256(), SECRET, "anna"), "GET", "/_session", NULL, 200, who);
	assert_non_null(strstr(d->last.body, "\"authenticated\":\"proxy\""));
	expect_as(proxy_headers(EVP_sha1(), SECRET, "anna"), "GET", "/_session", NULL, 200, who);
	expect_as(proxy_headers(EVP_sha512(), SECRET, "anna"), "GET", "/_session", NULL, 200,
		  nobody);
	expect_as(proxy_headers(EVP_sha256(), "another secret", "anna"), "GET", "/_session", NULL,
		  200, nobody);
	expect_as("X-Auth-CouchDB-UserName: anna\r\n", "GET", "/_session", NULL, 200, nobody);
	expect_as(proxy_headers(EVP_sha256(), SECRET, "admin"), "POST", "/_replicate", "{}", 403,
		  "nor does a proxy");
	set_option("chttpd_auth/hash_algorithms", "sha512");
	expect_as(proxy_headers(EVP_sha512(), SECRET, "anna"), "GET", "/_session", NULL, 200, who);
	expect_as(proxy_headers(EVP_sha256(), SECRET, "anna"), "GET", "/_session", NULL, 200,
		  nobody);
	expect_as(ADMIN, "PUT", "/_node/_local/_config/chttpd_auth/hash_algorithms", "\"md5\"", 400,
		  "hash_algorithms");
	set_option("chttpd_auth/proxy_use_secret", "false");
	expect_as("X-Auth-CouchDB-UserName: anna\r\n", "GET", "/_session", NULL, 200, "anna");
	set_option("chttpd_auth/proxy_use_secret", "true");
	set_option("chttpd_auth/hash_algorithms", "sha256, sha");
	set_option("chttpd/authentication_handlers", LIST);
}

static void
headers_of_a_proxy_have_the_names_of_the_settings(void **state)
{
	(void)state;
	set_option("chttpd/authentication_handlers",
		   "{chttpd_auth, proxy_authentication_handler}, "
		   "{chttpd_auth, default_authentication_handler}");
	set_option("chttpd_auth/proxy_use_secret", "false");
	set_option("chttpd_auth/x_auth_username", "X-Who");
	set_option("chttpd_auth/x_auth_roles", "X-What");
	expect_as("X-Who: anna\r\nX-What: player\r\n", "GET", "/_session", NULL, 200,
		  "\"userCtx\":{\"name\":\"anna\",\"roles\":[\"player\"]}");
	expect_as("X-Auth-CouchDB-UserName: anna\r\n", "GET", "/_session", NULL, 200,
		  "\"name\":null");
	set_option("chttpd_auth/x_auth_username", "X-Auth-CouchDB-UserName");
	set_option("chttpd_auth/x_auth_roles", "X-Auth-CouchDB-Roles");
	set_option("chttpd_auth/proxy_use_secret", "true");
	set_option("chttpd/authentication_handlers", LIST);
}

static void
put_handlers_as(const char *headers, const char *list, int status)
{
	expect_as(headers, "PUT", "/_node/_local/_config/chttpd/authentication_handlers",
		  format("\"%s\"", list), status, "");
}

static void
credentials_count_only_while_their_handler_is_listed(void **state)
{
	char chief[1024];
	const char *admin = "\"userCtx\":{\"name\":\"admin\",\"roles\":[\"_admin\"]}";
	const char *nobody = "\"name\":null";
	char cookie[1024];

	(void)state;
	(void)snprintf(chief, sizeof(chief), "%s",
		       bearer("\"sub\":\"chief\",\"_couchdb.roles\":[\"_admin\"]"));
	expect_as("Content-Type: application/json\r\n", "POST", "/_session",
		  "{\"name\":\"admin\",\"password\":\"secret\"}", 200, "");
	(void)snprintf(cookie, sizeof(cookie), "Cookie: %s\r\n",
		       response_header(&d->last, "Set-Cookie"));
	expect_as(cookie, "GET", "/_session", NULL, 200, admin);
	/* CouchDB's own tests write their lists with a parenthesis that nothing has opened. */
	put_handlers_as(ADMIN, "{chttpd_auth, jwt_authentication_handler})", 200);
	expect_as(cookie, "GET", "/_session", NULL, 200, nobody);
	expect_as(ADMIN, "GET", "/_session", NULL, 200, nobody);
	put_handlers_as(chief,
			"{couch_httpd_auth, cookie_authentication_handler}, "
			"{chttpd_auth, jwt_authentication_handler}",
			200);
	expect_as(cookie, "GET", "/_session", NULL, 200, admin);
	expect_as(ADMIN, "GET", "/_session", NULL, 200, nobody);
	put_handlers_as(chief, "{chttpd_auth, default_authentication_handler}))", 400);
	put_handlers_as(chief, "{chttpd_auth, no_authentication_handler}", 400);
	put_handlers_as(chief, "{chttpd_auth, default_authentication_handler},", 400);
	put_handlers_as(chief, LIST, 200);
	expect_as(ADMIN, "GET", "/_session", NULL, 200, admin);
}

static void
feed_must_end(struct client *c)
{
	while (client_line(c, 10000) != NULL)
		;
	assert_true(client_ended(c) || client_lost(c));
	client_close(c);
}

static struct client *
open_feed(const char *headers)
{
	struct client *c = client_open(d->port);
	struct response head;

	client_send(c, "GET", "/club/_changes?feed=continuous&since=now", headers, NULL);
	head = client_receive_head(c);
	assert_int_equal(head.status, 200);
	response_release(&head);
	return c;
}

static void
a_feed_ends_with_its_token_and_with_its_key(void **state)
{
	struct client *c;

	(void)state;
	feed_must_end(
		open_feed(bearer_until("\"sub\":\"anna\",\"_couchdb.roles\":[\"player\"]", 3)));
	c = open_feed(bearer("\"sub\":\"anna\",\"_couchdb.roles\":[\"player\"]"));
	expect_as(ADMIN, "PUT", "/_node/_local/_config/jwt_keys/hmac:_default", "\"b3RoZXI=\"", 200,
		  "");
	feed_must_end(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_says_who_somebody_is),
		cmocka_unit_test(a_wrong_token_is_refused_and_never_anonymous),
		cmocka_unit_test(a_token_without_the_roles_of_the_path_is_not_found),
		cmocka_unit_test(keys_are_settings_that_administrators_change_and_read),
		cmocka_unit_test(tokens_are_ignored_without_their_handler),
		cmocka_unit_test(a_token_in_the_name_of_an_administrator_starts_no_replication),
		cmocka_unit_test(a_proxy_with_the_secret_says_who_somebody_is),
		cmocka_unit_test(headers_of_a_proxy_have_the_names_of_the_settings),
		cmocka_unit_test(credentials_count_only_while_their_handler_is_listed),
		cmocka_unit_test(a_feed_ends_with_its_token_and_with_its_key),
	};

	return cmocka_run_group_tests_name("couch tokens", tests, setup_tokens, teardown);
}
