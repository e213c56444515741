#include "door/cql/run/metadata.h"

#include "base/big_endian.h"
#include "base/hash.h"

enum {
	ROWS_GLOBAL = 1 << 0,
	ROWS_HAS_MORE = 1 << 1,
	ROWS_NO_METADATA = 1 << 2,
};

static void
columns_put(struct buf *out, unsigned version, const struct result_columns *columns)
{
	frame_put_short(out, columns->keyspace);
	frame_put_short(out, columns->table);
	for (size_t i = 0; i < columns->count; i++) {
		frame_put_short(out, columns->columns[i].name);
		cql_type_put_option(out, columns->columns[i].type, version);
	}
}

void
metadata_put_rows(struct buf *out, unsigned version, const struct result_columns *columns,
		  bool skips, struct str state)
{
	int32_t flags = skips ? ROWS_NO_METADATA : ROWS_GLOBAL;

	if (state.ptr)
		flags |= ROWS_HAS_MORE;
	frame_put_i32(out, RESULT_ROWS);
	frame_put_i32(out, flags);
	frame_put_i32(out, (int32_t)columns->count);
	if (state.ptr)
		frame_put_long(out, state);
	if (!skips)
		columns_put(out, version, columns);
}

static void
markers_put(struct buf *out, unsigned version, const struct run *run)
{
	for (size_t i = 0; i < run->scope.marker_count; i++) {
		const struct cql_marker *m = &run->scope.markers[i];
		struct str name = run->outer->marker_names[i];

		frame_put_short(out, name.ptr ? name : m->name);
		cql_type_put_option(out, m->type ? m->type : CQL_NATIVE(BLOB), version);
	}
}

void
metadata_put_prepared(struct buf *out, unsigned version, struct str id, const struct run *run,
		      const unsigned *partition, size_t partition_count,
		      const struct result_columns *columns)
{
	const struct schema_table *t = run->table;
	char metadata[16];

	frame_put_i32(out, RESULT_PREPARED);
	frame_put_short(out, id);
	if (version >= 5) {
		metadata_id(columns, metadata);
		frame_put_short(out, str_of(metadata, sizeof(metadata)));
	}
	frame_put_i32(out, run->scope.marker_count ? ROWS_GLOBAL : 0);
	frame_put_i32(out, (int32_t)run->scope.marker_count);
	if (version >= 4) {
		frame_put_i32(out, (int32_t)partition_count);
		for (size_t i = 0; i < partition_count; i++)
			frame_put_u16(out, partition[i]);
	}
	if (run->scope.marker_count) {
		frame_put_short(out, t ? t->keyspace : STR(""));
		frame_put_short(out, t ? t->name : STR(""));
		markers_put(out, version, run);
	}
	if (!columns) {
		frame_put_i32(out, ROWS_NO_METADATA);
		frame_put_i32(out, 0);
		return;
	}
	frame_put_i32(out, ROWS_GLOBAL);
	frame_put_i32(out, (int32_t)columns->count);
	columns_put(out, version, columns);
}

void
metadata_id(const struct result_columns *columns, char ret[static 16])
{
	static const uint8_t seed[HASH_SEED_BYTES] = "frond cql result";
	uint64_t names = 0, types = 0;

	for (size_t i = 0; columns && i < columns->count; i++) {
		AUTO(buf_release) struct buf text = BUF_SHORT(64 * 1024);

		cql_type_print_class(&text, columns->columns[i].type);
		names = names * 31 + hash_seeded(seed, columns->columns[i].name);
		types = types * 31 + hash_seeded(seed, buf_str(&text));
	}
	big_endian_put_64(ret, names);
	big_endian_put_64(ret + 8, types);
}
