/*
 * Runs the functions of design documents: views, validation, filters, updates. They run in workers,
 * which are processes of their own in a sandbox (src/js/worker); this is the server's side.
 *
 * A worker is started when a call first needs one, and ended when it has been idle for a while.
 * A worker does one call at a time. A call that takes too long, or whose worker takes too much
 * memory or ends, fails with STATUS_FUNCTION; the worker is killed and another one takes its place.
 * Calls of two lanes never wait for each other, and one owner (a database) never has more than half
 * of a lane.
 *
 * The calls may be made on any thread and any fiber, and wait for the answer without holding up the
 * loop. A `struct js` is thread-safe. What a worker answers is checked for its form, but the texts
 * in it are whatever the worker has written: whoever uses one as JSON parses it as input from
 * outside.
 */
#ifndef FROND_JS_JS_H
#define FROND_JS_JS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "loop/wait.h"

struct js;
struct js_settings;

enum js_lane {
	JS_LANE_REQUEST, /* somebody waits: validation, filters, updates, reading a reduced view */
	JS_LANE_INDEX,   /* building views */
	JS_LANES,
};

struct js_config {
	const char *worker;    /* the worker's program; NULL: the one beside this program */
	unsigned workers;      /* the most of both lanes; 2 at least, half of them for each lane */
	uint64_t timeout_ms;   /* that one document may take */
	uint64_t idle_ms;      /* after which an idle worker is ended */
	uint64_t memory_bytes; /* that a worker may have resident */
	uint64_t output_bytes; /* that the functions may answer for one document */
	uint64_t slow_ms;      /* a call that takes longer is logged; 0: none is */
};

/* What the settings of this room say (js/settings.h). The texts stay the settings'. */
void js_config_set(struct js_config *config, const struct js_settings *settings);

/* Starts nothing yet. STATUS_NOMEM. */
MUST_USE enum status js_new(const struct js_config *config, struct js **ret, struct err *err);

/*
 * Ends all calls, those under way and those that wait, with STATUS_CANCELLED, and so every later
 * one: whatever a function of a client's does, the process can stop. From any thread, any number of
 * times; NULL is fine.
 */
void js_stop(struct js *js);

/* Kills all workers. No call may be under way. NULL is fine. */
void js_free(struct js *js);

/* STATUS_UNSUPPORTED, with a text that names the worker's program, if that is not there. */
MUST_USE enum status js_check(const struct js *js, struct err *err);

/* The process ids of workers, up to `most`, for tests and inspection. Returns how many. */
size_t js_workers(struct js *js, long *ret_pids, size_t most);

/* One version of a design document. Everything is the caller's, for the time of a call. */
struct js_design {
	uint64_t owner;      /* whose it is: the number of the database */
	struct str name;     /* for people: "db/_design/name" */
	struct str key;      /* bytes that no other version of any design document has */
	struct str language; /* "javascript", unless the design document says another */
	struct str text;     /* the design document as JSON text; or of JS_SCRIPTS */
};

/* The error's name when a worker has ended, or was killed, during a call. */
#define JS_LOST "os_process_error"
/* The reason, as JSON text, if a document has taken too long. */
#define JS_TIMED_OUT "\"OS process timed out.\""

/* Why a function failed, as CouchDB's clients see it. */
struct js_error {
	struct str name;   /* "compilation_error"; empty: nothing failed */
	struct str reason; /* JSON text, mostly of a string */
};

/* What all calls have in common. */
struct js_call {
	struct js *js;
	const struct js_design *design;
	enum js_lane lane;
	uint64_t deadline_ns; /* WAIT_FOREVER: the call waits for a worker as long as it takes */
	struct event *stop;   /* when it is set, nobody wants the answer any more; may be NULL */
	struct event *gone;   /* likewise, where two events may say so */
	struct arena *arena;  /* holds what is returned */
	/*
	 * Called once, on the caller's fiber, when no answer has come by `patience_ns`: the caller
	 * can let go of what it need not hold. The call goes on. NULL: nobody is told.
	 */
	void (*on_slow)(void *arg);
	void *slow_arg;
	uint64_t patience_ns;
	/* Set when a call returns STATUS_FUNCTION. In the arena. */
	struct js_error error;
};

/*
 * All calls return:
 * STATUS_FUNCTION: the design document's function failed; see `error`. CouchDB's names:
 *   compilation_error, not_found, os_process_error (time, memory or a crash), …
 * STATUS_UNSUPPORTED: this server has no worker.
 * STATUS_UNAVAILABLE: a worker cannot be started now.
 * STATUS_TIMEOUT: the deadline passed; STATUS_CANCELLED: `stop` was set, or js_stop() was called.
 * What whoever owns the fiber's work fails with while the call waits (loop/asking.h).
 * STATUS_TOO_MANY: too many calls wait. STATUS_LIMIT: the call, or its result, is too large.
 * STATUS_NOMEM.
 */

/* ---- Maps ---- */

