/*
 * Any bytes as a value of RDB, behind a byte that says which type it has, or as a whole file. All
 * that is read lies in memory that is there, and what has been read to its end is the same when it
 * is read again.
 */
#include <stdlib.h>

#include "look.h"
#include "rdb/rdb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
};

static struct arena *arena;

static uint64_t
part_sum(const struct rdb_part *part)
{
	uint64_t sum = look(part->name) + look(part->value) + look(part->group);

	for (size_t i = 0; i < part->count; i++)
		sum = sum * 31 + look(part->fields[i]);
	return sum + part->id.ms + part->id.seq + part->ms + part->expires_ms;
}

static enum status
value_read(struct rdb_input *in, unsigned code, uint64_t *sum)
{
	struct rdb_part part;
	struct rdb_value v;
	enum status status;

	status = rdb_value_begin(in, code, &v);
	while (status == STATUS_OK) {
		status = rdb_value_next(&v, &part);
		if (status == STATUS_OK)
			*sum = *sum * 31 + part_sum(&part);
	}
	if (status == STATUS_INVALID && !in->err->text[0])
		abort();
	return status;
}

static enum status
all_read(struct str bytes, bool file, uint64_t *sum)
{
	struct err err = { 0 };
	struct rdb_input in = { .rest = bytes, .arena = arena, .err = &err };
	struct rdb_file_entry entry;
	struct rdb_file f;

	arena_clear(arena);
	*sum = 0;
	if (!file) {
		if (!bytes.len)
			return STATUS_INVALID;
		in.rest = str_skip(bytes, 1);
		return value_read(&in, (uint8_t)bytes.ptr[0], sum);
	}
	TRY(rdb_file_begin(bytes, arena, &err, &f));
	for (;;) {
		enum status status = rdb_file_next(&f, &entry);

		if (status != STATUS_OK)
			return status;
		*sum += look(entry.key) + entry.db + entry.expires_ms;
		if (entry.kind == RDB_FILE_KEY) {
			status = value_read(&f.in, entry.code, sum);
			if (status != STATUS_NOT_FOUND)
				return status;
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = str_of(data, size), value;
	bool file = size && data[0] == 'R';
	uint64_t sum, again;
	enum status status;

	if (!arena)
		arena = arena_new(ARENA_BYTES);
	(void)rdb_payload_is_sound(in, &value);
	status = all_read(in, file, &sum);
	if (status == STATUS_NOT_FOUND && (all_read(in, file, &again) != status || again != sum))
		abort();
	return 0;
}
