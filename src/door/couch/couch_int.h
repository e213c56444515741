/*
 * What the files of the CouchDB door share.
 *
 * A request is one struct couch_req for its whole life. Handlers return STATUS_OK once they have
 * answered, or a status that couch.c turns into CouchDB's error by the one table in error.c; the
 * explanation waits in `fail`. Nothing is sent from inside a transaction's body: a body computes
 * into the arena, starting over at its mark, and the answer follows the commit. Long answers read
 * page by page from a snapshot (struct couch_snapshot) and go on after the last row sent.
 */
#ifndef FROND_DOOR_COUCH_INT_H
#define FROND_DOOR_COUCH_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/rand.h"
#include "doc/doc.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/couch.h"
#include "model/revisioned/att_json.h"
#include "model/revisioned/revisioned.h"

enum {
	COUCH_PATH_PARTS = 64,              /* segments of a path */
	COUCH_UUIDS_MAX = 1000,             /* GET /_uuids?count= */
	COUCH_ANSWER_BYTES = 256 << 20,     /* of an answer that is built in memory */
	COUCH_ROW_BYTES = 64 << 20,         /* of one row of a streamed answer */
	COUCH_UPLOAD_BYTES = 1 << 20,       /* what is held of an attachment that is coming in */
	COUCH_CHUNK_BYTES = 64 * 1024,      /* a streamed answer is sent in pieces of about this */
	COUCH_PAGE_ROWS = 500,              /* rows read at once for a streamed answer */
	COUCH_BATCH_BYTES = 4 * 1000000,    /* estimated, of one transaction of _bulk_docs */
	COUCH_BATCH_DOCS = 5000,            /* likewise, in documents */
	COUCH_DBS_INFO_KEYS = 100,          /* names in one POST /_dbs_info */
	COUCH_REQUEST_ID_BYTES = 64,        /* of an X-Couch-Request-ID that a client gives */
	COUCH_SMALL_BODY_BYTES = 64 * 1024, /* of bodies that are not documents: _session, limits */
};

#define COUCH_RETRY_AFTER_S "5" /* for a client that is refused for the lack of memory */

/* ---- Errors (error.c) ---- */

/* CouchDB's errors as clients see them; codes and names are in error.c's table. */
enum couch_error {
	COUCH_ERROR_NONE, /* the status speaks for itself */
	COUCH_ERROR_BAD_REQUEST,
	COUCH_ERROR_QUERY_PARSE,
	COUCH_ERROR_DOC_VALIDATION,
	COUCH_ERROR_INVALID_DESIGN,
	COUCH_ERROR_ILLEGAL_DOCID,
	COUCH_ERROR_ILLEGAL_DB_NAME,
	COUCH_ERROR_DB_NAME_TOO_LONG,
	COUCH_ERROR_UNAUTHORIZED,
	COUCH_ERROR_FORBIDDEN,
	COUCH_ERROR_NOT_FOUND,
	COUCH_ERROR_METHOD,
	COUCH_ERROR_NOT_ACCEPTABLE,
	COUCH_ERROR_CONFLICT,
	COUCH_ERROR_MISSING_REV,
	COUCH_ERROR_PATCH_FAILED,
	COUCH_ERROR_GONE,
	COUCH_ERROR_FILE_EXISTS,
	COUCH_ERROR_MISSING_STUB,
	COUCH_ERROR_TOO_LARGE,
	COUCH_ERROR_ATT_TOO_LARGE,
	COUCH_ERROR_MD5,
	COUCH_ERROR_RANGE,
	COUCH_ERROR_DOC_TOO_LARGE,
	COUCH_ERROR_CONTENT_TYPE,
	COUCH_ERROR_ALL_OR_NOTHING,
	COUCH_ERROR_INTERNAL,
	COUCH_ERROR_TIMEOUT,
	COUCH_ERROR_NOT_IMPLEMENTED,
	COUCH_ERROR_UNAVAILABLE,
	COUCH_ERROR_COUNT
};

/* Why something failed: the door's own word for it, or a lower layer's in `err`. */
struct couch_fail {
	enum couch_error error;
	struct err err;
};

/* Records the failure and returns a status for it, never STATUS_OK. */
enum status couch_fail_set(struct couch_fail *f, enum couch_error error, const char *fmt, ...)
	PRINTF(3, 4);

struct couch_answer {
	int code;
	const char *name;
	enum couch_error error;
};

/* What a client gets to see of `status` as `f` explains it. */
struct couch_answer couch_fail_answer(enum status status, const struct couch_fail *f);

