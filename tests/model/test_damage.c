/* What the check says of damage in a database with revisions: one condition of it at a time. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "doc/root.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "model/revisioned/local_root.h"
#include "model/revisioned/purges.h"
#include "model/revisioned/record.h"
#include "model/revisioned/revisioned_int.h"
#include "verified.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const uint8_t att_id[REV_ATT_ID_BYTES] = { 1, 2, 3 };

/* Document "a" has an attachment of one chunk and a byte, document "b" has none. */
static void
world_make(struct fixture *f)
{
	const size_t bytes = REV_ATT_CHUNK_BYTES + 1;
	struct rev_edit edit = fixture_copy(f, "a", "1-x", false, "{\"n\":12}");
	struct rev_att_edit att = {
		.source = REV_ATT_DATA,
		.att = { .name = STR("f"),
			 .type = STR("x/y"),
			 .length = bytes,
			 .encoded_length = bytes },
		.data = str_of(arena_zalloc(f->arena, bytes), bytes),
	};
	struct rev_result result;

	memcpy(att.att.id, att_id, sizeof(att_id));
	edit.atts = &att;
	edit.atts_count = 1;
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	fixture_replicate(f, "b", "1-y", false, "{\"n\":12}");
}

/* ---- Damages, each in a transaction ---- */

struct damaging {
	struct fixture *f;
	struct buf key, value;
};

static void
key_att(struct damaging *d, const char *space)
{
	rev_key_att(&d->key, d->f->db, str_from_cstr(space), att_id);
}

static void
a_counter_of_seven_bytes(struct damaging *d)
{
	key_att(d, "refs");
	buf_append(&d->value, "\1\0\0\0\0\0\0", 7);
}

static void
a_counter_of_nobody(struct damaging *d)
{
	key_att(d, "refs");
	buf_append(&d->value, "\0\0\0\0\0\0\0\0", 8);
}

static void
a_counter_that_is_too_high(struct damaging *d)
{
	key_att(d, "refs");
	buf_append(&d->value, "\0\0\0\0\0\0\0\x80", 8);
}

static void
more_behind_the_key_of_a_counter(struct damaging *d)
{
	key_att(d, "refs");
	tuple_put_u64(&d->key, 1);
	buf_append(&d->value, "\1\0\0\0\0\0\0\0", 8);
}

static void
an_attachment_in_another_space(struct damaging *d)
{
	key_att(d, "ref");
	buf_append(&d->value, "\1\0\0\0\0\0\0\0", 8);
}

static void
data_without_a_number(struct damaging *d)
{
	key_att(d, "data");
	buf_append_byte(&d->value, 'x');
}

static void
more_behind_the_key_of_a_chunk(struct damaging *d)
{
	key_att(d, "data");
	tuple_put_u64(&d->key, 0);
	tuple_put_u64(&d->key, 0);
	buf_append_byte(&d->value, 'x');
}

static void
an_attachment_without_an_id(struct damaging *d)
{
	rev_key_named(&d->key, d->f->db, REV_SUBSPACE_ATTACHMENTS, STR("data"));
	tuple_put_str(&d->key, STR("0123456789abcdef"));
	tuple_put_u64(&d->key, 0);
	buf_append_byte(&d->value, 'x');
}

static void
an_attachment_of_a_numbered_space(struct damaging *d)
{
	rev_key_space(&d->key, d->f->db, REV_SUBSPACE_ATTACHMENTS);
	tuple_put_u64(&d->key, 1);
	tuple_put_uuid(&d->key, att_id);
	buf_append_byte(&d->value, 'x');
}

static void
a_chunk_of_no_bytes(struct damaging *d)
{
	key_att(d, "data");
	tuple_put_u64(&d->key, 1);
}

static void
a_chunk_of_too_many_bytes(struct damaging *d)
{
	key_att(d, "data");
	tuple_put_u64(&d->key, 0);
	for (size_t i = 0; i <= REV_ATT_CHUNK_BYTES; i++)
		buf_append_byte(&d->value, 'x');
}

static void
a_chunk_too_many(struct damaging *d)
{
	key_att(d, "data");
	tuple_put_u64(&d->key, 2);
	buf_append_byte(&d->value, 'x');
}

/* The root of a document, which says whether there are attachments beneath it. */
static void
root_put(struct damaging *d, const char *id, const char *hash, bool more)
{
	const struct doc_root root = { .form = DOC_FORM_PACKED,
				       .packed = STR("{\"n\":12}"),
				       .more = more };

	rev_key_rev(&d->key, d->f->db, REV_SUBSPACE_DOCUMENTS, str_from_cstr(id), false,
		    (struct rev_id){ 1, str_from_cstr(hash) });
	doc_root_put(&d->value, &root);
}

