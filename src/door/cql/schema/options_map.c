/* The maps of a table's options: compaction, compression. They mean nothing here, and are kept. */
#include <stdlib.h>

#include "door/cql/schema/options_int.h"

#define COMPRESSOR_PREFIX "org.apache.cassandra.io.compress."
#define COMPACTION_PREFIX "org.apache.cassandra.db.compaction."

enum {
	NUMBER_BYTES = 64,
	PRESETS = 2, /* entries that are added where they are not said */
};

static enum status
fail(struct cql *q, const char *text)
{
	q->code = CQL_CODE_CONFIG;
	return err_set(q->err, STATUS_INVALID, "%s", text);
}

static struct schema_pair *
find(struct schema_pair *pairs, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(pairs[i].name, str_from_cstr(name)))
			return &pairs[i];
	return NULL;
}

/* An option by its older name gets the newer one. `both`: the text where both were said. */
static enum status
rename_option(struct cql *q, struct schema_pair *pairs, size_t count, const char *from,
	      const char *to, const char *both)
{
	struct schema_pair *old = find(pairs, count, from);

	if (!old)
		return STATUS_OK;
	if (find(pairs, count, to))
		return fail(q, both);
	old->name = str_from_cstr(to);
	return STATUS_OK;
}

/* A class without a package gets Cassandra's. */
static enum status
name_class(struct cql *q, struct schema_pair *class, const char *prefix)
{
	if (class->value.len && memchr(class->value.ptr, '.', class->value.len))
		return STATUS_OK;
	class->value = arena_printf(q->arena, "%s%.*s", prefix, STR_ARG(class->value));
	return class->value.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* The least ratio is a double, and 0 is as if it were not said. */
static enum status
check_ratio(struct cql *q, struct schema_pair *pairs, size_t *count)
{
	struct schema_pair *ratio = find(pairs, *count, "min_compress_ratio");
	char number[NUMBER_BYTES], *end = number;
	double d = 0;

	if (!ratio)
		return STATUS_OK;
	if (ratio->value.len && ratio->value.len < sizeof(number)) {
		memcpy(number, ratio->value.ptr, ratio->value.len);
		number[ratio->value.len] = '\0';
		d = strtod(number, &end);
	}
	if (end == number || *end)
		return fail(q, "Invalid min_compress_ratio");
	if (d < 0)
		return fail(q, "Invalid negative min_compress_ratio");
	if (d > 0 && d < 1)
		return fail(q, "min_compress_ratio can either be 0 or greater than or equal to 1");
	if (d == 0) {
		*ratio = pairs[--*count];
		return STATUS_OK;
	}
	ratio->value = arena_printf(q->arena, d == (double)(int64_t)d ? "%.1f" : "%.17g", d);
	return ratio->value.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
check_chunk(struct cql *q, const struct schema_pair *chunk)
{
	int64_t n;

	if (!chunk)
		return STATUS_OK;
	if (!str_to_i64(chunk->value, &n) || n > INT32_MAX / 1024)
		return fail(q, "Invalid value for chunk_length_in_kb");
	if (n <= 0)
		return fail(q, "Invalid negative or null chunk_length_in_kb");
	return n & (n - 1) ? fail(q, "chunk_length_in_kb must be a power of 2") : STATUS_OK;
}

/* Those of every compressor, and those that one of Cassandra's has besides. */
static enum status
check_known(struct cql *q, const struct schema_pair *pairs, size_t count)
{
	static const char *const known[] = {
		"class",
		"chunk_length_in_kb",
		"min_compress_ratio",
		"max_compressed_length",
		"crc_check_chance",
		"compression_level",
		"lz4_compressor_type",
		"lz4_high_compressor_level",
	};

	for (size_t i = 0; i < count; i++) {
		bool found = false;

		for (size_t j = 0; !found && j < sizeof(known) / sizeof(known[0]); j++)
			found = str_eq(pairs[i].name, str_from_cstr(known[j]));
		if (found)
			continue;
		q->code = CQL_CODE_CONFIG;
		return err_set(q->err, STATUS_INVALID, "Unknown compression options %.*s",
			       STR_ARG(pairs[i].name));
	}
	return STATUS_OK;
}

static bool
is_false(const struct schema_pair *p)
{
	return p && str_eq_nocase(p->value, STR("false"));
}

enum status
options_compression(struct cql *q, struct schema_pair *pairs, size_t *count)
{
	struct schema_pair *class, *enabled = find(pairs, *count, "enabled");
	const struct schema_pair *old = find(pairs, *count, "sstable_compression");
	bool disables = old && !old->value.len;

	TRY(rename_option(q, pairs, *count, "sstable_compression", "class",
			  "The 'sstable_compression' option must not be used if the compression "
			  "algorithm is already specified by the 'class' option"));
	TRY(rename_option(q, pairs, *count, "chunk_length_kb", "chunk_length_in_kb",
			  "The 'chunk_length_kb' option must not be used if the chunk length is "
			  "already specified by the 'chunk_length_in_kb' option"));
	if (disables) {
		pairs[0] = (struct schema_pair){ STR("enabled"), STR("false") };
		*count = 1;
		return STATUS_OK;
	}
	if (is_false(enabled))
		return *count == 1 ? STATUS_OK
				   : fail(q, "If the 'enabled' option is set to false no other "
					     "options must be specified");
	if (enabled)
		*enabled = pairs[--*count];
	class = find(pairs, *count, "class");
	if (!class)
		return *count ? fail(q, "Missing sub-option 'class' for the 'compression' option.")
			      : STATUS_OK;
	if (!class->value.len)
		return fail(q, "The 'class' option must not be empty. To disable compression use "
			       "'enabled' : false");
	TRY(name_class(q, class, COMPRESSOR_PREFIX));
	TRY(check_chunk(q, find(pairs, *count, "chunk_length_in_kb")));
	TRY(check_ratio(q, pairs, count));
	TRY(check_known(q, pairs, *count));
	if (!find(pairs, *count, "chunk_length_in_kb"))
		pairs[(*count)++] = (struct schema_pair){ STR("chunk_length_in_kb"), STR("16") };
	return STATUS_OK;
}

enum status
options_compaction(struct cql *q, struct schema_pair **pairs, size_t *count)
{
	static const struct {
		const char *name, *value;
	} presets[PRESETS] = {
		{ "max_threshold", "32" },
		{ "min_threshold", "4" },
	};
	struct schema_pair *all = arena_alloc(q->arena, (*count + PRESETS) * sizeof(*all));
	struct schema_pair *class = find(*pairs, *count, "class");

	if (!all)
		return STATUS_LIMIT;
	if (!class)
		return fail(q, "Missing sub-option 'class' for the 'compaction' option.");
	TRY(name_class(q, class, COMPACTION_PREFIX));
	for (size_t i = 0; i < *count; i++)
		all[i] = (*pairs)[i];
	for (size_t i = 0; i < PRESETS; i++)
		if (!find(*pairs, *count, presets[i].name) &&
		    str_eq(class->value, STR(COMPACTION_PREFIX "SizeTieredCompactionStrategy")))
			all[(*count)++] = (struct schema_pair){ str_from_cstr(presets[i].name),
								str_from_cstr(presets[i].value) };
	*pairs = all;
	return STATUS_OK;
}