/* Appends `"error":"…","reason":"…"`. */
void couch_fail_write(enum status status, const struct couch_fail *f, struct buf *out);

/* ---- Requests ---- */

enum couch_method {
	COUCH_GET, /* and HEAD: see couch_req.head */
	COUCH_PUT,
	COUCH_POST,
	COUCH_DELETE,
	COUCH_COPY,
	COUCH_PATCH,
	COUCH_METHOD_COUNT,
	COUCH_OTHER_METHOD = COUCH_METHOD_COUNT,
};

/* What a request goes by from its beginning to its end. Never changes; settings.c. */
struct couch_settings {
	atomic_uint refs;
	uint64_t generation;
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES]; /* of the metadata that they were read at */
	struct config config;                      /* what `door` and `auth` say comes from here */
	struct couch_config door;
	struct auth *auth;
	bool fixed; /* the caller's of couch_new(); `config` is empty */
};

struct couch {
	struct couch_config config;  /* as given; what can change is in the settings */
	struct rev_tallies *tallies; /* what its loops know of ranges */
	char uuid[32];               /* of this server, in hexadecimal digits */
	atomic_bool maintained;      /* a backup or a compaction is under way */
	pthread_mutex_t lock;        /* of `settings` */
	struct couch_settings *settings;
	_Atomic uint64_t generation; /* of `settings` */
};

/* A loop's own: used by the fibers of one thread, never across a wait. */
struct couch_loop {
	struct rev_cache *cache;
	struct couch_settings *settings; /* the newest that the loop has heard of */
	struct rand_seq noise;           /* for names of requests, not for secrets */
	struct doc_room *room;           /* for documents that come in */
};

struct couch_req {
	struct http_exchange *x;
	struct couch *couch;
	struct couch_loop *loop;
	struct couch_settings *settings;
	struct arena *arena;
	enum couch_method method;
	bool head;
	struct str *parts; /* of the path, unescaped, without empty ones */
	size_t parts_count;
	struct http_param *params;
	size_t params_count;
	struct auth_user user;
	struct rev_db *db; /* as the latest transaction saw it; owned */
	struct couch_fail fail;
};

typedef enum status couch_handler(struct couch_req *r);

couch_handler couch_route; /* route.c */

/* ---- Settings (settings.c) ---- */

/* One more reference to the door's settings. */
struct couch_settings *couch_settings_ref(struct couch_settings *s);
void couch_settings_unref(struct couch_settings *s); /* NULL is fine */

/* As couch_new() was given them. NULL when out of memory. */
struct couch_settings *couch_settings_fixed(const struct couch_config *config);

/*
 * r->settings: the newest. In front of a store that others write to, too, they are looked for there
 * first, so that what another server has answered holds here: one read version a request.
 */
MUST_USE enum status couch_settings_take(struct couch_req *r);

/* Makes what the store has now the door's settings. */
MUST_USE enum status couch_settings_reload(struct couch *couch, struct err *err);

couch_handler couch_node_get; /* /_node/{name}/… */
couch_handler couch_node_put;
couch_handler couch_node_post;
couch_handler couch_node_delete;

/* What is set on this server and for all of them, in *ret_items by section and name. */
MUST_USE enum status couch_settings_list(struct couch_req *r, struct kv_tx *tx,
					 struct rev_setting **ret_items, size_t *ret_count);
/* The status and reason of a change that would be refused. */
MUST_USE enum status couch_settings_check(struct couch_req *r, struct kv_tx *tx,
					  const struct rev_setting *change);

/* ---- Other origins (cors.c) ---- */

/*
 * Sets what a browser has to know before it hands an answer to a page of another origin. True in
 * *ret_answered: the request was a preflight, and has been answered.
 */
MUST_USE enum status couch_cors(struct couch_req *r, bool *ret_answered);

/* ---- Reading the request (request.c) ---- */

/* Splits path and query; in both a '+' is a space, and %2B a '+', as CouchDB has it. */
MUST_USE enum status couch_req_parse(struct couch_req *r);

/* The last parameter of that name. */
bool couch_param(const struct couch_req *r, const char *name, struct str *ret);
/* True if the parameter is exactly "true", as CouchDB's documents' flags are. */
bool couch_param_true(const struct couch_req *r, const char *name);

