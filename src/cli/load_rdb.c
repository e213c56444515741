#include "cli/load_rdb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/quote.h"
#include "base/steady.h"
#include "cli/load.h"
#include "cli/progress.h"
#include "door/redis/script/library.h"
#include "model/timed/items/items.h"
#include "rdb/items/rdb_items.h"

enum {
	RDB_BATCH_BYTES = 256 * 1024,  /* of one transaction; one part may have more */
	RDB_STRING_BYTES = 512 * 1024, /* of a string, that are written at once */
	RDB_NAME_BYTES = 4,            /* of a database */
};

/* A key, or a part of one that is long. */
struct piece {
	unsigned db;
	struct str key;
	uint64_t expires_ms; /* 0: never */
	bool begins;
	bool ends;
	uint64_t offset; /* of a string's bytes */
	struct str bytes;
	struct rdb_batch batch; /* of other types */
};

struct rdb_load {
	const struct load_rdb_request *request;
	struct str file;
	struct rdb_file reader;
	struct rdb_file_entry entry; /* that is read */
	struct kv_store *store;
	struct arena *read;  /* what is read lies here until the next part */
	struct arena *batch; /* the pieces */
	struct arena *tx;    /* of one attempt */
	struct arena *put;
	struct arena *functions; /* the libraries, until they are loaded */
	struct err err;
	struct progress progress;
	uint64_t now_ms;

	struct piece *pieces;
	struct str putting; /* the key of the one that is written */
	size_t count;
	size_t cap;
	size_t bytes;

	uint64_t keys;
	uint64_t expired;
	uint64_t empty;
	struct library *libraries;
	size_t library_count;
	size_t library_cap;
	uint64_t modules; /* keys with values of modules */
};

/* ---- A transaction ---- */

/* The databases that a transaction has opened. */
struct opened {
	struct catalog_db *dbs[TIMED_REDIS_DATABASES];
	struct timed timed[TIMED_REDIS_DATABASES];
};

static enum status
named_db_open(struct rdb_load *l, struct kv_tx *tx, struct str name, struct catalog_db **ret,
	      struct timed *ret_timed)
{
	enum status status = catalog_open(tx, NULL, CATALOG_SPACE_REDIS, name, ret, &l->err);

	if (status == STATUS_NOT_FOUND && l->request->create) {
		TRY(timed_items_create(tx, name, &l->err));
		status = catalog_open(tx, NULL, CATALOG_SPACE_REDIS, name, ret, &l->err);
	}
	if (status == STATUS_NOT_FOUND)
		return err_set(&l->err, status, "there is no database redis:%.*s", STR_ARG(name));
	TRY(status);
	timed_init(ret_timed, tx, *ret, NULL, &l->err);
	return STATUS_OK;
}

static enum status
db_open(struct rdb_load *l, struct kv_tx *tx, unsigned n, struct opened *o)
{
	char text[RDB_NAME_BYTES];
	struct str name = str_of(text, (size_t)snprintf(text, sizeof(text), "%u", n));

	return o->dbs[n] ? STATUS_OK : named_db_open(l, tx, name, &o->dbs[n], &o->timed[n]);
}

