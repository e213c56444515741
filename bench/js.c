/*
 * How many documents of 1,000 bytes a worker maps for each second of its processor's time, beside
 * what its engine does alone: JSON text to values, the same function, what it emits to JSON text,
 * without frozen documents, a process or a protocol. Both over the same documents.
 *
 *     js WORKER [SECONDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <JavaScriptCore/JavaScript.h>

#include "base/clock.h"
#include "cpu.h"
#include "js/js.h"
#include "load_data.h"

enum {
	DOCS = 2000,
	ARENA_BYTES = 64 * 1024 * 1024,
	SECONDS = 3,
	TEXT_BYTES = 8 * 1024 * 1024,
};

#define MAP "function (doc) { emit(doc._id, doc.n) }"

static struct str docs[DOCS];

static bool
make_docs(struct arena *arena)
{
	struct buf b = BUF_INIT(TEXT_BYTES);

	for (size_t i = 0; i < DOCS; i++) {
		buf_clear(&b);
		data_append_doc(&b, i, true, STR("1-967a00dff5e02add41819138abb3284d"));
		docs[i] = arena_dup(arena, buf_str(&b));
		if (buf_status(&b) != STATUS_OK || !docs[i].ptr)
			return false;
	}
	buf_release(&b);
	return true;
}

/* ---- The engine alone ---- */

static JSValueRef
evaluate(JSContextRef ctx, const char *source)
{
	JSStringRef text = JSStringCreateWithUTF8CString(source);
	JSValueRef value = JSEvaluateScript(ctx, text, NULL, NULL, 1, NULL);

	JSStringRelease(text);
	return value;
}

static double
measure_engine(double seconds)
{
	static char row[TEXT_BYTES];
	JSGlobalContextRef ctx = JSGlobalContextCreate(NULL);
	JSObjectRef map = JSValueToObject(
		ctx,
		evaluate(ctx, "var rows, emit = function (k, v) { rows.push([k, v]) }, f = " MAP ";"
			      "(function (text) { rows = []; f(JSON.parse(text)); "
			      "return JSON.stringify(rows) })"),
		NULL);
	clock_t began = clock();
	uint64_t done = 0;

	while ((double)(clock() - began) < seconds * CLOCKS_PER_SEC) {
		for (size_t i = 0; i < DOCS; i++) {
			JSStringRef text = JSStringCreateWithUTF8CString(docs[i].ptr);
			JSValueRef arg = JSValueMakeString(ctx, text);
			JSStringRef out = JSValueToStringCopy(
				ctx, JSObjectCallAsFunction(ctx, map, NULL, 1, &arg, NULL), NULL);

			done += JSStringGetUTF8CString(out, row, sizeof(row)) > 2;
			JSStringRelease(out);
			JSStringRelease(text);
		}
	}
	return (double)done * CLOCKS_PER_SEC / (double)(clock() - began);
}

/* ---- A worker ---- */

static bool
map_all(struct js_call *call, uint64_t *done)
{
	const struct str view = STR("v");
	size_t from = 0;
	struct err err;

	while (from < DOCS) {
		struct js_mapped m = { 0 };

		if (js_map(call, &view, 1, docs + from, DOCS - from, &m, &err) != STATUS_OK) {
			fprintf(stderr, "js: %s\n", err.text);
			return false;
		}
		from += m.done;
		*done += m.done;
		js_mapped_release(&m);
	}
	return true;
}

static bool
measure_worker(const char *program, struct arena *arena, double seconds)
{
	const struct js_design design = {
		.name = STR("bench"),
		.key = STR("bench"),
		.language = STR("javascript"),
		.text = STR("{\"views\":{\"v\":{\"map\":\"" MAP "\"}}}"),
	};
	const struct js_config config = { .worker = program,
					  .workers = 2,
					  .timeout_ms = 60 * 1000,
					  .idle_ms = 60 * 1000,
					  .memory_bytes = (uint64_t)1 << 30,
					  .output_bytes = 1 << 20 };
	struct js_call call = { .design = &design,
				.lane = JS_LANE_INDEX,
				.deadline_ns = WAIT_FOREVER,
				.arena = arena };
	uint64_t done = 0;
	uint64_t worker_us;
	clock_t own;
	long pid;
	uint64_t end;

	if (js_new(&config, &call.js, NULL) != STATUS_OK || !map_all(&call, &done) ||
	    js_workers(call.js, &pid, 1) != 1)
		return false;
	done = 0;
	worker_us = cpu_of_process_us((int)pid);
	own = clock();
	end = clock_after_ms((uint64_t)(seconds * 1000));
	while (clock_mono_ns() < end)
		if (!map_all(&call, &done))
			return false;
	own = clock() - own;
	worker_us = cpu_of_process_us((int)pid) - worker_us;
	printf("worker: %.0f documents a second of its processor time; %.0f with the server's "
	       "side\n",
	       (double)done * 1e6 / (double)worker_us,
	       (double)done * 1e6 / ((double)worker_us + (double)own * 1e6 / CLOCKS_PER_SEC));
	js_free(call.js);
	return true;
}

int
main(int argc, char **argv)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	double seconds = argc > 2 ? atof(argv[2]) : SECONDS;

	if (argc < 2 || !arena || !data_init() || !make_docs(arena)) {
		fprintf(stderr, "usage: js WORKER [SECONDS]\n");
		return 1;
	}
	if (!measure_worker(argv[1], arena, seconds))
		return 1;
	printf("engine: %.0f documents a second of its processor time\n", measure_engine(seconds));
	arena_free(arena);
	return 0;
}
