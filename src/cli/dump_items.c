/*
 * Dumping a database of Redis's clients. The first line is {"frond":"redis","format":1,…}, and each
 * other line is a key, or a part of one that is long and then has "more":true:
 *
 *     {"key":…,"type":"value","written_us":…,"expires_ms":…,"offset":…,"value":…}
 *     {"key":…,"type":"hash",…,"members":[[name,value,written_us,expires_ms],…]}
 *     {"key":…,"type":"set",…,"members":[[name,written_us],…]}
 *     {"key":…,"type":"zset",…,"members":[[name,score,written_us],…]}
 *     {"key":…,"type":"list",…,"members":[[value,written_us],…]}
 *     {"key":…,"type":"stream",…,"last_ms":…,"last_seq":…,"deleted_ms":…,"deleted_seq":…,
 *      "added":…,"members":[[ms,seq,field,value,…],…]}
 *
 * A group of consumers of a stream follows it, in lines with its consumers and with what is pending
 * for them. "read" is left out where nobody knows how many entries the group has read:
 *
 *     {"key":…,"type":"stream",…,"more":true,…,"group":…,"group_ms":…,"group_seq":…,"read":…,
 *      "consumers":[[name,seen_ms],…],"pending":[[ms,seq,consumer,delivered_ms,times],…]}
 *
 * A document that is a text has lines as a value has, with "text"; one in leaves has a list of
 * these: the way to each, its ordinal, and what it says. A piece of a long text has its number in
 * place of the ordinal.
 *
 *     {"key":…,"type":"json",…,"text":…}
 *     {"key":…,"type":"json",…,"leaves":[[[],0,{"members":2,"next":2}],[["a"],0,1.5],
 *      [["b"],1,{"elements":1,"first":0}],[["b",0],0,{"bytes":70000}],
 *      [["b",0],0,{"piece":"…"}],…]}
 *
 * Numbers at the end of a member are left out where they are the key's own write time and 0.
 */
#include <math.h>

#include "base/utf8.h"
#include "cli/dump.h"
#include "cli/rows.h"
#include "model/timed/items/group.h"
#include "model/timed/items/items.h"
#include "model/timed/items/json.h"

enum {
	ITEMS_PAGE = 100,
	VALUE_PIECE_BYTES = 512 * 1024,
};

struct items_dump {
	struct dump *dump;
	struct timed *t;
	const struct timed_stream *stream; /* what a stream says of itself; of its lines alone */
	uint64_t from;                     /* where the line began */
	size_t members;                    /* in the line */
};

/* ---- Parts of a line ---- */

/* Bytes as a JSON text, or as {"$blob": …} if they are no UTF-8. */
static void
bytes_write(struct str bytes, struct buf *out)
{
	const struct doc_scalar s = {
		.kind = utf8_valid_prefix(bytes) == bytes.len ? DOC_TEXT : DOC_BYTES,
		.text = bytes,
	};

	rows_scalar_write(&s, out);
}

static void
score_write(double score, struct buf *out)
{
	if (isinf(score))
		buf_append_cstr(out, score < 0 ? "\"-inf\"" : "\"inf\"");
	else if (score == 0 && signbit(score))
		buf_append_cstr(out, "\"-0\"");
	else
		json_write_double(out, score);
}

static void
stream_write(const struct timed_stream *s, struct buf *out)
{
	buf_printf(out, ",\"last_ms\":%llu,\"last_seq\":%llu,\"deleted_ms\":%llu",
		   (unsigned long long)s->last.ms, (unsigned long long)s->last.seq,
		   (unsigned long long)s->deleted.ms);
	buf_printf(out, ",\"deleted_seq\":%llu,\"added\":%llu", (unsigned long long)s->deleted.seq,
		   (unsigned long long)s->added);
}