static void
a_body_that_does_not_know_of_its_attachments(struct damaging *d)
{
	root_put(d, "a", "x", false);
}

static void
a_body_that_knows_of_attachments_that_are_not_there(struct damaging *d)
{
	root_put(d, "b", "y", true);
}

static void
a_body_as_it_was(struct damaging *d)
{
	root_put(d, "b", "y", false);
}

static void
local_put(struct damaging *d, const struct rev_local_root *root, bool more)
{
	rev_key_named(&d->key, d->f->db, REV_SUBSPACE_LOCAL, STR("_local/l"));
	if (more)
		tuple_put_u64(&d->key, 0);
	rev_local_root_put(&d->value, root);
}

static void
a_local_document_of_no_revision(struct damaging *d)
{
	local_put(d, &(struct rev_local_root){ DOC_FORM_PACKED, .rev = 0, .packed = STR("{}") },
		  false);
}

static void
a_local_document(struct damaging *d)
{
	local_put(d, &(struct rev_local_root){ DOC_FORM_PACKED, .rev = 1, .packed = STR("{}") },
		  false);
}

static void
a_purge_sequence_that_is_none(struct damaging *d)
{
	rev_key_named(&d->key, d->f->db, REV_SUBSPACE_STATS, REV_STAT_PURGED);
	buf_append_byte(&d->value, 'x');
}

static void
an_upload_of_no_id(struct damaging *d)
{
	tuple_put_u64(&d->key, KV_ROOT);
	tuple_put_u64(&d->key, KV_ROOT_UPLOADS);
	tuple_put_u64(&d->key, d->f->db->number);
	tuple_put_str(&d->key, STR("0123456789abcdef"));
	rev_upload_record_put(&d->value, &(struct rev_upload_record){ 1, 1 });
}

static void
more_behind_the_key_of_an_upload(struct damaging *d)
{
	rev_key_upload(&d->key, d->f->db->number, att_id);
	tuple_put_u64(&d->key, 1);
	rev_upload_record_put(&d->value, &(struct rev_upload_record){ 1, 1 });
}

/* ---- The record of purges ---- */

static void
purges_key(struct damaging *d, struct str part)
{
	rev_key_named(&d->key, d->f->db, REV_SUBSPACE_PURGES, part);
}

/* What no store has before it is very old. */
static const struct catalog_seq place = { { 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1 } };
static const struct catalog_seq place_above = { { 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1 } };

static void
purge_key_put(struct damaging *d, uint64_t incarnation, uint64_t part)
{
	purges_key(d, REV_PURGES_RECORDS);
	tuple_put_u64(&d->key, incarnation);
	tuple_put_versionstamp(&d->key, place.bytes + 1);
	tuple_put_u64(&d->key, part);
}

static void
purge_put(struct damaging *d, uint64_t incarnation, uint64_t part)
{
	static const uint8_t id[REV_PURGE_ID_BYTES] = { 1 };

	purge_key_put(d, incarnation, part);
	rev_purge_record_begin(&d->value, id, STR("a"));
	rev_purge_record_add(&d->value, (struct rev_id){ 1, STR("x") });
}

static void
a_purge_of_no_sequence(struct damaging *d)
{
	purges_key(d, REV_PURGES_RECORDS);
	tuple_put_u64(&d->key, 0);
}

static void
a_purge_without_a_part(struct damaging *d)
{
	purges_key(d, REV_PURGES_RECORDS);
	tuple_put_u64(&d->key, 0);
	tuple_put_versionstamp(&d->key, place.bytes + 1);
}

static void
a_purge_of_an_incarnation_that_none_is(struct damaging *d)
{
	purge_put(d, UINT8_MAX + 1, 0);
}

static void
more_behind_the_key_of_a_purge(struct damaging *d)
{
	purge_put(d, 0, 0);
	tuple_put_u64(&d->key, 0);
}

static void
a_purge_that_nobody_counts(struct damaging *d)
{
	purge_put(d, 0, 0);
}

static void
a_purge_without_its_first_part(struct damaging *d)
{
	purge_put(d, 0, 1);
}

static void
a_purge_of_nothing(struct damaging *d)
{
	purge_key_put(d, 0, 0);
	buf_append_byte(&d->value, 'x');
}

static void
purges_without_a_name(struct damaging *d)
{
	rev_key_space(&d->key, d->f->db, REV_SUBSPACE_PURGES);
}