/* Whether the value of a Content-Type is this type, its parameters left aside. */
bool couch_type_is(struct str header, struct str type);
/* 415 unless the Content-Type is application/json. */
MUST_USE enum status couch_require_json(struct couch_req *r);
MUST_USE enum status couch_db_require_json(struct couch_req *r); /* in a database */

/* The body, at most `max_bytes`; an empty one is STATUS_OK. */
MUST_USE enum status couch_read_body(struct couch_req *r, size_t max_bytes, struct str *ret);

/*
 * What a body that came with Content-Encoding: gzip stands for, at most `max_bytes` of it, in the
 * arena (encoding.c).
 */
MUST_USE enum status couch_inflate(struct couch_req *r, struct str body, size_t max_bytes,
				   struct str *ret);

/* Whether the Accept header allows a media type such as "multipart/mixed" by name, or (`wild`) also
 * by a wildcard or by its absence. */
bool couch_accepts(const struct couch_req *r, const char *type, bool wild);

/* The revision of If-Match, in *ret_found whether there is one. */
MUST_USE enum status couch_if_match(struct couch_req *r, struct rev_id *ret, bool *ret_found);

/* STATUS_OK, or the explained refusal, for a document's id as it travels. */
MUST_USE enum status couch_docid_check(struct str id, struct couch_fail *fail);

/* The request's body as an object; CouchDB's complaints otherwise. */
MUST_USE enum status couch_read_object(struct couch_req *r, size_t max_bytes,
				       struct json_member **ret, size_t *ret_count);

/* ---- Answering (reply.c) ---- */

/* An empty buffer for an answer or its input; it counts as memory of the request. */
struct buf couch_buf(struct couch_req *r, size_t max_bytes);

/* Content-Type and Cache-Control as CouchDB's JSON answers have them. */
void couch_json_headers(struct couch_req *r);

/* Sends a built answer and a newline. Fails with the buffer's failure. */
MUST_USE enum status couch_reply(struct couch_req *r, int code, struct buf *body);
MUST_USE enum status couch_reply_str(struct couch_req *r, int code, struct str body);
MUST_USE enum status couch_reply_ok(struct couch_req *r, int code); /* {"ok":true} */
void couch_reply_fail(struct couch_req *r, enum status status);
MUST_USE enum status couch_method_refused(struct couch_req *r, const char *allow);

/* Sets ETag to `"rev"`; true if If-None-Match has it, and then the 304 has been sent. */
MUST_USE enum status couch_reply_etag(struct couch_req *r, struct str tag, bool *ret_sent);
void couch_set_etag(struct couch_req *r, struct rev_id rev);
/* The same of anything that names what is in the answer. */
void couch_set_etag_of(struct couch_req *r, struct str name);

/* The host that the client has asked, also through a proxy that tells it; ptr NULL: none. */
struct str couch_host(const struct couch_req *r);
/* The absolute URL of /db, /db/doc or /db/doc/att (ptr NULL: not that far). */
void couch_set_location(struct couch_req *r, struct str db, struct str doc, struct str att);
/* The absolute URL of a path of this server that is a URL's already. */
void couch_set_location_path(struct couch_req *r, struct str path);

/* {"ok":true,"id":…,"rev":…} */
MUST_USE enum status couch_reply_written(struct couch_req *r, int code, struct str id,
					 struct rev_id rev);

/*
 * batch=ok promises less than is done: the document is on disk, and its revision is not told. 202
 * for a write that went well or met a conflict; fails with any other status.
 */
bool couch_wants_batch(const struct couch_req *r);
MUST_USE enum status couch_reply_batched(struct couch_req *r, struct str id, enum status status);

struct couch_snapshot;

/*
 * Places in an answer's text where the bytes of an attachment go: they are read and sent when it is
 * the text's turn, so that they never lie in memory.
 */
struct couch_holes {
	struct buf list;
};

#define COUCH_HOLES_INIT ((struct couch_holes){ BUF_INIT(64 << 20) })

bool couch_holes_any(const struct couch_holes *h);
void couch_holes_release(struct couch_holes *h);
/* Forgets those behind the first `len` bytes of the text. */
void couch_holes_cut(struct couch_holes *h, size_t len);
/* The bytes that the text and what fills its holes will be; false if nobody knows before. */
bool couch_holes_length(const struct couch_holes *h, uint64_t text_bytes, uint64_t *ret);
/* Those of a text that has been appended to another one behind its first `shift` bytes. */
MUST_USE enum status couch_holes_append(struct couch_holes *h, const struct couch_holes *from,
					size_t shift);
