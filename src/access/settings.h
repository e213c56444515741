/* What access/ declares of settings (base/setting.h). */
#ifndef FROND_ACCESS_SETTINGS_H
#define FROND_ACCESS_SETTINGS_H

#include "access/auth.h"
#include "base/setting.h"

#define ACCESS_SECRET_SECTION "chttpd_auth"
#define ACCESS_SECRET_NAME    "secret"

/* clang-format off */
#define ACCESS_SETTINGS(S, NUMBER, FLAG, TEXT)                                                     \
	TEXT(S, secret, ACCESS_SECRET_SECTION, ACCESS_SECRET_NAME, AUTH_SECRET_MIN_BYTES, NULL,  \
	     NULL, SETTING_LIVE | SETTING_SECRET,                                                  \
	     "The key that signs cookies. By default the first server of a store makes one and "   \
	     "keeps it there.")                                                                    \
	NUMBER(S, iterations, ACCESS_SECRET_SECTION, "iterations", "", 1, AUTH_ROUNDS_LIMIT,       \
	       AUTH_ROUNDS, SETTING_LIVE,                                                          \
	       "Rounds of PBKDF2 for passwords that are set in plain. Those that are hashed "      \
	       "already keep the rounds that they have.")                                          \
	FLAG(S, upgrade_hashes, ACCESS_SECRET_SECTION, "upgrade_hash_on_auth", true, SETTING_LIVE, \
	     "Whether the hash of a user whose password was right is replaced by one as new "      \
	     "passwords get it, if it is an older or weaker one.")                                 \
	NUMBER(S, timeout_s, ACCESS_SECRET_SECTION, "timeout", "s", 1, 31536000,                   \
	       AUTH_SESSION_SECONDS, SETTING_LIVE,                                                 \
	       "How long a cookie lasts. One that is used is renewed when a tenth of that has "    \
	       "passed.")                                                                          \
	NUMBER(S, secret_overlap_s, ACCESS_SECRET_SECTION, "secret_overlap", "s", 0, 31536000,     \
	       AUTH_SESSION_SECONDS, SETTING_LIVE,                                                 \
	       "How long cookies hold that were signed before secret was changed, at most as "     \
	       "long as they last. 0: they end at once.")                                          \
	FLAG(S, persistent_cookies, ACCESS_SECRET_SECTION, "allow_persistent_cookies", true,       \
	     SETTING_LIVE,                                                                         \
	     "Whether a browser keeps its cookie when it is closed.")                              \
	TEXT(S, cookie_domain, ACCESS_SECRET_SECTION, "cookie_domain", 1, NULL, NULL,              \
	     SETTING_LIVE | SETTING_HEADER,                                                        \
	     "The domain that cookies are for. By default the host that was asked, and no other.") \
	TEXT(S, same_site, ACCESS_SECRET_SECTION, "same_site", 1, "none,lax,strict", NULL,         \
	     SETTING_LIVE,                                                                         \
	     "The attribute SameSite of cookies. By default they have none.")                      \
	TEXT(S, users_db, ACCESS_SECRET_SECTION, "authentication_db", 0, NULL, NULL, SETTING_LIVE, \
	     "Users are in _users, whatever this says. Where it is set, /_session names their "    \
	     "database, as CouchDB's does.")                                                       \
	TEXT(S, public_fields, ACCESS_SECRET_SECTION, "public_fields", 1, NULL, NULL,              \
	     SETTING_LIVE,                                                                         \
	     "Members of the documents of _users that everybody may read, separated by commas. "   \
	     "By default nobody sees anything of the documents of others.")                        \
	TEXT(S, password_rules, ACCESS_SECRET_SECTION, "password_regexp", 1, NULL, NULL,           \
	     SETTING_LIVE | SETTING_RULES,                                                         \
	     "Regular expressions that a new password of a user has to match, all of them, as in " \
	     "[{\".{10,}\", \"It needs 10 characters.\"}, \"[0-9]\"]. By default every "           \
	     "password will do.")                                                                  \
	TEXT(S, handlers, "chttpd", "authentication_handlers", 1, NULL, NULL, SETTING_LIVE,        \
	     "Which credentials are taken, and in which order: {chttpd_auth, "                     \
	     "NAME_authentication_handler}, separated by commas, with a NAME of cookie, default "  \
	     "(name and password), jwt, proxy. By default default, then cookie.")                  \
	TEXT(S, proxy_name, ACCESS_SECRET_SECTION, "x_auth_username", 1, NULL,                     \
	     "X-Auth-CouchDB-UserName", SETTING_LIVE,                                              \
	     "The header in which a proxy names the user that it has authenticated.")              \
	TEXT(S, proxy_roles, ACCESS_SECRET_SECTION, "x_auth_roles", 1, NULL,                       \
	     "X-Auth-CouchDB-Roles", SETTING_LIVE,                                                 \
	     "The header with the roles of that user, separated by commas.")                       \
	TEXT(S, proxy_token, ACCESS_SECRET_SECTION, "x_auth_token", 1, NULL,                       \
	     "X-Auth-CouchDB-Token", SETTING_LIVE,                                                 \
	     "The header with the HMAC of the name, in hexadecimal digits, by secret.")            \
	FLAG(S, proxy_use_secret, ACCESS_SECRET_SECTION, "proxy_use_secret", true, SETTING_LIVE,   \
	     "Whether a proxy has to send that HMAC. If it does not, every client that reaches "   \
	     "the server may name any user, where the handler proxy is listed.")                   \
	TEXT(S, proxy_algorithms, ACCESS_SECRET_SECTION, "hash_algorithms", 1, NULL,               \
	     "sha256, sha", SETTING_LIVE,                                                          \
	     "Algorithms that the HMAC of a proxy may have: sha, sha224, sha256, sha384, sha512.") \
	TEXT(S, jwt_required, "jwt_auth", "required_claims", 0, NULL, "exp", SETTING_LIVE,         \
	     "What a token must have, separated by commas: exp, iat, nbf, {iss, \"ISSUER\"}, or " \
	     "in its header kid, typ. alg and sig are always checked.")                            \
	TEXT(S, jwt_algorithms, "jwt_auth", "algorithms", 1, NULL, NULL, SETTING_LIVE,             \
	     "Algorithms that a token may have, separated by commas: HS256, HS384, HS512, RS256, " \
	     "RS384, RS512, ES256, ES384, ES512, EdDSA. By default all that there are keys for.")  \
	TEXT(S, jwt_roles_path, "jwt_auth", "roles_claim_path", 1, NULL, NULL, SETTING_LIVE,       \
	     "Where a token has its roles: names of members inside each other, separated by "      \
	     "dots; \\. is a dot in a name. By default roles_claim_name says it.")                \
	TEXT(S, jwt_roles_name, "jwt_auth", "roles_claim_name", 1, NULL, "_couchdb.roles",         \
	     SETTING_LIVE,                                                                         \
	     "The member in which a token has its roles, if roles_claim_path is not set.")         \
	TEXT(S, lockout_mode, "chttpd_auth_lockout", "mode", 1, "off,warn,enforce", "enforce",     \
	     SETTING_LIVE,                                                                         \
	     "What becomes of a name whose password was wrong too often from one address: "        \
	     "nothing, the log tells of it, or it is answered 403 there.")                         \
	NUMBER(S, lockout_threshold, "chttpd_auth_lockout", "threshold", "", 1, 1000000000,        \
	       LOCKOUT_THRESHOLD, SETTING_LIVE, "Wrong passwords that are too many.")              \
	NUMBER(S, lockout_lifetime_ms, "chttpd_auth_lockout", "max_lifetime", "ms", 1, 86400000,   \
	       LOCKOUT_LIFETIME_MS, SETTING_LIVE,                                                  \
	       "How long wrong passwords count, from the first one on.")                           \
	NUMBER(S, lockout_objects, "chttpd_auth_lockout", "max_objects", "", 1,                    \
	       LOCKOUT_OBJECTS_LIMIT, LOCKOUT_OBJECTS, 0,                                          \
	       "Names and addresses whose wrong passwords are counted, rounded up to eight; "      \
	       "those that failed first are forgotten first.")                                     \
	NUMBER(S, hash_threads, "frond", "hash_threads", "", 1, 1024, AUTH_HASH_THREADS,           \
	       SETTING_LIVE,                                                                       \
	       "Passwords that are hashed at a time, in threads of their own, pool_threads.")      \
	NUMBER(S, hash_queue, "frond", "hash_queue", "", 1, 100000, AUTH_HASH_QUEUE, SETTING_LIVE, \
	       "Logins that wait for their passwords to be hashed, in turns by address; more are " \
	       "answered 429.")                                                                    \
	NUMBER(S, address_requests, "limits", "address_requests", "", 1, 1000000000, 0,            \
	       SETTING_LIVE,                                                                       \
	       "Requests of one address in a second, by all doors together; more are refused. By " \
	       "default no limit, as of all in this section.")                                     \
	NUMBER(S, address_bytes, "limits", "address_bytes", "bytes/s", 1, 1000000000000, 0,        \
	       SETTING_LIVE,                                                                       \
	       "Bytes of bodies, both ways, of one address in a second; of Redis's and MongoDB's " \
	       "doors those of commands and answers. They are counted when a request ends; the "   \
	       "next ones are refused until the rate is kept.")                                    \
	NUMBER(S, address_databases, "limits", "address_databases", "", 1, 1000000000, 0,          \
	       SETTING_LIVE,                                                                       \
	       "Databases that are created from one address in an hour, by any door; collections " \
	       "of MongoDB's clients, and databases of Redis's with their first key, are some.")   \
	NUMBER(S, person_requests, "limits", "person_requests", "", 1, 1000000000, 0,              \
	       SETTING_LIVE,                                                                       \
	       "Requests of one person in a second. Nobody's and administrators' are not counted " \
	       "by person.")                                                                       \
	NUMBER(S, person_bytes, "limits", "person_bytes", "bytes/s", 1, 1000000000000, 0,          \
	       SETTING_LIVE, "Bytes of one person in a second, counted as those of an address.")   \
	NUMBER(S, person_databases, "limits", "person_databases", "", 1, 1000000000, 0,            \
	       SETTING_LIVE,                                                                       \
	       "Databases that one person creates in an hour, counted as those of an address.")    \
	NUMBER(S, person_open, "limits", "person_open", "", 1, 1000000000, 0, SETTING_LIVE,        \
	       "Requests of one person at a time, feeds and commands that wait included.")
/* clang-format on */

SETTING_STRUCT(access_settings, ACCESS_SETTINGS);

extern const struct setting_group access_setting_group;

#endif
