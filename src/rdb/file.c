/* Files: what comes before each key, and beside the keys. */
#include <limits.h>

#include "loop/step.h"
#include "rdb/crc64.h"
#include "rdb/value_int.h"

enum {
	MAGIC_BYTES = 9, /* "REDIS0010" */
	NAME_BYTES = 5,
	CHECKSUM_BYTES = 8,
	CHECKSUM_SINCE = 5, /* a version */

	FILE_SLOT_INFO = 0xf4,
	FILE_FUNCTION_OLD = 0xf6, /* of versions that were tried before 7.0 */
	FILE_MODULE_AUX = 0xf7,
	FILE_IDLE = 0xf8,
	FILE_FREQUENCY = 0xf9,
	FILE_AUX = 0xfa,
	FILE_SIZES = 0xfb,
	FILE_EXPIRES_MS = 0xfc,
	FILE_EXPIRES = 0xfd,
	FILE_DB = 0xfe,
	FILE_END = 0xff,
};

/* The checksum of a file is 0 where Redis was told to write none. */
static enum status
checksum_check(struct rdb_file *f, struct str file)
{
	struct str rest = f->in.rest;
	uint64_t said;

	if (f->version < CHECKSUM_SINCE)
		return STATUS_OK;
	if (rest.len < CHECKSUM_BYTES)
		return rdb_invalid(&f->in, "it ends too early");
	f->in.rest.len -= CHECKSUM_BYTES;
	said = bytes_le(str_skip(rest, f->in.rest.len));
	if (!said)
		return STATUS_OK;
	if (said == rdb_crc64(0, str_of(file.ptr, file.len - CHECKSUM_BYTES)))
		return STATUS_OK;
	return err_set(f->in.err, STATUS_CORRUPT,
		       "its checksum is wrong: it is damaged, or not all of it is there");
}

enum status
rdb_file_begin(struct str file, struct arena *arena, struct err *err, struct rdb_file *ret)
{
	uint64_t version;
	struct str magic;

	*ret = (struct rdb_file){ .in = { .rest = file, .arena = arena, .err = err } };
	if (!rdb_take(&ret->in, MAGIC_BYTES, &magic) || !str_starts_with(magic, STR("REDIS")) ||
	    !str_to_u64(str_skip(magic, NAME_BYTES), &version) || !version)
		return rdb_invalid(&ret->in, "it does not begin as files of Redis do");
	if (version > RDB_VERSION_FIELDS)
		return err_set(err, STATUS_NEWER,
			       "it has version %llu of the format; up to %d are known",
			       (unsigned long long)version, RDB_VERSION_FIELDS);
	ret->version = (unsigned)version;
	return checksum_check(ret, file);
}

/* Skips so many lengths. */
static enum status
skip_lengths(struct rdb_input *in, int count)
{
	uint64_t ignored;

	while (count--)
		TRY(rdb_read_length(in, &ignored));
	return STATUS_OK;
}

static enum status
skip_strings(struct rdb_input *in, int count)
{
	struct arena_mark mark = arena_mark(in->arena);
	struct str ignored;

	while (count--)
		TRY(rdb_read_string(in, &ignored));
	arena_reset(in->arena, mark);
	return STATUS_OK;
}

static enum status
expiry_read(struct rdb_file *f, bool seconds, uint64_t *ret_ms)
{
	TRY(rdb_read_number(&f->in, seconds ? 4 : 8, ret_ms));
	*ret_ms *= seconds ? 1000 : 1;
	if (*ret_ms > INT64_MAX)
		return rdb_invalid(&f->in, "a key expires before 1970");
	/* It is long over, and 0 is none. */
	if (!*ret_ms)
		*ret_ms = 1;
	return STATUS_OK;
}

static enum status
file_opcode(struct rdb_file *f, unsigned code, struct rdb_file_entry *ret, bool *ret_done)
{
	struct rdb_input *in = &f->in;
	uint64_t ignored;

	*ret_done = false;
	switch (code) {
	case FILE_SLOT_INFO:
		return skip_lengths(in, 3);
	case FILE_IDLE:
		return skip_lengths(in, 1);
	case FILE_FREQUENCY:
		return rdb_read_number(in, 1, &ignored);
	case FILE_AUX:
		return skip_strings(in, 2);
	case FILE_SIZES:
		return skip_lengths(in, 2);
	case FILE_EXPIRES_MS:
	case FILE_EXPIRES:
		return expiry_read(f, code == FILE_EXPIRES, &ret->expires_ms);
	case FILE_DB:
		return rdb_read_length(in, &f->db);
	case RDB_FUNCTION:
		ret->kind = RDB_FILE_FUNCTION;
		*ret_done = true;
		return rdb_read_string(in, &ret->function);
	case FILE_MODULE_AUX:
		ret->kind = RDB_FILE_MODULE;
		*ret_done = true;
		/* Its id; when it was written, which is a number with its code. */
		TRY(skip_lengths(in, 3));
		return rdb_module_skip(in);
	default:
		return rdb_invalid(in, "it has an unknown part");
	}
}

enum status
rdb_file_next(struct rdb_file *f, struct rdb_file_entry *ret)
{
	*ret = (struct rdb_file_entry){ .kind = RDB_FILE_KEY };
	for (;;) {
		bool done;
		uint64_t code;

		TRY(step_count(1));
		TRY(rdb_read_number(&f->in, 1, &code));
		if (code == FILE_END)
			return STATUS_NOT_FOUND;
		if (code < FILE_SLOT_INFO) {
			ret->db = f->db;
			ret->code = (unsigned)code;
			return rdb_read_string(&f->in, &ret->key);
		}
		TRY(file_opcode(f, (unsigned)code, ret, &done));
		if (done)
			return STATUS_OK;
	}
}
