/*
 * What the CouchDB door declares of settings (base/setting.h): limits, other origins, attachments,
 * how new databases keep their documents.
 */
#ifndef FROND_DOOR_COUCH_WIRE_SETTINGS_H
#define FROND_DOOR_COUCH_WIRE_SETTINGS_H

#include "base/setting.h"

enum {
	COUCH_PORT = 5984, /* CouchDB's */
	COUCH_BODY_BYTES = 64 * 1024 * 1024,
	COUCH_CHANGES_TIMEOUT_MS = 60000,
	COUCH_DOC_BYTES = 8000000, /* CouchDB's */
	COUCH_DOC_MAX_BYTES = 8000000,
	COUCH_GZIP_LEVEL = 8,        /* CouchDB's: the digest of what is compressed depends on it */
	COUCH_ANSWER_GZIP_LEVEL = 1, /* the fastest */
	COUCH_CORS_MAX_AGE_S = 600,  /* CouchDB's */
	COUCH_SLOW_MS = 5000,
	COUCH_UUIDS_MOST = 1000,    /* CouchDB's */
	COUCH_METRICS_PORT = 17986, /* CouchDB's */
	COUCH_FIND_LIMIT = 25,      /* CouchDB's */
	COUCH_SCAN_WARNING = 10,    /* CouchDB's */
	COUCH_KEN_LIMIT = 20,       /* CouchDB's */
	COUCH_SORT_BYTES = 32 << 20,
	COUCH_AGGREGATE_GROUPS = 10000,
};

#define COUCH_PARTITION_BYTES (UINT64_C(10) << 30) /* CouchDB's */

#define COUCH_HOST           "127.0.0.1"
#define COUCH_NODE_NAME      "nonode@nohost" /* CouchDB's for a node that is in no cluster */
#define COUCH_UUIDS          "utc_random,random,sequential,utc_id,uuid_v4,uuid_v7"
#define COUCH_UUID_FORMS     "base_16,base_36,rfc9562"
#define COUCH_REDUCE_LIMITS  "true,false,log"
#define COUCH_PERUSER_PREFIX "userdb-" /* CouchDB's */
#define COUCH_SCHEMES        "packed,exploded"
#define COUCH_GZIP_TYPES     "text/*, application/javascript, application/json, application/xml"

