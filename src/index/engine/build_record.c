/*
 * How far a stretch of a build is, as it is stored:
 *
 *     format 1: (1, after, end, done, passed, total, started ms, updated ms, violations, examples)
 */
#include "catalog/format.h"
#include "catalog/keys.h"
#include "index/engine/build.h"

enum {
	BUILD_FORMAT = 1, /* the newest */
};

void
index_key_stretch(struct buf *key, const struct catalog_db *db, uint64_t number, uint64_t stretch)
{
	index_key_build(key, db, number);
	tuple_put_u64(key, stretch);
}

void
index_build_record_put(struct buf *value, const struct index_build_record *record)
{
	buf_clear(value);
	tuple_put_u64(value, BUILD_FORMAT);
	tuple_put_str(value, record->after);
	tuple_put_str(value, record->end);
	tuple_put_bool(value, record->done);
	tuple_put_u64(value, record->passed);
	tuple_put_u64(value, record->total);
	tuple_put_u64(value, record->started_ms);
	tuple_put_u64(value, record->updated_ms);
	tuple_put_u64(value, record->violations);
	tuple_put_str(value, record->examples);
}

static enum status
build_record_numbers(struct tuple_reader *r, struct index_build_record *ret)
{
	uint64_t *const numbers[] = { &ret->passed, &ret->total, &ret->started_ms, &ret->updated_ms,
				      &ret->violations };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		TRY(tuple_next_u64(r, numbers[i]));
	return STATUS_OK;
}

enum status
index_build_record_parse(struct str value, struct arena *arena, struct index_build_record *ret,
			 struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	*ret = (struct index_build_record){ 0 };
	TRY(catalog_format_next(&r, "record of an index that is being built", BUILD_FORMAT, &format,
				err));
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &ret->after));
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &ret->end));
	TRY(tuple_next_bool(&r, &ret->done));
	TRY(build_record_numbers(&r, ret));
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &ret->examples));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}