static void
purges_of_a_number(struct damaging *d)
{
	rev_key_space(&d->key, d->f->db, REV_SUBSPACE_PURGES);
	tuple_put_u64(&d->key, 1);
}

static void
purges_of_another_name(struct damaging *d)
{
	purges_key(d, STR("clear"));
	rev_purge_mark_put(&d->value, &place);
}

static void
a_place_of_what_was_cleared(struct damaging *d)
{
	purges_key(d, REV_PURGES_CLEARED);
	rev_purge_mark_put(&d->value, &place);
}

static void
a_place_that_is_none(struct damaging *d)
{
	purges_key(d, REV_PURGES_CLEARED);
	buf_append_byte(&d->value, 'x');
}

static void
a_place_above_the_database(struct damaging *d)
{
	purges_key(d, REV_PURGES_CLEARED);
	rev_purge_mark_put(&d->value, &place_above);
}

static void
more_behind_the_key_of_what_was_cleared(struct damaging *d)
{
	a_place_of_what_was_cleared(d);
	tuple_put_u64(&d->key, 0);
}

static void
a_reader_without_a_name(struct damaging *d)
{
	purges_key(d, REV_PURGES_READERS);
	rev_purge_mark_put(&d->value, &place);
}

static void
a_reader_of_a_number(struct damaging *d)
{
	a_reader_without_a_name(d);
	tuple_put_u64(&d->key, 1);
}

static void
a_reader(struct damaging *d)
{
	a_reader_without_a_name(d);
	tuple_put_str(&d->key, STR("r"));
}

static void
more_behind_the_key_of_a_reader(struct damaging *d)
{
	a_reader(d);
	tuple_put_u64(&d->key, 1);
}

/* ---- Others ---- */

static void
a_chunk_below_a_packed_local_document(struct damaging *d)
{
	rev_key_named(&d->key, d->f->db, REV_SUBSPACE_LOCAL, STR("_local/l"));
	tuple_put_null(&d->key);
	tuple_put_u64(&d->key, 0);
	buf_append_byte(&d->value, 'x');
}

static void
change_key(struct damaging *d, const struct catalog_seq *seq)
{
	rev_key_change(&d->key, d->f->db, seq);
	buf_append_byte(&d->value, 'x');
}

static void
a_change_that_is_none(struct damaging *d)
{
	change_key(d, &place);
}

static void
a_change_above_the_database(struct damaging *d)
{
	change_key(d, &place_above);
}

static void
more_behind_the_key_of_a_change(struct damaging *d)
{
	change_key(d, &place);
	tuple_put_u64(&d->key, 1);
}

#define DAMAGE(name, found)                                                                        \
	{                                                                                          \
		name, #name, found                                                                 \
	}

