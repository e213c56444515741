/*
 * The parts of frond load. Documents come from an input (cli/input.h). load_doc_read() checks each
 * one, and a sink, which is a store or a server, collects them in batches. The report counts what
 * was loaded and tells what was refused. All of it belongs to one thread.
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
	LOAD_ARENA_BYTES = 512 * 1024 * 1024, /* for the leaves of a batch */
};

/* Where a document came from. */
struct load_origin {
	const char *file;
	uint64_t line; /* from 1; 0 stands for the file as a whole */
};

struct load_report {
	uint64_t loaded;
	uint64_t refused;
	struct progress progress;
};

/* Prints "FILE:LINE: reason" to standard error, and counts one refusal. */
void load_refuse(struct load_report *report, const struct load_origin *origin, const char *fmt, ...)
	PRINTF(3, 4);

struct load_doc {
	struct str text; /* one JSON object, checked */
	struct str id;
	bool has_id;          /* `text` has the id as its member _id */
	bool has_members;     /* `text` is not {} */
	size_t special_bytes; /* how much of `text` are special members, which no limit counts */
	struct load_origin origin;
};

/*
 * Checks a document's text and finds its id: the first that exists of `id` (a map's member name;
 * ptr NULL: none), the value of the member `id_member` (a string, or a number as it is written;
 * NULL: none), the member _id, and a new id. STATUS_INVALID if two of them differ or one is no
 * string; the failures of the JSON reader. The id is in the arena, the text is borrowed.
 */
MUST_USE enum status load_doc_read(struct str text, struct str id, const char *id_member,
				   struct arena *arena, struct load_doc *ret, struct err *err);

struct load_options {
	const char *db;
	bool create;
	enum rev_scheme scheme; /* for a database that is created; 0: the default */
	bool partitioned;       /* likewise */
	bool new_edits;
	bool update;
	bool as_stored; /* no validator sees the documents, and people stay as they are */
	size_t batch_docs;
	size_t doc_bytes;
	struct load_report *report;
};

struct load_sink {
	/*
	 * Takes one document, and copies what it needs. A document that is refused is counted by
	 * the report, and is STATUS_OK here. Any other status ends the command.
	 */
	enum status (*put)(struct load_sink *sink, const struct load_doc *doc, struct err *err);
	/* Stores what was taken so far. Afterwards each document is stored or refused. */
	enum status (*flush)(struct load_sink *sink, struct err *err);
	void (*free)(struct load_sink *sink);
};

/* A sink that writes into a store, which it owns from now on and closes. */
MUST_USE enum status load_sink_store(struct kv_store *store, const struct load_options *options,
				     struct load_sink **ret, struct err *err);

/* A sink that writes into the server at a URL. */
MUST_USE enum status load_sink_server(const char *url, const struct load_options *options,
				      struct load_sink **ret, struct err *err);

#endif