/* Sends the text, and fills the holes in it from `s` (NULL is fine where there are none). */
MUST_USE enum status couch_holes_send(const struct couch_holes *h, struct couch_req *r,
				      struct couch_snapshot *s, struct str text);

/*
 * An answer sent as it is made. It starts with the first piece that is sent, so that a failure
 * before still gets its proper code.
 */
struct couch_stream {
	struct couch_req *r;
	struct buf out;
	struct couch_holes holes; /* in `out` */
	/* What the holes are filled from: valid whenever a push can meet one. */
	struct couch_snapshot *snapshot;
	const char *content_type; /* NULL: CouchDB's JSON headers */
	bool started;
};

void couch_stream_init(struct couch_stream *s, struct couch_req *r);
void couch_stream_release(struct couch_stream *s);
/* Takes back what was written behind the first `len` bytes. */
void couch_stream_cut(struct couch_stream *s, size_t len);
/* Sends what there is, if it is enough to be worth it, or has holes, or `now`. */
MUST_USE enum status couch_stream_push(struct couch_stream *s, bool now);
MUST_USE enum status couch_stream_end(struct couch_stream *s);

/* ---- Databases and who may use them (access.c) ---- */

MUST_USE enum status couch_require_admin(struct couch_req *r); /* "You are not a server admin." */

enum couch_access {
	COUCH_ACCESS_MEMBER,
	COUCH_ACCESS_ADMIN, /* of the database */
};

/* Opens parts[0] as r->db in `tx` and checks that the user may use it. */
MUST_USE enum status couch_db_open(struct couch_req *r, struct kv_tx *tx, enum couch_access access);

/* True if the user may do what only a database's administrators may, such as write design
 * documents. After couch_db_open(). */
MUST_USE enum status couch_db_is_admin(struct couch_req *r, struct kv_tx *tx, bool *ret);

/*
 * A request that will send a large body: a stranger is turned away before it is read. (Whoever is
 * an administrator is checked with the work itself, and saves a round trip.)
 */
MUST_USE enum status couch_db_precheck(struct couch_req *r);
/* Opens r->db, and checks the user, unless that has been done. */
MUST_USE enum status couch_db_ensure(struct couch_req *r);
/* 401 for a design document and a user who may not write any. After couch_db_open(). */
MUST_USE enum status couch_design_check(struct couch_req *r, struct kv_tx *tx, struct str id);
/*
 * COUCH_ERROR_INVALID_DESIGN for a body whose functions are not where CouchDB has them; bodies of
 * other documents are all good (design.c). A tombstone needs no check.
 */
MUST_USE enum status couch_design_validate(struct couch_req *r, struct str id,
					   const struct doc *doc, struct couch_fail *fail);

couch_handler couch_security_get;
couch_handler couch_security_put;

/*
 * A consistent view of r->db for an answer that takes long. When the store no longer keeps the
 * version, couch_snapshot_renew() goes on with a later one.
 */
struct couch_snapshot {
	struct couch_req *r;
	struct kv_tx *tx;
	unsigned failures; /* in a row, without progress */
};

MUST_USE enum status couch_snapshot_begin(struct couch_snapshot *s, struct couch_req *r);
/* STATUS_OK if `status` was a reason to start over from the last row with a fresh view. */
MUST_USE enum status couch_snapshot_renew(struct couch_snapshot *s, enum status status);
void couch_snapshot_end(struct couch_snapshot *s);

/* ---- Documents (doc_in.c, doc_out.c) ---- */

/* A document as a client sent it. */
struct couch_doc {
	struct str id; /* of its _id; ptr NULL without one */
	bool deleted;
	struct rev_att_json *atts;
	size_t atts_count;
	struct rev_att_edit *att_edits; /* the same as couch_atts_load() has made them */
	struct rev_id rev;              /* pos 0: none */
	uint64_t start;                 /* rev.pos, once there is a revision */
	struct str *history;            /* the revision's hash, then its ancestors' */
	size_t history_count;
	struct doc doc;
	struct str text; /* as it came */
};

/*
 * Before an interactive write: a document of _replicator gets its owner, and is refused
 * (COUCH_ERROR_FORBIDDEN) if no replication can come of it. (replication_doc.c)
 */
MUST_USE enum status couch_replication_doc(struct couch_req *r, struct str id,
					   struct couch_doc *doc, struct couch_fail *fail);
/* Takes the document's body from another text, with the same special members. */
MUST_USE enum status couch_doc_again(struct couch_req *r, struct str text, struct str id,
				     struct couch_doc *doc, struct couch_fail *fail);