static enum status
piece_put(struct rdb_load *l, const struct piece *p, struct timed_item *item)
{
	struct timed_expiry expiry = { .kind = TIMED_EXPIRY_AT };

	if (p->begins && item->type != TIMED_LEAF)
		TRY(timed_item_delete(item));
	if (p->batch.type != RDB_STRING)
		TRY(rdb_batch_put(item, &p->batch, l->put));
	else if (p->begins)
		TRY(timed_value_set(item, p->bytes,
				    (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER }));
	else
		TRY(timed_value_write(item, p->offset, p->bytes));
	arena_clear(l->put);
	/* All fields of a hash may have expired. */
	if (!p->ends || !p->expires_ms || item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(timed_now(item->t));
	expiry.ms = (uint64_t)((int64_t)p->expires_ms + timed_ahead_ms(item->t));
	return timed_item_expire(item, expiry);
}

static enum status
pieces_put(struct rdb_load *l, struct kv_tx *tx, struct opened *o)
{
	struct timed_item item;

	for (size_t i = 0; i < l->count; i++) {
		const struct piece *p = &l->pieces[i];
		const struct piece *before = i ? p - 1 : NULL;

		l->putting = p->key;
		TRY(db_open(l, tx, p->db, o));
		if (!before || p->begins)
			TRY(timed_item_open(&o->timed[p->db], p->key, l->tx, &item));
		TRY(piece_put(l, p, &item));
	}
	return STATUS_OK;
}

static enum status
pieces_body(struct kv_tx *tx, void *arg)
{
	struct rdb_load *l = arg;
	struct opened o = { .dbs = { NULL } };
	enum status status;

	arena_clear(l->tx);
	arena_clear(l->put);
	status = pieces_put(l, tx, &o);
	for (unsigned i = 0; i < TIMED_REDIS_DATABASES; i++)
		if (o.dbs[i])
			catalog_db_unref(o.dbs[i]);
	return status;
}

static enum status
pieces_flush(struct rdb_load *l)
{
	if (l->count)
		TRY(kv_run(l->store, pieces_body, l, NULL, &l->err));
	l->putting = STR("");
	arena_clear(l->batch);
	l->pieces = NULL;
	l->count = l->cap = l->bytes = 0;
	return STATUS_OK;
}

/* ---- Keys ---- */

/* Adds a piece, and flushes those that are many before. */
static enum status
piece_add(struct rdb_load *l, const struct rdb_file_entry *e, struct piece **ret)
{
	if (l->bytes >= RDB_BATCH_BYTES || l->count >= l->request->batch_keys)
		TRY(pieces_flush(l));
	TRY(arena_room(l->batch, &l->pieces, l->count, &l->cap, sizeof(*l->pieces)));
	*ret = &l->pieces[l->count];
	**ret = (struct piece){ .db = (unsigned)e->db, .expires_ms = e->expires_ms };
	TRY(arena_copy(l->batch, e->key, &(*ret)->key));
	l->bytes += e->key.len;
	l->count++;
	return STATUS_OK;
}

static enum status
string_load(struct rdb_load *l, const struct rdb_file_entry *e, struct rdb_value *v)
{
	struct rdb_part part;
	uint64_t at = 0;

	TRY(rdb_value_next(v, &part));
	do {
		struct str left = str_skip(part.name, (size_t)at);
		struct piece *p;

		TRY(piece_add(l, e, &p));
		p->begins = !at;
		p->offset = at;
		p->bytes = left.len > RDB_STRING_BYTES ? str_of(left.ptr, RDB_STRING_BYTES) : left;
		at += p->bytes.len;
		p->ends = at == part.name.len;
		l->bytes += p->bytes.len;
		TRY(arena_copy(l->batch, p->bytes, &p->bytes));
	} while (at < part.name.len);
	l->keys++;
	return STATUS_OK;
}

static enum status
collection_load(struct rdb_load *l, const struct rdb_file_entry *e, struct rdb_value *v)
{
	struct piece *p;
	bool begins = true;

	do {
		TRY(piece_add(l, e, &p));
		TRY(rdb_batch_read(v, l->batch, RDB_BATCH_BYTES, &p->batch));
		p->begins = begins;
		p->ends = p->batch.complete;
		l->bytes += p->batch.bytes;
		if (begins && !p->batch.count) {
			/* Versions of Redis have written some that it leaves out, too. */
			l->empty++;
			l->count--;
			return STATUS_OK;
		}
		begins = false;
	} while (!p->ends);
	l->keys++;
	return STATUS_OK;
}

static enum status
key_load(struct rdb_load *l, const struct rdb_file_entry *e)
{
	struct rdb_value v;
	uint64_t parts;

	TRY(rdb_value_begin(&l->reader.in, e->code, &v));
	if (v.type == RDB_MODULE)
		return STATUS_OK;
	if (e->expires_ms && e->expires_ms <= l->now_ms) {
		l->expired++;
		return rdb_value_skip(&v, &parts);
	}
	return v.type == RDB_STRING ? string_load(l, e, &v) : collection_load(l, e, &v);
}

/* ---- Libraries of functions ---- */

/* Runs the library's code once, as FUNCTION LOAD does, and keeps what it registers. */
static enum status
library_read(struct rdb_load *l, struct str code)
{
	struct budget_part part = { .budget = NULL }; /* nobody else wants this process's memory */
	struct err err = { 0 };
	struct library *lib;
	enum status status;

	if (l->library_count == LIBRARY_COUNT)
		return err_set(&l->err, STATUS_LIMIT,
			       "it has more libraries of functions than there can be, %d "
			       "(LIBRARY_COUNT)",
			       LIBRARY_COUNT);
	TRY(arena_room(l->functions, &l->libraries, l->library_count, &l->library_cap,
		       sizeof(*l->libraries)));
	TRY(arena_copy(l->functions, code, &code));
	lib = &l->libraries[l->library_count++];
	status = library_learn(code, &part, l->functions, lib, &err);
	return status == STATUS_OK ? STATUS_OK
				   : err_set(&l->err, status, "the library of functions \"%s\": %s",
					     QUOTE_SHOW(lib->name),
					     err.text[0] ? err.text : status_name(status));
}

static enum status
libraries_body(struct kv_tx *tx, void *arg)
{
	struct rdb_load *l = arg;
	struct libraries to = { .arena = l->tx, .err = &l->err };
	struct catalog_db *db;
	struct timed timed;
	enum status status;

	arena_clear(l->tx);
	TRY(named_db_open(l, tx, STR(TIMED_FUNCTIONS), &db, &timed));
	to.t = &timed;
	status = library_check(&to, l->libraries, l->library_count, LIBRARY_REPLACE, &l->err);
	if (status == STATUS_OK)
		status = library_write(&to, l->libraries, l->library_count, LIBRARY_REPLACE);
	catalog_db_unref(db);
	return status;
}

/* All of them in one transaction, as FUNCTION RESTORE writes them. */
static enum status
libraries_load(struct rdb_load *l)
{
	return l->library_count ? kv_run(l->store, libraries_body, l, NULL, &l->err) : STATUS_OK;
}

/* ---- The file ---- */

static enum status
key_check(struct rdb_load *l, const struct rdb_file_entry *e)
{
	struct rdb_value v;
	uint64_t parts;

	if (e->db >= TIMED_REDIS_DATABASES)
		return err_set(&l->err, STATUS_INVALID,
			       "it has a database %llu; there are %d (TIMED_REDIS_DATABASES)",
			       (unsigned long long)e->db, TIMED_REDIS_DATABASES);
	TRY(rdb_value_begin(&l->reader.in, e->code, &v));
	l->modules += v.type == RDB_MODULE;
	return rdb_value_skip(&v, &parts);
}

/* Goes through the file. `loads`: and loads it; else it is checked. */
static enum status
file_walk(struct rdb_load *l, bool loads)
{
	enum status status;

	TRY(rdb_file_begin(l->file, l->read, &l->err, &l->reader));
	while ((status = rdb_file_next(&l->reader, &l->entry)) == STATUS_OK) {
		if (l->entry.kind == RDB_FILE_KEY)
			TRY(loads ? key_load(l, &l->entry) : key_check(l, &l->entry));
		else if (!loads && l->entry.kind == RDB_FILE_FUNCTION)
			TRY(library_read(l, l->entry.function));
		if (loads)
			progress_update(&l->progress, l->keys, l->file.len - l->reader.in.rest.len);
		arena_clear(l->read);
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	return loads ? pieces_flush(l) : STATUS_OK;
}

static void
file_complain(const struct rdb_load *l, enum status status, bool loads)
{
	const char *reason = l->err.text[0] ? l->err.text : status_name(status);
	size_t at = l->file.len - l->reader.in.rest.len;

	if (l->putting.len)
		cli_complain("%s: key %s: %s; not all of it was loaded", l->request->file,
			     QUOTE_SHOW(l->putting), reason);
	else
		cli_complain("%s: at byte %zu: %s; %s", l->request->file, at, reason,
			     loads ? "not all of it was loaded" : "nothing was loaded");
}

static enum status
file_load(struct rdb_load *l)
{
	enum status status = file_walk(l, false);

	if (status != STATUS_OK) {
		file_complain(l, status, false);
		return status;
	}
	status = libraries_load(l);
	if (status != STATUS_OK) {
		cli_complain("%s: its libraries of functions: %s; nothing was loaded",
			     l->request->file, l->err.text[0] ? l->err.text : status_name(status));
		return status;
	}
	progress_init(&l->progress, stderr, l->request->quiet, l->file.len);
	status = file_walk(l, true);
	progress_hide(&l->progress);
	if (status != STATUS_OK)
		file_complain(l, status, true);
	return status;
}

/* Maps the file. False after a complaint. */
static bool
file_map(const char *path, struct str *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *bytes = MAP_FAILED;
	struct stat st;

	*ret = STR("");
	if (fd < 0 || fstat(fd, &st) != 0) {
		cli_complain("cannot open %s: %s", path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		cli_complain("%s is no regular file: it is read twice", path);
	} else {
		bytes = st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
				   : NULL;
		if (bytes == MAP_FAILED)
			cli_complain("cannot read %s: %s", path, strerror(errno));
		else if (bytes)
			*ret = str_of(bytes, (size_t)st.st_size);
	}
	if (fd >= 0)
		close(fd);
	return bytes != MAP_FAILED;
}

static void
summary_print(const struct rdb_load *l)
{
	uint64_t ms = progress_elapsed_ms(&l->progress);

	printf("%llu keys loaded in %.1f s, %.0f keys/s", (unsigned long long)l->keys,
	       (double)ms / 1000, (double)l->keys * 1000 / (double)(ms ? ms : 1));
	if (l->library_count)
		printf("; %zu libraries of functions", l->library_count);
	if (l->expired)
		printf("; %llu had expired", (unsigned long long)l->expired);
	if (l->empty)
		printf("; %llu were empty", (unsigned long long)l->empty);
	printf("\n");
}

/* Tells what the file has that was left out. False: it has something. */
static bool
rest_tell(const struct rdb_load *l)
{
	if (l->modules)
		cli_complain("%s has %llu keys with values of modules, which were not taken",
			     l->request->file, (unsigned long long)l->modules);
	return !l->modules;
}

static enum status
load_begin(struct rdb_load *l)
{
	struct kv_options kv = { .create = l->request->create };

	l->read = arena_new(LOAD_ARENA_BYTES);
	l->batch = arena_new(LOAD_ARENA_BYTES);
	l->tx = arena_new(LOAD_ARENA_BYTES);
	l->put = arena_new(LOAD_ARENA_BYTES);
	l->functions = arena_new(LOAD_ARENA_BYTES);
	if (!l->read || !l->batch || !l->tx || !l->put || !l->functions) {
		cli_complain("out of memory");
		return STATUS_NOMEM;
	}
	return cli_open_store(l->request->store_url, &kv, &l->store);
}

int
load_rdb(const struct load_rdb_request *request)
{
	struct rdb_load l = { .request = request, .now_ms = steady_date_ms() };
	enum status status;
	bool whole = false;

	if (!file_map(request->file, &l.file))
		return CLI_FAILED;
	status = load_begin(&l);
	if (status == STATUS_OK)
		status = file_load(&l);
	if (status == STATUS_OK) {
		whole = rest_tell(&l);
		if (!request->quiet)
			summary_print(&l);
	}
	kv_close(l.store);
	arena_free(l.read);
	arena_free(l.batch);
	arena_free(l.tx);
	arena_free(l.put);
	arena_free(l.functions);
	if (l.file.len)
		(void)munmap((void *)(uintptr_t)l.file.ptr, l.file.len);
	return whole ? CLI_OK : CLI_FAILED;
}
