/*
 * frond load, taken apart: documents come from an input (cli/input.h), each is looked at
 * (load_doc_read()), and goes to a sink, a store or a server, which collects batches. What is
 * refused on the way is told to the report.
 */
#ifndef FROND_CLI_LOAD_H
#define FROND_CLI_LOAD_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "cli/progress.h"
#include "kv/kv.h"
#include "model/revisioned/revisioned.h"

enum {
	LOAD_BATCH_DOCS = 500,
	LOAD_BATCH_DOCS_MAX = 10000,
	LOAD_ARENA_BYTES = 512 * 1024 * 1024, /* of a batch: its leaves */
};

/* Where a document came from. */
struct load_origin {
	const char *file;
	uint64_t line; /* 0: the file as a whole */
};

struct load_report {
	uint64_t loaded;
	uint64_t refused;
	struct progress progress;
};

/* Tells one refusal, "FILE:LINE: reason", and counts it. */
void load_refuse(struct load_report *report, const struct load_origin *origin, const char *fmt, ...)
	PRINTF(3, 4);

struct load_doc {
	struct str text; /* one JSON object, checked */
	struct str id;
	bool has_id;          /* `text` has it as its _id */
	bool has_members;     /* `text` is not {} */
	size_t special_bytes; /* of `text`: members such as _rev, which count for no size */
	struct load_origin origin;
};

/*
 * Looks at a document's text: checks it and finds its id. In this order: `id` (a map's member name;
 * ptr NULL: none), the value of the member `id_member` (a string, or a number as it is written;
 * NULL: none), its _id, a new one. STATUS_INVALID if two of them differ or one is no string; the
 * reader's failures. The id is in the arena, the text is borrowed.
 */
MUST_USE enum status load_doc_read(struct str text, struct str id, const char *id_member,
				   struct arena *arena, struct load_doc *ret, struct err *err);

struct load_options {
	const char *db;
	bool create;
	enum rev_scheme scheme; /* of a database that is created; 0: the default */
	bool new_edits;
	bool update;
	size_t batch_docs;
	size_t doc_bytes;
	struct load_report *report;
};

struct load_sink {
	/*
	 * Takes one document; copies what it needs. STATUS_OK also when it was refused: the report
	 * knows. Anything else is the end.
	 */
	enum status (*put)(struct load_sink *sink, const struct load_doc *doc, struct err *err);
	/* Everything taken so far is stored, or refused. */
	enum status (*flush)(struct load_sink *sink, struct err *err);
	void (*free)(struct load_sink *sink);
};

/* Into a store, which the sink then owns and closes. */
MUST_USE enum status load_sink_store(struct kv_store *store, const struct load_options *options,
				     struct load_sink **ret, struct err *err);

/* Into a server, by its URL. */
MUST_USE enum status load_sink_server(const char *url, const struct load_options *options,
				      struct load_sink **ret, struct err *err);

#endif