/* What all lines about the item begin with. */
static void
line_begin_any(struct items_dump *d, const struct timed_item *item, bool more)
{
	struct buf *out = output_buf(&d->dump->output);

	d->from = output_position(&d->dump->output);
	d->members = 0;
	buf_append_cstr(out, "{\"key\":");
	bytes_write(item->key, out);
	buf_printf(out, ",\"type\":\"%s\",\"written_us\":%llu", rows_type_name(item->type),
		   (unsigned long long)item->write_us);
	if (item->expires_ms)
		buf_printf(out, ",\"expires_ms\":%llu", (unsigned long long)item->expires_ms);
	if (more)
		buf_append_cstr(out, ",\"more\":true");
	if (item->type == TIMED_STREAM)
		stream_write(d->stream, out);
}

/* A line of members. */
static void
line_begin(struct items_dump *d, const struct timed_item *item, bool more)
{
	line_begin_any(d, item, more);
	buf_append_cstr(output_buf(&d->dump->output), ",\"members\":[");
}

static enum status
line_end(struct items_dump *d, const char *end)
{
	buf_append_cstr(output_buf(&d->dump->output), end);
	return dump_end_line(d->dump, d->from, d->t->err);
}

/* What comes before a member: a comma, or the end of a line that is long enough and another one. */
static enum status
member_begin(struct items_dump *d, const struct timed_item *item)
{
	if (d->members == DUMP_LINE_ENTRIES ||
	    output_position(&d->dump->output) - d->from > DUMP_LINE_BYTES) {
		TRY(line_end(d, "]}"));
		line_begin(d, item, true);
	}
	if (d->members++)
		buf_append_byte(output_buf(&d->dump->output), ',');
	buf_append_byte(output_buf(&d->dump->output), '[');
	return STATUS_OK;
}

static enum status
member_end(struct items_dump *d, const struct timed_item *item, uint64_t write_us,
	   uint64_t expires_ms)
{
	struct buf *out = output_buf(&d->dump->output);

	if (write_us != item->write_us || expires_ms)
		buf_printf(out, ",%llu", (unsigned long long)write_us);
	if (expires_ms)
		buf_printf(out, ",%llu", (unsigned long long)expires_ms);
	buf_append_byte(out, ']');
	return buf_status(out);
}

/* ---- Items of each type ---- */

/* A value, or a document that is a text: in pieces, a line each. */
static enum status
text_dump(struct items_dump *d, const struct timed_item *header)
{
	bool is_value = header->type == TIMED_VALUE;
	uint64_t offset = 0;

	do {
		struct arena_mark mark = arena_mark(header->arena);
		struct timed_item item = *header;
		struct buf *out;
		struct str piece;

		TRY(is_value ? timed_value_get(&item, offset, VALUE_PIECE_BYTES, &piece)
			     : timed_json_text(&item, offset, VALUE_PIECE_BYTES, &piece));
		line_begin_any(d, header, offset > 0);
		out = output_buf(&d->dump->output);
		if (offset)
			buf_printf(out, ",\"offset\":%llu", (unsigned long long)offset);
		buf_append_cstr(out, is_value ? ",\"value\":" : ",\"text\":");
		bytes_write(piece, out);
		TRY(line_end(d, "}"));
		arena_reset(header->arena, mark);
		offset += VALUE_PIECE_BYTES;
	} while (offset < header->length);
	return STATUS_OK;
}

static enum status
member_dump(struct items_dump *d, const struct timed_item *item, const struct timed_member *m)
{
	struct buf *out = output_buf(&d->dump->output);

	TRY(member_begin(d, item));
	bytes_write(m->name, out);
	if (item->type != TIMED_SET)
		buf_append_byte(out, ',');
	if (item->type == TIMED_HASH)
		bytes_write(m->value, out);
	else if (item->type == TIMED_ZSET)
		score_write(m->score, out);
	return member_end(d, item, m->write_us, m->expires_ms);
}