/* clang-format off */
#define COUCH_SETTINGS(S, NUMBER, FLAG, TEXT)                                                      \
	TEXT(S, host, "chttpd", "bind_address", 1, NULL, COUCH_HOST, SETTING_LISTED,               \
	     "The IP address that is listened on, an IPv6 one without brackets. Any but the "      \
	     "loopback address needs an administrator.")                                           \
	NUMBER(S, port, "chttpd", "port", "", 0, 65535, COUCH_PORT, SETTING_LISTED,                \
	       "The port that is listened on. 0: any free one.")                                   \
	NUMBER(S, body_bytes, "chttpd", "max_http_request_size", "bytes", 1024, UINT64_C(4) << 30, \
	       COUCH_BODY_BYTES, SETTING_LIVE,                                                     \
	       "The largest body of a request; a larger one is answered 413.")                     \
	NUMBER(S, changes_timeout_ms, "chttpd", "changes_timeout", "ms", 1, 3600000,               \
	       COUCH_CHANGES_TIMEOUT_MS, SETTING_LIVE,                                             \
	       "How long a feed waits at most without a change.")                                  \
	FLAG(S, cors, "chttpd", "enable_cors", false, SETTING_LIVE | SETTING_LISTED,               \
	     "Whether pages of other origins may use the server from a browser, as the section "   \
	     "[cors] says.")                                                                       \
	FLAG(S, plus_is_space, "chttpd", "decode_plus_to_space", true, SETTING_LIVE,               \
	     "Whether a + in the path of a request stands for a space, as in its query. If not, "  \
	     "it is a +.")                                                                         \
	TEXT(S, forwarded_host, "chttpd", "x_forwarded_host", 1, NULL, "X-Forwarded-Host",         \
	     SETTING_LIVE | SETTING_HEADER,                                                        \
	     "The header in which a proxy says which host its client has named. Locations are of " \
	     "that host.")                                                                         \
	TEXT(S, forwarded_proto, "chttpd", "x_forwarded_proto", 1, NULL, "X-Forwarded-Proto",      \
	     SETTING_LIVE | SETTING_HEADER,                                                        \
	     "The header in which a proxy says https if its client has come by that.")             \
	TEXT(S, forwarded_tls, "chttpd", "x_forwarded_ssl", 1, NULL, "X-Forwarded-Ssl",            \
	     SETTING_LIVE | SETTING_HEADER, "The header in which a proxy says on for the same.")   \
	TEXT(S, uuid_algorithm, "uuids", "algorithm", 1, COUCH_UUIDS, "utc_random", SETTING_LIVE,  \
	     "How ids are made of documents that come without one, and by /_uuids: as in "         \
	     "CouchDB, whose own default is sequential.")                                          \
	TEXT(S, uuid_suffix, "uuids", "utc_id_suffix", 1, NULL, NULL, SETTING_LIVE,                \
	     "What ids end with whose algorithm is utc_id. By default nothing.")                   \
	TEXT(S, uuid_format, "uuids", "format", 1, COUCH_UUID_FORMS, "base_16", SETTING_LIVE,      \
	     "How the algorithms uuid_v4 and uuid_v7 write their 128 bits.")                       \
	NUMBER(S, uuids_most, "uuids", "max_count", "", 1, 100000, COUCH_UUIDS_MOST, SETTING_LIVE, \
	       "The most ids that one request to /_uuids gets.")                                   \
	TEXT(S, node_name, "frond", "node_name", 1, NULL, COUCH_NODE_NAME, SETTING_AT_START,       \
	     "What the server is called at /_node/{name}, besides _local, and where CouchDB "      \
	     "names its nodes.")                                                                   \
	TEXT(S, cors_origins, "cors", "origins", 0, NULL, NULL, SETTING_LIVE,                      \
	     "Origins such as https://app.example.com, separated by commas, or * for all. By "     \
	     "default none.")                                                                      \
	FLAG(S, cors_credentials, "cors", "credentials", false, SETTING_LIVE | SETTING_LISTED,     \
	     "Whether such pages may use cookies and authentication. Together with origins = * "   \
	     "every page that a user visits can act as that user.")                                \
	TEXT(S, cors_methods, "cors", "methods", 1, NULL, NULL,                                    \
	     SETTING_LIVE | SETTING_HEADER,                                                        \
	     "Methods that a preflight allows, separated by commas. By default all.")              \
	TEXT(S, cors_headers, "cors", "headers", 1, NULL, NULL,                                    \
	     SETTING_LIVE | SETTING_HEADER,                                                        \
	     "Headers that a request may have, separated by commas. By default those that "        \
	     "CouchDB's clients send.")                                                            \
	TEXT(S, cors_exposed_headers, "cors", "exposed_headers", 1, NULL, NULL,                    \
	     SETTING_LIVE | SETTING_HEADER,                                                        \
	     "Headers that a page may read, separated by commas. By default those that CouchDB's " \
	     "clients read.")                                                                      \
	NUMBER(S, cors_max_age_s, "cors", "max_age", "s", 1, 31536000, COUCH_CORS_MAX_AGE_S,       \
	       SETTING_LIVE, "How long a browser remembers a preflight.")                          \
	FLAG(S, users_security, "couchdb", "users_db_security_editable", false, SETTING_LIVE,      \
	     "Whether the security object of _users can be changed, so that people can sign up "   \
	     "by themselves.")                                                                     \
	FLAG(S, valid_user, "chttpd", "require_valid_user", false, SETTING_LIVE,                   \
	     "Whether every request has to be of somebody who has logged in.")                     \
	FLAG(S, valid_user_but_up, "chttpd", "require_valid_user_except_for_up", false,            \
	     SETTING_LIVE, "The same, but for /_up.")                                              \
	TEXT(S, www_authenticate, "chttpd", "WWW-Authenticate", 1, NULL, NULL,                     \
	     SETTING_LIVE | SETTING_HEADER,                                                        \
	     "What a 401 says in this header, such as Basic realm=\"couch\", which makes a "       \
	     "browser ask for a password. By default only with require_valid_user, or as a "       \
	     "client asks for by X-CouchDB-WWW-Authenticate.")                                     \
	FLAG(S, admin_all_dbs, "chttpd", "admin_only_all_dbs", true, SETTING_LIVE,                 \
	     "Whether only administrators may list the databases: /_all_dbs and /_dbs_info.")      \
	NUMBER(S, doc_bytes, "couchdb", "max_document_size", "bytes", 1, COUCH_DOC_MAX_BYTES,      \
	       COUCH_DOC_BYTES, SETTING_LIVE,                                                      \
	       "The largest JSON text of a document; a larger one is answered 413.")               \
	NUMBER(S, att_bytes, "couchdb", "max_attachment_size", "bytes", 1, UINT64_C(1) << 50, 0,   \
	       SETTING_LIVE,                                                                       \
	       "The largest attachment, as it is sent; a larger one is answered 413. By default "  \
	       "there is no limit.")                                                               \
	NUMBER(S, partition_bytes, "couchdb", "max_partition_size", "bytes", 0,                    \
	       UINT64_C(1) << 50, COUCH_PARTITION_BYTES, SETTING_LIVE,                             \
	       "A partition that has so many bytes takes no edit any more that makes a document "  \
	       "larger: it is answered 403. Replicated edits are taken. 0: no limit.")             \
	NUMBER(S, query_limit, "query_server_config", "query_limit", "", 1, UINT64_C(1) << 40, 0,  \
	       SETTING_LIVE,                                                                       \
	       "The most rows that a request for a list may ask for, and gets if it names no "     \
	       "limit; asking for more is answered 400. By default there is no such limit.")       \
	NUMBER(S, partition_query_limit, "query_server_config", "partition_query_limit", "", 1,    \
	       UINT64_C(1) << 40, 0, SETTING_LIVE,                                                 \
	       "The same for lists of one partition.")                                             \
	TEXT(S, reduce_limit, "query_server_config", "reduce_limit", 1, COUCH_REDUCE_LIMITS,       \
	     "true", SETTING_LIVE,                                                                 \
	     "Whether a function that reduces, and whose result grows with what it reduces, is "   \
	     "refused (reduce_overflow_error), or only logged.")                                   \
	NUMBER(S, ken_limit, "ken", "limit", "", 0, 1000, COUCH_KEN_LIMIT, SETTING_LIVE,           \
	       "How many design documents have their views built at once before anybody asks "     \
	       "them, when they have been written. 0: views are built when they are asked.")       \
	FLAG(S, peruser, "couch_peruser", "enable", false, SETTING_LIVE,                           \
	     "Whether each user, that is a document of _users, has a database, whose only "        \
	     "administrator and member the user is.")                                              \
	FLAG(S, peruser_deletes, "couch_peruser", "delete_dbs", false, SETTING_LIVE,               \
	     "Whether that database is deleted when the document is deleted. If not, the user "    \
	     "is taken off its lists.")                                                            \
	TEXT(S, peruser_prefix, "couch_peruser", "database_prefix", 1, NULL,                       \
	     COUCH_PERUSER_PREFIX, SETTING_LIVE | SETTING_DB_PREFIX,                               \
	     "What the names of these databases begin with. Behind it comes the user's name, in "  \
	     "hexadecimal digits.")                                                                \
	NUMBER(S, gzip_level, "attachments", "compression_level", "", 0, 9, COUCH_GZIP_LEVEL,      \
	       SETTING_LIVE | SETTING_LISTED,                                                      \
	       "How hard gzip works on attachments. 0 keeps them as they come.")                   \
	TEXT(S, gzip_types, "attachments", "compressible_types", 1, NULL, COUCH_GZIP_TYPES,        \
	     SETTING_LIVE, "Content types of attachments that are compressed, separated by "       \
	     "commas.")                                                                            \
	NUMBER(S, find_limit, "mango", "default_limit", "", 0, UINT64_C(1) << 32,                  \
	       COUCH_FIND_LIMIT, SETTING_LIVE,                                                     \
	       "How many documents _find answers with where the request does not say.")            \
	NUMBER(S, scan_warning, "mango", "index_scan_warning_threshold", "", 0,                    \
	       UINT64_C(1) << 32, COUCH_SCAN_WARNING, SETTING_LIVE,                                \
	       "_find warns when it reads more documents than this for each one that it answers "  \
	       "with. 0: it never does.")                                                          \
	NUMBER(S, scan_docs, "mango", "scan_documents", "", 1, UINT64_C(1) << 50, 0,               \
	       SETTING_LIVE,                                                                       \
	       "The most documents that one _find reads; one that would read more is refused, "    \
	       "with the name of this limit. By default there is no limit.")                       \
	NUMBER(S, scan_ms, "mango", "scan_time", "ms", 1, 86400000, 0, SETTING_LIVE,               \
	       "How long one _find reads documents; one that would take longer is refused, with "  \
	       "the name of this limit. By default there is no limit.")                            \
	NUMBER(S, sort_bytes, "mango", "sort_bytes", "bytes", 65536, UINT64_C(1) << 32,            \
	       COUCH_SORT_BYTES, SETTING_LIVE,                                                     \
	       "The memory that one _find may take to sort documents that it cannot read in the "  \
	       "order of an index.")                                                               \
	NUMBER(S, aggregate_groups, "mango", "aggregate_groups", "", 1, UINT64_C(1) << 32,         \
	       COUCH_AGGREGATE_GROUPS, SETTING_LIVE,                                               \
	       "The groups that one `aggregate` of _find may make where no index has them in "     \
	       "order; a query that makes more is refused, with the name of this limit.")          \
	TEXT(S, scheme, "frond", "scheme", 1, COUCH_SCHEMES, "packed", SETTING_LIVE,               \
	     "How new databases keep their documents: see docs/API.md.")                           \
	NUMBER(S, answer_gzip_level, "frond", "answer_gzip_level", "", 0, 9,                       \
	       COUCH_ANSWER_GZIP_LEVEL, SETTING_LIVE | SETTING_LISTED,                             \
	       "How hard gzip works on JSON answers from 1,024 bytes on, for clients that accept " \
	       "it. Feeds are not compressed. An ETag names the revision, whether compressed or "  \
	       "not. 0: never.")                                                                   \
	NUMBER(S, slow_ms, "frond", "slow_request_ms", "ms", 1, 86400000, COUCH_SLOW_MS,           \
	       SETTING_LIVE,                                                                       \
	       "A request that takes longer than this is logged, unless it is a feed. See "        \
	       "docs/METRICS.md.")                                                                 \
	FLAG(S, metrics_apart, "prometheus", "additional_port", false, SETTING_AT_START,           \
	     "Whether metrics are also served on a port of their own, to everybody who reaches "   \
	     "it, at /_node/_local/_prometheus.")                                                  \
	TEXT(S, metrics_host, "prometheus", "bind_address", 1, NULL, COUCH_HOST,                   \
	     SETTING_AT_START, "The IP address of that port.")                                     \
	NUMBER(S, metrics_port, "prometheus", "port", "", 0, 65535, COUCH_METRICS_PORT,            \
	       SETTING_AT_START, "That port. 0: any free one, which the log names.")               \
	TEXT(S, follower_role, "frond", "follower_role", 1, NULL, NULL, SETTING_LIVE,              \
	     "The role of people who may have a standby follow this server, which is to read all " \
	     "of every database. By default only administrators may.")                             \
	TEXT(S, backup_dir, "frond", "backup_dir", 1, NULL, NULL, SETTING_AT_START,                \
	     "The directory below which `frond backup --from` may put backups. By default this "   \
	     "server makes none.")                                                                 \
	TEXT(S, utils_dir, "frond", "utils_dir", 1, NULL, NULL, SETTING_AT_START,                  \
	     "The pages to show at /_utils/. By default those that are installed.")
/* clang-format on */

SETTING_STRUCT(couch_settings, COUCH_SETTINGS);

extern const struct setting_group couch_setting_group;

#endif