/*
 * CouchDB replaces the password of a document in _users with a hash. Nobody logs in by these
 * documents here, and none of them may keep a password as it came: COUCH_ERROR_NOT_IMPLEMENTED.
 */
MUST_USE enum status couch_doc_check_password(struct couch_req *r, const struct doc *doc,
					      struct couch_fail *fail);

/*
 * Reads the object whose first token has been read. `id` is the document's, as a URL has it, or ptr
 * NULL when the object's own counts.
 */
MUST_USE enum status couch_doc_parse(struct couch_req *r, struct json_reader *reader, struct str id,
				     struct couch_doc *ret, struct couch_fail *fail);
/* The same for a body that is a document and nothing else. */
MUST_USE enum status couch_doc_parse_text(struct couch_req *r, struct str text, struct str id,
					  struct couch_doc *ret);
/* A stored body as if a client had sent it, by way of `text`. */
MUST_USE enum status couch_doc_reparse(struct couch_req *r, const struct rev_doc *doc,
				       struct str id, struct buf *text, struct couch_doc *ret);
/*
 * The edit that makes the document what was sent. Attachments need couch_atts_load() first (att.h).
 */
struct rev_edit couch_doc_edit(const struct couch_doc *doc, struct str id, bool new_edits);

/*
 * True for an interactive edit of a revision that no document has, "0-…": a conflict, where the
 * model would take position 0 for "no revision named".
 */
static inline bool
couch_edit_of_nothing(const struct rev_edit *edit)
{
	return edit->kind == REV_EDIT_INTERACTIVE && edit->history_count && edit->parent.pos == 0;
}

/* "pos-hash" or the explained 400. */
MUST_USE enum status couch_rev_parse(struct str text, struct arena *arena, struct rev_id *ret,
				     struct couch_fail *fail);
void couch_rev_write(struct rev_id rev, struct buf *out); /* a JSON string */
struct str couch_uuid_new(struct arena *arena);           /* ptr NULL: no memory */

enum couch_doc_flags {
	COUCH_DOC_REVS = 1,
	COUCH_DOC_REVS_INFO = 2,
	COUCH_DOC_CONFLICTS = 4,
	COUCH_DOC_DELETED_CONFLICTS = 8,
	COUCH_DOC_LOCAL_SEQ = 16,
	COUCH_DOC_LATEST = 32,
	COUCH_DOC_ATTS = 64,          /* attachments=true */
	COUCH_DOC_ATT_ENCODING = 128, /* att_encoding_info=true */
	COUCH_DOC_FOLLOWS = 256,      /* the attachments come as parts behind the document */

	/* Those that need the tree, and those that are told of one leaf among several. */
	COUCH_DOC_OF_THE_TREE = COUCH_DOC_REVS | COUCH_DOC_REVS_INFO | COUCH_DOC_CONFLICTS |
				COUCH_DOC_DELETED_CONFLICTS | COUCH_DOC_LOCAL_SEQ,
	COUCH_DOC_OF_A_LEAF = COUCH_DOC_REVS | COUCH_DOC_ATTS | COUCH_DOC_ATT_ENCODING |
			      COUCH_DOC_FOLLOWS,
};

/* The flags of a query; "meta" is three of them. */
unsigned couch_doc_flags(const struct couch_req *r);

/* What of a document is told. */
struct couch_doc_opts {
	unsigned flags;
	uint64_t revs_limit; /* so many revisions are told at most (revs); 0: all */
	/* With COUCH_DOC_ATTS: those that came after the newest of these are told, others are stubs
	 * (atts_since). */
	bool has_since;
	struct rev_id *since;
	size_t since_count;
	struct couch_holes *holes; /* where the attachments go; NULL: only stubs are told */
};

/*
 * Appends a document as JSON. With `tree`, the flags say what of it is told; `branch` is the leaf
 * shown.
 */
struct couch_doc_out {
	struct str id;
	const struct rev_doc *doc;
	const struct rev_tree *tree;
	const struct rev_branch *branch;
	const struct couch_doc_opts *opts; /* NULL: nothing but the document, with stubs */
};

/* A list of revisions such as that of atts_since; CouchDB's complaint otherwise. */
MUST_USE enum status couch_revs_read(struct couch_req *r, struct str text, struct rev_id **ret,
				     size_t *ret_count, struct couch_fail *fail);

MUST_USE enum status couch_doc_write(const struct couch_doc_out *d, struct buf *out);