static const struct {
	void (*make)(struct damaging *d);
	const char *name;
	const char *found;
} damages[] = {
	DAMAGE(a_counter_of_seven_bytes, "unreadable_value: not a counter\n"),
	DAMAGE(a_counter_of_nobody, "unreadable_value: not a counter\n"),
	DAMAGE(a_counter_that_is_too_high, "unreadable_value: not a counter\n"),
	DAMAGE(more_behind_the_key_of_a_counter, "unknown_key: not the key of an attachment\n"),
	DAMAGE(an_attachment_in_another_space, "unknown_key: not the key of an attachment\n"),
	DAMAGE(data_without_a_number, "unknown_key: not the key of an attachment\n"),
	DAMAGE(more_behind_the_key_of_a_chunk, "unknown_key: not the key of an attachment\n"),
	DAMAGE(an_attachment_without_an_id, "unknown_key: not the key of an attachment\n"),
	DAMAGE(an_attachment_of_a_numbered_space, "unknown_key: not the key of an attachment\n"),
	DAMAGE(a_chunk_of_no_bytes,
	       "attachment: its data is not there, or not the 90001 bytes that it should be\n"
	       "unreadable_value: no chunk has 0 bytes\n"),
	DAMAGE(a_chunk_of_too_many_bytes, "unreadable_value: no chunk has 90001 bytes\n"
					  "attachment: the chunk before it is not whole\n"),
	DAMAGE(a_chunk_too_many,
	       "attachment: its data is not there, or not the 90001 bytes that it should be\n"
	       "attachment: the chunk before it is not whole\n"),
	DAMAGE(a_body_that_does_not_know_of_its_attachments,
	       "attachment: the packed body does not know of its attachments\n"),
	DAMAGE(a_body_that_knows_of_attachments_that_are_not_there,
	       "attachment: the packed body knows of attachments that are not there\n"),
	DAMAGE(a_body_as_it_was, ""),
	DAMAGE(a_local_document_of_no_revision,
	       "unreadable_value: not the form and the revision of a local document\n"),
	DAMAGE(a_local_document, ""),
	DAMAGE(a_purge_sequence_that_is_none, "unreadable_value: not a Sequence\n"),
	DAMAGE(an_upload_of_no_id, "unknown_key: not an upload's id\n"),
	DAMAGE(more_behind_the_key_of_an_upload, "unknown_key: not an upload's id\n"),
	DAMAGE(a_purge_of_no_sequence, "unknown_key: not the Sequence of a purge\n"),
	DAMAGE(a_purge_without_a_part, "unknown_key: not the Sequence of a purge\n"),
	DAMAGE(a_purge_of_an_incarnation_that_none_is,
	       "unknown_key: not the Sequence of a purge\n"),
	DAMAGE(more_behind_the_key_of_a_purge, "unknown_key: not the Sequence of a purge\n"),
	DAMAGE(a_purge_that_nobody_counts,
	       "purge: the newest purge and the newest record of one differ\n"
	       "counter: the counter says 0, and there are 1\n"),
	DAMAGE(a_purge_without_its_first_part,
	       "purge: parts of the purge's record are missing before this one\n"
	       "purge: the newest purge and the newest record of one differ\n"
	       "counter: the counter says 0, and there are 1\n"),
	DAMAGE(a_purge_of_nothing, "unreadable_value: not a record of a purge\n"
				   "purge: the newest purge and the newest record of one differ\n"
				   "counter: the counter says 0, and there are 1\n"),
	DAMAGE(purges_without_a_name, "unknown_key: the record of purges has no such part\n"),
	DAMAGE(purges_of_a_number, "unknown_key: the record of purges has no such part\n"),
	DAMAGE(purges_of_another_name, "unknown_key: the record of purges has no such part\n"),
	DAMAGE(a_place_of_what_was_cleared, ""),
	DAMAGE(a_place_that_is_none, "unreadable_value: not a place in the record of purges\n"),
	DAMAGE(a_place_above_the_database, "sequence: Incarnation 9 is above the database's, 0\n"),
	DAMAGE(more_behind_the_key_of_what_was_cleared,
	       "unknown_key: the record of purges has no such part\n"),
	DAMAGE(a_reader_without_a_name, "unknown_key: the record of purges has no such part\n"),
	DAMAGE(a_reader_of_a_number, "unknown_key: the record of purges has no such part\n"),
	DAMAGE(a_reader, ""),
	DAMAGE(more_behind_the_key_of_a_reader,
	       "unknown_key: the record of purges has no such part\n"),
	DAMAGE(a_chunk_below_a_packed_local_document,
	       "body_corrupt: no text has this chunk at this place\n"),
	DAMAGE(a_change_that_is_none, "unreadable_value: not an entry of changes\n"
				      "tally: the counters of this range say 2, and there are 3\n"),
	DAMAGE(a_change_above_the_database,
	       "unreadable_value: not an entry of changes\n"
	       "sequence: Incarnation 9 is above the database's, 0\n"
	       "counter: not the versionstamp of the newest change\n"
	       "tally: the counters of this range say 2, and there are 3\n"),
	DAMAGE(more_behind_the_key_of_a_change,
	       "unknown_key: not a Sequence\n"
	       "tally: the counters of this range say 2, and there are 3\n"),
};

static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	struct damaging *d = arg;

	return kv_set(tx, buf_str(&d->key), buf_str(&d->value));
}

static void
each_damage_is_told_and_no_other(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(damages); i++) {
		struct damaging d = { .key = CATALOG_KEY_INIT,
				      .value = BUF_INIT(KV_LIMIT_VALUE_BYTES) };
		struct verified found;
		void *own;

		assert_int_equal(fixture_setup(&own), 0);
		d.f = own;
		world_make(d.f);
		if (i == 0)
			verified_none(d.f->store);
		damages[i].make(&d);
		assert_int_equal(kv_run(d.f->store, damage_body, &d, NULL, NULL), STATUS_OK);
		verified_read(d.f->store, &found);
		if (strcmp(found.all, damages[i].found) != 0)
			fail_msg("%s: %s", damages[i].name, found.all);
		buf_release(&d.key);
		buf_release(&d.value);
		fixture_teardown(&own);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_damage_is_told_and_no_other),
	};

	return cmocka_run_group_tests_name("damage", tests, NULL, NULL);
}
