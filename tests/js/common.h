/* A pool with the real worker, and calls with less to write. */
#ifndef FROND_TESTS_JS_COMMON_H
#define FROND_TESTS_JS_COMMON_H

#include "js/js.h"

struct fixture {
	struct js_config config;
	struct js *js;
	struct arena *arena;
	struct err err;
};

/* What the tests change of the settings is in `config` before fixture_open(). */
struct js_config fixture_config(void);
void fixture_open(struct fixture *f, const struct js_config *config);
void fixture_close(struct fixture *f);

/* A version of a design document, of its text; the key is the text. */
struct js_design design_of(uint64_t owner, const char *text);

/* A call on that design document, with the fixture's arena. */
struct js_call call_of(struct fixture *f, const struct js_design *design, enum js_lane lane);

/*
 * Maps one document with one view, and returns the rows as "key=value;…", or "!" and the error, or
 * "?" and the reason why the function threw. In the arena.
 */
const char *map_one(struct fixture *f, const struct js_design *design, const char *view,
		    const char *doc);

/* Waits for so long at most until the pool has that many workers; false: it does not get them. */
bool workers_become(struct js *js, size_t n, uint64_t ms);
/* The same; the test fails where it does not. */
void await_workers(struct js *js, size_t n);

#endif