/* The rows that documents gave; js_mapped_release() frees it. Texts in it point into it. */
struct js_mapped {
	struct buf bytes;
	size_t at;
	size_t done; /* documents that are covered: the first ones of the batch */
	size_t rows; /* what is left of the function that js_mapped_next() has returned */
};

/*
 * Maps documents (JSON texts) with the maps of the named views. The answer may cover only the first
 * of the documents, but at least one: the caller asks again with the rest. `ret` is filled if this
 * succeeds.
 */
MUST_USE enum status js_map(struct js_call *call, const struct str *views, size_t view_count,
			    const struct str *docs, size_t doc_count, struct js_mapped *ret,
			    struct err *err);
void js_mapped_release(struct js_mapped *m); /* fine on a zeroed one */

/*
 * Steps to the next function's rows: all views of the first document, all of the second, … True if
 * it has rows (perhaps none); false: the function threw for this document, which then has no rows,
 * and `*ret_reason` is why, as JSON text. Not more often than documents and views there are.
 */
bool js_mapped_next(struct js_mapped *m, struct str *ret_reason);

/* The function's next row, as JSON texts. False: there is none left. */
bool js_mapped_row(struct js_mapped *m, struct str *ret_key, struct str *ret_value);

/* ---- Reduces ---- */

enum js_reduce_limit {
	JS_REDUCE_LIMIT_OFF,
	JS_REDUCE_LIMIT_LOG,
	JS_REDUCE_LIMIT_ON, /* a result that does not shrink is a reduce_overflow_error */
};

struct js_group {
	struct str keys;   /* a JSON array of [key, id]; for a rereduce anything */
	struct str values; /* a JSON array */
};

/*
 * Reduces groups with the reduces of the named views. `ret_results[group * view_count + view]` is
 * the JSON text, "null" if the function threw; in a group that failed as a whole, ptr is NULL and
 * `ret_errors[group]` is set.
 */
MUST_USE enum status js_reduce(struct js_call *call, const struct str *views, size_t view_count,
			       bool rereduce, enum js_reduce_limit limit,
			       const struct js_group *groups, size_t group_count,
			       struct str *ret_results, struct js_error *ret_errors,
			       struct err *err);

/* ---- Compiling ---- */

enum js_view_function {
	JS_VIEW_MAP,
	JS_VIEW_REDUCE,
};

/* Compiles the maps or the reduces of the named views without calling them. */
MUST_USE enum status js_compile(struct js_call *call, enum js_view_function kind,
				const struct str *views, size_t view_count, struct err *err);

/* ---- Validation ---- */

struct js_edit {
	struct str doc; /* as it is to be */
	struct str old; /* as it is; "null": there is none */
};

enum js_verdict_kind {
	JS_ALLOWED,
	JS_FORBIDDEN,
	JS_UNAUTHORIZED,
	JS_FAULTY, /* the function failed */
};

struct js_verdict {
	enum js_verdict_kind kind;
	struct js_error error; /* unless it is allowed */
};

/*
 * Runs validate_doc_update for each edit. All texts are JSON. If one edit of several makes a worker
 * end, by taking too long or too much memory, that edit is JS_FAULTY and another worker gets the
 * rest. After several such edits the call fails.
 */
MUST_USE enum status js_validate(struct js_call *call, struct str user_ctx, struct str security,
				 const struct js_edit *edits, size_t count,
				 struct js_verdict *ret_verdicts, struct err *err);

/* ---- Filters ---- */

/*
 * Says of each document whether the filter of that name lets it pass, or, with `is_view`, whether
 * the map of the view of that name emits anything. `request` is JSON text.
 */
MUST_USE enum status js_filter(struct js_call *call, bool is_view, struct str name,
			       struct str request, const struct str *docs, size_t count,
			       bool *ret_passed, struct err *err);

/* ---- Updates ---- */

/*
 * Runs an update function. The document is JSON text, "null" if there is none; so is the result.
 */
MUST_USE enum status js_update(struct js_call *call, struct str name, struct str doc,
			       struct str request, struct str *ret_doc, struct str *ret_response,
			       struct err *err);

/* ---- Functions of MongoDB's clients ---- */

/*
 * The language of a `design` whose text is a JSON object of sources by name: {"where": …},
 * {"body": …}, or {"init": …, "accumulate": …, "finalize": …}. Its name and its key are whatever
 * tells it apart from others.
 */
#define JS_SCRIPTS STR("mongodb")

struct js_script_result {
	struct str text;       /* a value, as mongo.js of the worker writes it; JSON text */
	struct js_error error; /* the function threw, if its name is not empty */
};

/*
 * Calls the functions once for each of `asks`: `how` is "where", "call" or "accumulate", which
 * decides what an ask is (worker/mongo.js). What a function throws is that call's result. One that
 * makes the worker end, or a source that does not compile, fails the whole.
 */
MUST_USE enum status js_script(struct js_call *call, struct str how, const struct str *asks,
			       size_t count, struct js_script_result *ret_results, struct err *err);

#endif