/* Reads the body of a leaf. A tombstone has perhaps none, and is empty then. */
MUST_USE enum status couch_leaf_read(struct couch_req *r, struct kv_tx *tx, struct str id,
				     const struct rev_branch *branch, struct rev_doc *ret);

/* The same of what reading it came to. */
MUST_USE enum status couch_leaf_is(enum status status, const struct rev_branch *branch,
				   struct rev_doc *doc);

/* Reads the body of a leaf and appends the document. */
MUST_USE enum status couch_leaf_write(struct couch_req *r, struct kv_tx *tx, struct str id,
				      const struct rev_tree *tree, const struct rev_branch *branch,
				      const struct couch_doc_opts *opts, struct buf *out);

/* The leaf for a revision that a client names: the leaf itself, or with `latest` the first that
 * descends from it. NULL if there is none. */
const struct rev_branch *couch_leaf_find(const struct rev_tree *tree, struct rev_id rev,
					 bool latest);

/* What there is of the revisions that a client wants: each leaf once, and each that is missing. */
struct couch_wanted {
	const struct rev_branch **leaves;
	size_t leaves_count;
	struct rev_id *missing;
	size_t missing_count;
};

/* With `latest`, all leaves that descend from one of them. In the arena. */
MUST_USE enum status couch_leaves_wanted(const struct rev_tree *tree, const struct rev_id *revs,
					 size_t count, bool latest, struct arena *arena,
					 struct couch_wanted *ret);

/* ---- Endpoints ---- */

couch_handler couch_root_welcome, couch_root_up, couch_root_uuids, couch_root_all_dbs,
	couch_root_membership, couch_root_dbs_info_get, couch_root_dbs_info_post,
	couch_root_favicon;
couch_handler couch_ops; /* ops.c */
couch_handler couch_root_utils;
couch_handler couch_replicate, couch_active_tasks, couch_scheduler; /* replicate.c */
couch_handler couch_session_get, couch_session_post, couch_session_delete;
/* A new cookie for who comes with one that is no longer fresh: unused sessions end. */
MUST_USE enum status couch_session_renew(struct couch_req *r);
couch_handler couch_db_get, couch_db_put, couch_db_delete, couch_db_post;
couch_handler couch_ensure_full_commit, couch_revs_limit_get, couch_revs_limit_put, couch_compact,
	couch_scheme_get, couch_scheme_put;
couch_handler couch_all_docs, couch_all_docs_queries;
couch_handler couch_bulk_docs, couch_bulk_get, couch_revs_diff, couch_missing_revs;
couch_handler couch_changes;
couch_handler couch_db_updates;
couch_handler couch_purge, couch_purged_infos_limit_get, couch_purged_infos_limit_put;

/* Appends a database's description, as GET /{db} answers it; r->db is open in `tx`. */
MUST_USE enum status couch_db_info_write(struct kv_tx *tx, const struct rev_db *db,
					 struct buf *out);

/* Documents, by id. */
MUST_USE enum status couch_doc_get(struct couch_req *r, struct str id);
MUST_USE enum status couch_doc_put(struct couch_req *r, struct str id);
MUST_USE enum status couch_doc_delete(struct couch_req *r, struct str id);
MUST_USE enum status couch_doc_copy(struct couch_req *r, struct str id);
MUST_USE enum status couch_doc_patch(struct couch_req *r, struct str id);
/* With a parameter `paths`. */
MUST_USE enum status couch_doc_get_paths(struct couch_req *r, struct str id);
MUST_USE enum status couch_local_get(struct couch_req *r, struct str id);
MUST_USE enum status couch_local_put(struct couch_req *r, struct str id);
MUST_USE enum status couch_local_delete(struct couch_req *r, struct str id);

/*
 * Writes a local document in a transaction's body, as _bulk_docs does, too. Attachments are left
 * out, as CouchDB does.
 */
MUST_USE enum status couch_local_write(struct couch_req *r, struct kv_tx *tx, struct str id,
				       const struct couch_doc *doc, struct rev_id *ret_rev);
/* The same in a transaction of its own, with the query's `rev`, and the answer. */
MUST_USE enum status couch_local_save(struct couch_req *r, struct str id,
				      const struct couch_doc *doc);

static inline bool
couch_is_local(struct str id)
{
	return str_starts_with(id, STR("_local/"));
}

static inline bool
couch_is_design(struct str id)
{
	return str_starts_with(id, STR("_design/"));
}

#endif