static enum status
members_dump(struct items_dump *d, const struct timed_item *header)
{
	uint64_t from = 0;

	line_begin(d, header, false);
	do {
		struct arena_mark mark = arena_mark(header->arena);
		struct timed_item item = *header;
		struct timed_members page;

		TRY(timed_members_page(&item, from, DUMP_LINE_ENTRIES, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(member_dump(d, header, &page.members[i]));
		from = page.next;
		arena_reset(header->arena, mark);
	} while (from);
	return line_end(d, "]}");
}

static enum status
list_dump(struct items_dump *d, const struct timed_item *header)
{
	uint64_t from = 0;
	size_t count;

	line_begin(d, header, false);
	do {
		struct arena_mark mark = arena_mark(header->arena);
		struct timed_item item = *header;
		struct timed_elements page;

		TRY(timed_list_range(&item, from, DUMP_LINE_ENTRIES, &page));
		for (size_t i = 0; i < page.count; i++) {
			TRY(member_begin(d, header));
			bytes_write(page.elements[i].value, output_buf(&d->dump->output));
			TRY(member_end(d, header, page.elements[i].write_us, 0));
		}
		count = page.count;
		from += count;
		arena_reset(header->arena, mark);
	} while (count == DUMP_LINE_ENTRIES);
	return line_end(d, "]}");
}

static enum status
entry_dump(struct items_dump *d, const struct timed_item *item, const struct timed_entry *e)
{
	struct buf *out = output_buf(&d->dump->output);

	TRY(member_begin(d, item));
	buf_printf(out, "%llu,%llu", (unsigned long long)e->id.ms, (unsigned long long)e->id.seq);
	for (size_t i = 0; i < e->count; i++) {
		buf_append_byte(out, ',');
		bytes_write(e->fields[i], out);
	}
	return member_end(d, item, item->write_us, 0);
}

/* ---- Groups of consumers ---- */

static void
group_line_begin(struct items_dump *d, const struct timed_item *header,
		 const struct timed_group *group, const char *list)
{
	struct buf *out = output_buf(&d->dump->output);

	line_begin_any(d, header, true);
	buf_append_cstr(out, ",\"group\":");
	bytes_write(group->name, out);
	buf_printf(out, ",\"group_ms\":%llu,\"group_seq\":%llu", (unsigned long long)group->last.ms,
		   (unsigned long long)group->last.seq);
	if (group->read != TIMED_GROUP_UNREAD)
		buf_printf(out, ",\"read\":%llu", (unsigned long long)group->read);
	buf_printf(out, ",\"%s\":[", list);
}

/* Lines of the group's consumers, a page in each: at least one, which tells of the group. */
static enum status
consumers_dump(struct items_dump *d, const struct timed_item *header,
	       const struct timed_group *group)
{
	struct buf *out = output_buf(&d->dump->output);
	struct str after = { NULL, 0 };
	struct timed_consumers page;

	do {
		struct timed_item item = *header;

		TRY(timed_consumers_page(&item, group, after, DUMP_LINE_ENTRIES, &page));
		group_line_begin(d, header, group, "consumers");
		for (size_t i = 0; i < page.count; i++) {
			buf_append_cstr(out, i ? ",[" : "[");
			bytes_write(page.consumers[i].name, out);
			buf_printf(out, ",%llu]", (unsigned long long)page.consumers[i].seen_ms);
			after = page.consumers[i].name;
		}
		TRY(line_end(d, "]}"));
	} while (page.count == DUMP_LINE_ENTRIES);
	return STATUS_OK;
}

static enum status
pending_dump(struct items_dump *d, const struct timed_item *header, const struct timed_group *group)
{
	struct timed_pending_range range = { .to = { UINT64_MAX, UINT64_MAX },
					     .limit = DUMP_LINE_ENTRIES };
	struct buf *out = output_buf(&d->dump->output);
	struct timed_pendings page;

	do {
		struct arena_mark mark = arena_mark(header->arena);
		struct timed_item item = *header;

		TRY(timed_pending_range(&item, group, &range, &page));
		if (page.count)
			group_line_begin(d, header, group, "pending");
		for (size_t i = 0; i < page.count; i++) {
			const struct timed_pending *e = &page.entries[i];
			struct str owner;

			TRY(timed_pending_owner(&item, group, e, &owner));
			buf_printf(out, "%s[%llu,%llu,", i ? "," : "", (unsigned long long)e->id.ms,
				   (unsigned long long)e->id.seq);
			bytes_write(owner, out);
			buf_printf(out, ",%llu,%llu]", (unsigned long long)e->delivered_ms,
				   (unsigned long long)e->times);
			range.from = e->id;
		}
		if (page.count)
			TRY(line_end(d, "]}"));
		arena_reset(header->arena, mark);
	} while (page.count == DUMP_LINE_ENTRIES && timed_stream_id_next(&range.from));
	return STATUS_OK;
}

static enum status
groups_dump(struct items_dump *d, const struct timed_item *header)
{
	struct str after = { NULL, 0 };
	struct timed_groups page;

	do {
		struct timed_item item = *header;

		TRY(timed_groups_page(&item, after, ITEMS_PAGE, &page));
		for (size_t i = 0; i < page.count; i++) {
			TRY(consumers_dump(d, header, &page.groups[i]));
			TRY(pending_dump(d, header, &page.groups[i]));
			after = page.groups[i].name;
		}
	} while (page.count == ITEMS_PAGE);
	return STATUS_OK;
}

static enum status
stream_dump(struct items_dump *d, const struct timed_item *header)
{
	struct timed_stream_range range = { .to = { UINT64_MAX, UINT64_MAX },
					    .limit = DUMP_LINE_ENTRIES };
	struct timed_item first = *header;
	struct timed_stream stream;
	bool more;

	TRY(timed_stream_get(&first, &stream));
	d->stream = &stream;
	line_begin(d, header, false);
	do {
		struct arena_mark mark = arena_mark(header->arena);
		struct timed_item item = *header;
		struct timed_entries page;

		TRY(timed_stream_range(&item, &range, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(entry_dump(d, header, &page.entries[i]));
		more = page.count == DUMP_LINE_ENTRIES;
		if (more) {
			range.from = page.entries[page.count - 1].id;
			more = timed_stream_id_next(&range.from);
		}
		arena_reset(header->arena, mark);
	} while (more);
	TRY(line_end(d, "]}"));
	return groups_dump(d, header);
}

/* ---- Documents ---- */

static void
leaves_line_begin(struct items_dump *d, const struct timed_item *item, bool more)
{
	line_begin_any(d, item, more);
	buf_append_cstr(output_buf(&d->dump->output), ",\"leaves\":[");
}

static enum status
leaf_write(const struct timed_json_pair *pair, struct buf *out)
{
	const struct timed_json_leaf *leaf = &pair->leaf;

	if (pair->is_piece) {
		buf_append_cstr(out, "{\"piece\":");
		bytes_write(pair->bytes, out);
		buf_append_byte(out, '}');
		return STATUS_OK;
	}
	if (leaf->form == TIMED_JSON_SCALAR)
		return jtree_write(&leaf->scalar, &jtree_dense, 0, out);
	if (leaf->form == TIMED_JSON_LONG)
		buf_printf(out, "{\"bytes\":%llu}", (unsigned long long)leaf->count);
	else
		buf_printf(out, "{\"%s\":%llu,\"%s\":%lld}",
			   leaf->form == TIMED_JSON_OBJECT ? "members" : "elements",
			   (unsigned long long)leaf->count,
			   leaf->form == TIMED_JSON_OBJECT ? "next" : "first",
			   (long long)leaf->next);
	return STATUS_OK;
}

struct leaves_dump {
	struct items_dump *d;
	const struct timed_item *header;
};

static enum status
leaf_dump(void *arg, const struct timed_json_pair *pair)
{
	const struct leaves_dump *l = arg;
	struct items_dump *d = l->d;
	struct buf *out = output_buf(&d->dump->output);

	if (d->members == DUMP_LINE_ENTRIES ||
	    output_position(&d->dump->output) - d->from > DUMP_LINE_BYTES) {
		TRY(line_end(d, "]}"));
		leaves_line_begin(d, l->header, true);
	}
	buf_append_cstr(out, d->members++ ? ",[[" : "[[");
	for (size_t i = 0; i < pair->count; i++) {
		if (i)
			buf_append_byte(out, ',');
		if (pair->steps[i].element)
			buf_printf(out, "%lld", (long long)pair->steps[i].place);
		else
			json_write_str(out, pair->steps[i].name);
	}
	buf_printf(out, "],%llu,",
		   (unsigned long long)(pair->is_piece ? pair->n : pair->leaf.ordinal));
	TRY(leaf_write(pair, out));
	buf_append_byte(out, ']');
	return buf_status(out);
}

static enum status
json_dump(struct items_dump *d, const struct timed_item *header)
{
	struct leaves_dump l = { .d = d, .header = header };
	struct timed_item item = *header;

	if (header->length)
		return text_dump(d, header);
	leaves_line_begin(d, header, false);
	TRY(timed_json_each(&item, leaf_dump, &l));
	return line_end(d, "]}");
}

static enum status
item_dump(struct items_dump *d, const struct timed_item *item)
{
	switch (item->type) {
	case TIMED_VALUE:
		return text_dump(d, item);
	case TIMED_LIST:
		return list_dump(d, item);
	case TIMED_HASH:
	case TIMED_SET:
	case TIMED_ZSET:
		return members_dump(d, item);
	case TIMED_STREAM:
		return stream_dump(d, item);
	case TIMED_JSON:
		return json_dump(d, item);
	case TIMED_LEAF:
	case TIMED_INSERTED:
	case TIMED_TYPES:
		break;
	}
	return STATUS_CORRUPT;
}

/*
 * Dumps an item. Of one that is broken, in a database that is, the line that was begun is taken
 * back; lines before it have been written.
 */
static enum status
item_dump_any(struct items_dump *d, const struct timed_item *item)
{
	const struct catalog_broken *broken = d->dump->broken;
	struct buf *out = output_buf(&d->dump->output);
	enum status status;

	d->from = output_position(&d->dump->output);
	status = item_dump(d, item);
	if (!broken || (status != STATUS_CORRUPT && status != STATUS_NOT_FOUND))
		return status;
	out->len -= (size_t)(output_position(&d->dump->output) - d->from);
	*d->t->err = (struct err){ 0 };
	broken->tell(broken->arg, item->key, "a part of it, or all of it, is lost");
	return STATUS_OK;
}

static enum status
items_dump_all(struct items_dump *d, struct arena *arena)
{
	struct buf *out = output_buf(&d->dump->output);
	uint64_t from = 0;

	buf_printf(out, "{\"frond\":\"redis\",\"format\":%d", DUMP_TIMED_FORMAT);
	TRY(dump_timed_history(d->t, out));
	buf_append_cstr(out, "}\n");
	TRY(output_ready(&d->dump->output, d->t->err));
	do {
		struct timed_items page;

		arena_clear(arena);
		TRY(timed_items_page(d->t, from, ITEMS_PAGE, arena, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(item_dump_any(d, &page.items[i]));
		from = page.next;
	} while (from);
	return STATUS_OK;
}

enum status
dump_timed_items(struct dump *d, struct timed *t)
{
	struct items_dump items = { .dump = d, .t = t };
	struct arena *arena = arena_new(DUMP_ARENA_BYTES);
	enum status status = arena ? items_dump_all(&items, arena) : STATUS_NOMEM;

	arena_free(arena);
	return status;
}
