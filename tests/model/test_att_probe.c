/*
 * What operations on attachments answer when a call of the store fails, when their memory ends and
 * when what they read is damaged; and by what they conflict (probe.h): edits with attachments from
 * each source, readers, uploads, and what is left of these.
 */
#include "between.h"

#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "model/revisioned/att_json.h"
#include "model/revisioned/revisioned_int.h"
#include "probe.h"

enum {
	BIG_BYTES = 2 * REV_ATT_CHUNK_BYTES + 5,
	PIECE_BYTES = 70000, /* of what is read of a large one */
	EDITS = 4,
};

struct world {
	struct fixture *f;
	struct rev_upload *upload;
	struct rev_att_edit staged; /* by `upload`, which no revision has taken */
	struct rev_att kept, big, zip;
};

static const struct catalog_db *
begin(struct probe *p)
{
	const struct world *w = p->world;

	probe_begin(p);
	return w->f->db;
}

static void
say_rev(struct probe *p, struct rev_id rev)
{
	rev_id_write(rev, &p->said);
	buf_append_byte(&p->said, '|');
}

/* ---- Making attachments ---- */

static struct rev_att_edit
att_stub(const char *name, uint64_t revpos)
{
	return (struct rev_att_edit){
		.source = REV_ATT_STUB,
		.att = { .name = str_from_cstr(name), .revpos = revpos },
		.has_revpos = revpos > 0,
	};
}

static struct rev_att_edit
att_shared(const struct rev_att *att, const char *name)
{
	struct rev_att_edit edit = { .source = REV_ATT_SHARED, .att = *att };

	edit.att.name = str_from_cstr(name);
	return edit;
}

static struct rev_upload *
upload_new(struct world *w, int gzip_level, size_t memory_bytes)
{
	const struct rev_upload_options options = {
		.store = w->f->store,
		.db = w->f->db,
		.gzip_level = gzip_level,
		.memory_bytes = memory_bytes,
	};
	struct rev_upload *u;

	assert_int_equal(rev_upload_new(&options, &u), STATUS_OK);
	return u;
}

/* Uploads bytes that hardly repeat. */
static void
upload_all(struct rev_upload *u, size_t bytes, const char *name, struct rev_att_edit *ret)
{
	struct rand_seq seq = { .state = 1 };
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	char *data = malloc(bytes);

	assert_non_null(data);
	for (size_t i = 0; i < bytes; i++)
		data[i] = (char)rand_seq_next(&seq);
	assert_int_equal(rev_upload_write(u, str_of(data, bytes), NULL), STATUS_OK);
	free(data);
	*ret = (struct rev_att_edit){ .att = { .name = str_from_cstr(name),
					       .type = STR("image/png") } };
	assert_int_equal(rev_upload_finish(u, ret, md5, NULL), STATUS_OK);
}

/* ---- Writing ---- */

static enum status
write_edits(struct probe *p, const struct rev_edit *edits, size_t count)
{
	struct rev_result results[EDITS];

	TRY(rev_write(p->tx, begin(p), edits, count, 0, p->arena, results, &p->err));
	for (size_t i = 0; i < count; i++) {
		/* There is no memory for that edit. */
		if (results[i].status == STATUS_NOMEM)
			return STATUS_NOMEM;
		buf_printf(&p->said, "%s ", status_name(results[i].status));
		buf_append_str(&p->said, results[i].att);
		if (results[i].status == STATUS_OK)
			say_rev(p, results[i].rev);
	}
	return STATUS_OK;
}

static enum status
edit_with(struct probe *p, const char *id, const char *parent, const char *json,
	  const struct rev_att_edit *atts, size_t count)
{
	const struct world *w = p->world;
	struct rev_edit edit = fixture_edit(w->f, id, parent, json);

	edit.atts = atts;
	edit.atts_count = count;
	return write_edits(p, &edit, 1);
}

static struct rev_edit
copy_with(struct probe *p, const char *history, bool deleted, const struct rev_att_edit *atts,
	  size_t count)
{
	const struct world *w = p->world;
	struct rev_edit edit = fixture_copy(w->f, "t", history, deleted, "{\"n\":8}");

	edit.atts = atts;
	edit.atts_count = count;
	return edit;
}

static enum status
new_with_two(struct probe *p)
{
	const struct rev_att_edit atts[] = { between_att("one", "1"), between_att("two", "22") };

	return edit_with(p, "new", NULL, "{}", atts, 2);
}

static enum status
keep_all(struct probe *p)
{
	const struct rev_att_edit atts[] = { att_stub("kept", 1), att_stub("more", 0) };

	return edit_with(p, "t", "1-t", "{}", atts, 2);
}

static enum status
keep_one_of_two(struct probe *p)
{
	const struct rev_att_edit atts[] = { att_stub("more", 0) };

	return edit_with(p, "t", "1-t", "{}", atts, 1);
}

static enum status
keep_what_is_not_there(struct probe *p)
{
	const struct rev_att_edit atts[] = { att_stub("kept", 0), att_stub("lost", 0) };

	return edit_with(p, "t", "1-t", "{}", atts, 2);
}

static enum status
keep_at_another_revpos(struct probe *p)
{
	const struct rev_att_edit atts[] = { att_stub("kept", 2) };

	return edit_with(p, "t", "1-t", "{}", atts, 1);
}

static enum status
keep_while_deleting(struct probe *p)
{
	const struct rev_att_edit atts[] = { att_stub("kept", 0) };

	return edit_with(p, "t", "1-t", NULL, atts, 1);
}

static enum status
delete_all(struct probe *p)
{
	return edit_with(p, "t", "1-t", NULL, NULL, 0);
}

static enum status
edit_a_conflict(struct probe *p)
{
	const struct rev_att_edit atts[] = { att_stub("c", 0), between_att("d", "dd") };

	return edit_with(p, "both", "1-w", "{}", atts, 2);
}

static enum status
take_over(struct probe *p)
{
	const struct world *w = p->world;
	const struct rev_att_edit atts[] = { w->staged, att_stub("kept", 0) };

	return edit_with(p, "t", "1-t", "{}", atts, 2);
}

/* Of an upload that nobody has made. */
static enum status
take_over_nothing(struct probe *p)
{
	const struct world *w = p->world;
	struct rev_att_edit att = w->staged;

	memset(att.att.id, 7, sizeof(att.att.id));
	return edit_with(p, "new", NULL, "{}", &att, 1);
}

static enum status
share(struct probe *p)
{
	const struct world *w = p->world;
	const struct rev_att_edit atts[] = { att_shared(&w->kept, "a"), att_shared(&w->kept, "b") };

	return edit_with(p, "new", NULL, "{}", atts, 2);
}

static enum status
give_up_a_large_one(struct probe *p)
{
	return edit_with(p, "big", "1-b", "{}", NULL, 0);
}

static enum status
two_of_one_name(struct probe *p)
{
	const struct rev_att_edit atts[] = { between_att("a", "1"), between_att("a", "2") };

	return edit_with(p, "new", NULL, "{}", atts, 2);
}

static enum status
copy_with_stub(struct probe *p)
{
	const struct rev_att_edit atts[] = { att_stub("kept", 0), between_att("new", "n") };
	const struct rev_edit edit = copy_with(p, "2-z t", false, atts, 2);

	return write_edits(p, &edit, 1);
}

static enum status
copy_of_a_deletion(struct probe *p)
{
	const struct rev_edit edit = copy_with(p, "2-z t", true, NULL, 0);

	return write_edits(p, &edit, 1);
}

static enum status
copy_that_misses_its_stub(struct probe *p)
{
	const struct rev_att_edit atts[] = { att_stub("kept", 0) };
	const struct rev_edit edit = copy_with(p, "2-z q", false, atts, 1);

	return write_edits(p, &edit, 1);
}

/* The second keeps what the first brings, and what that has kept. */
static enum status
copies_behind_each_other(struct probe *p)
{
	const struct rev_att_edit first[] = { att_stub("kept", 0), between_att("new", "n") };
	const struct rev_att_edit second[] = { att_stub("kept", 0), att_stub("new", 0) };
	const struct rev_edit edits[] = {
		copy_with(p, "2-y t", false, first, 2),
		copy_with(p, "3-z y t", false, second, 2),
		copy_with(p, "2-x t", false, NULL, 0),
	};

	return write_edits(p, edits, 3);
}

/* One history that has both heads of the document. */
static enum status
copy_ties_branches(struct probe *p)
{
	struct world *w = p->world;
	struct rev_edit edit = fixture_copy(w->f, "both", "3-z w v", false, "{}");
	const struct rev_att_edit atts[] = { att_stub("c", 0) };

	edit.atts = atts;
	edit.atts_count = 1;
	return write_edits(p, &edit, 1);
}

static enum status
purge_both(struct probe *p)
{
	struct world *w = p->world;
	struct rev_id revs[] = { fixture_rev(w->f, "1-v"), fixture_rev(w->f, "1-w") };
	const struct rev_purge_query query = { STR("both"), revs, 2 };
	struct rev_purge_result result;

	TRY(rev_purge(p->tx, begin(p), &query, 1, p->arena, &result, &p->err));
	for (size_t i = 0; i < result.count; i++)
		say_rev(p, result.revs[i]);
	return STATUS_OK;
}

static const struct probe_op writing[] = {
	{ "a new one with two", new_with_two, "ok, conflicts 1 0+0" },
	{ "keep all", keep_all,
	  "ok, conflicts 2 0+0; 1: C/CNCOCOCOCOCOCO 2: C/CNCOCOCOCOCOCOC 3: CO/CNCOCOC" },
	{ "keep one of two", keep_one_of_two,
	  "ok, conflicts 4 0+0; 1: C/CNCOCOCOCOCOCO 2: C/CNCOC~COCOC~C~C 3: CO/CNCOCOC 4: "
	  "C/CNCOCOCOCOCO 5: C/CNCOCOCOCOCOC 6: C/OC" },
	{ "keep what is not there", keep_what_is_not_there,
	  "ok, conflicts 2 0+0; 1: C/CNCOCOCOCOCOCO 2: C/CNCOCOCOCOCOCOC 3: CO/CNCOCOC" },
	{ "keep at another revpos", keep_at_another_revpos,
	  "ok, conflicts 2 0+0; 1: C/CNCOCOCOCOCOCO 2: C/CNCOCOCOCOCOCOC 3: CO/CNCOCOC" },
	{ "keep while deleting", keep_while_deleting,
	  "ok, conflicts 5 0+0; 1: C/CNCOC~COCOC~CO 2: C/CNCOCOCOCOCOCOC 3: CO/CNCOCOC 4: "
	  "C/CNCOCOCOCOCO 5: C/CNCOCOCOCOCOC 6: C/OC" },
	{ "delete all", delete_all,
	  "ok, conflicts 5 0+0; 1: CO/CNCOCOC 2: C/CNCOCOCOCOCO 3: C/CNCOCOCOCOCOC 4-5: C/OC" },
	{ "edit a conflict", edit_a_conflict,
	  "ok, conflicts 3 0+0; 1: C/CNCOC~COCOC~C 2: CO/CNCOCOC 3: C/CNCOCOCOCOC" },
	{ "take over an upload", take_over,
	  "ok, conflicts 5 0+0; 1: C/CNCOC~COCOC~CO 2: C/CNCOCOCOCOCOCOC 3: O/O 4: CO/CNCOCOC 5: "
	  "C/CNCOCOCOCOCO 6: C/CNCOCOCOCOCOC 7: C/OC" },
	{ "take over nothing", take_over_nothing, "ok, conflicts 2 0+0" },
	{ "share", share, "ok, conflicts 1 0+0" },
	{ "give up a large one", give_up_a_large_one,
	  "ok, conflicts 3 0+0; 1: CO/CNCOCOC 2: C/CNCOCOCOCOC 3: C/OC" },
	{ "two of one name", two_of_one_name, "ok, conflicts 0 0+0" },
	{ "copy with a stub", copy_with_stub,
	  "ok, conflicts 3 0+0; 1: C~/CNCOCOC 2: C/CNCOCOCOCOCOCO 3: C/CNCOCOCOCOCOC 4: C/OC" },
	{ "copy of a deletion", copy_of_a_deletion,
	  "ok, conflicts 4 0+0; 1: CO/CNCOCOC 2: C/CNCOCOCOCOCO 3: C/CNCOCOCOCOCOC 4-5: C/OC" },
	{ "copy that misses its stub", copy_that_misses_its_stub,
	  "ok, conflicts 1 0+0; 1: CO/CNCOCOC" },
	{ "copies behind each other", copies_behind_each_other,
	  "ok, conflicts 3 0+0; 1: C~/CNCOCOC 2: C/CNCOCOCOCOCOCO 3: C/CNCOCOCOCOCOC 4: C/OC" },
	{ "copy ties branches", copy_ties_branches,
	  "ok, conflicts 2 0+0; 1: C~/CNC 2: CO/CNCOCOC 3: C/CNCOCOCOCOCOC" },
	{ "purge both", purge_both,
	  "ok, conflicts 5 0+0; 1: CO/CNCOCOC 2: CO/CNC 3-4: C/CNCOCOCOCOC 5-6: C/OC" },
};

/* ---- Reading ---- */

struct stretch {
	const struct rev_att *att;
	bool decode;
	size_t read_bytes; /* 0: as readers do by themselves */
	uint64_t begin, end;
	bool rests; /* after each piece, the last byte of which is read again */
};

/* Says how long each piece is, and some of its bytes. */
static enum status
read_pieces(struct probe *p, struct rev_att_reader *reader, const struct stretch *s)
{
	enum status status;
	struct str piece;
	bool back = s->rests;

	while ((status = rev_att_reader_next(reader, p->tx, &piece)) == STATUS_OK) {
		buf_printf(&p->said, "%zu:", piece.len);
		buf_append_str(&p->said, str_of(piece.ptr, piece.len < 8 ? piece.len : 8));
		if (!s->rests)
			continue;
		rev_att_reader_rest(reader);
		if (back && !s->decode)
			rev_att_reader_back(reader, 1);
		back = false;
	}
	buf_printf(&p->said, " %d", rev_att_reader_is_invalid(reader));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
read_stretch(struct probe *p, const struct stretch *s)
{
	const struct world *w = p->world;
	struct rev_att_reader *reader;
	enum status status;

	(void)begin(p);
	TRY(rev_att_reader_new(w->f->db, s->att, s->decode, s->begin, s->end, &reader));
	if (s->read_bytes)
		rev_att_reader_limit(reader, s->read_bytes, PIECE_BYTES);
	status = read_pieces(p, reader, s);
	rev_att_reader_free(reader);
	return status;
}

static enum status
read_whole(struct probe *p)
{
	const struct world *w = p->world;

	return read_stretch(p, &(struct stretch){ .att = &w->big, .end = BIG_BYTES });
}

static enum status
read_slowly(struct probe *p)
{
	const struct world *w = p->world;

	return read_stretch(
		p, &(struct stretch){
			   .att = &w->big, .read_bytes = 1, .end = BIG_BYTES, .rests = true });
}

static enum status
read_the_middle(struct probe *p)
{
	const struct world *w = p->world;

	return read_stretch(p, &(struct stretch){ .att = &w->big,
						  .begin = REV_ATT_CHUNK_BYTES - 3,
						  .end = REV_ATT_CHUNK_BYTES + 4 });
}

static enum status
read_nothing(struct probe *p)
{
	const struct world *w = p->world;

	return read_stretch(p, &(struct stretch){ .att = &w->big, .begin = 4, .end = 4 });
}

static enum status
read_decoded(struct probe *p)
{
	const struct world *w = p->world;

	return read_stretch(p, &(struct stretch){ .att = &w->zip,
						  .decode = true,
						  .end = w->zip.encoded_length,
						  .rests = true });
}

static enum status
read_encoded(struct probe *p)
{
	const struct world *w = p->world;

	return read_stretch(p, &(struct stretch){ .att = &w->zip, .end = w->zip.encoded_length });
}

static enum status
read_base64(struct probe *p)
{
	const struct world *w = p->world;
	struct buf carry = BUF_INIT(REV_ATT_BASE64_BYTES), text = BUF_INIT(REV_ATT_BASE64_BYTES);
	struct rev_att_reader *reader;
	enum status status;
	struct str piece;

	(void)begin(p);
	TRY(rev_att_reader_new(w->f->db, &w->kept, true, 0, w->kept.encoded_length, &reader));
	while ((status = rev_att_base64_next(reader, p->tx, &carry, &text, &piece)) == STATUS_OK)
		buf_append_str(&p->said, piece);
	rev_att_reader_free(reader);
	buf_release(&carry);
	buf_release(&text);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
ask_whether_kept(struct probe *p)
{
	const struct world *w = p->world;
	struct rev_att_reader *reader;
	struct rev_att lost = w->kept;
	enum status status;
	bool kept = false, lost_kept = false;

	memset(lost.id, 7, sizeof(lost.id));
	(void)begin(p);
	TRY(rev_att_reader_new(w->f->db, &w->kept, false, 0, 1, &reader));
	status = rev_att_reader_is_kept(reader, p->tx, &kept);
	rev_att_reader_free(reader);
	TRY(status);
	TRY(rev_att_reader_new(w->f->db, &lost, false, 0, 1, &reader));
	status = rev_att_reader_is_kept(reader, p->tx, &lost_kept);
	rev_att_reader_free(reader);
	buf_printf(&p->said, "%d%d", kept, lost_kept);
	return status;
}

static enum status
read_pointer(struct probe *p, const char *rev, struct str name)
{
	struct world *w = p->world;
	const struct rev_id id = fixture_rev(w->f, rev);
	struct rev_att att;

	TRY(rev_att_read(p->tx, begin(p), STR("t"), id, false, name, p->arena, &att));
	buf_append_str(&p->said, att.name);
	buf_append_str(&p->said, att.type);
	buf_append(&p->said, att.id, sizeof(att.id));
	buf_append(&p->said, att.digest, sizeof(att.digest));
	buf_printf(&p->said, "%llu %llu %d %llu", (unsigned long long)att.length,
		   (unsigned long long)att.encoded_length, att.encoding,
		   (unsigned long long)att.revpos);
	return STATUS_OK;
}

static enum status
read_one(struct probe *p)
{
	return read_pointer(p, "1-t", STR("kept"));
}

static enum status
read_one_that_is_not_there(struct probe *p)
{
	return read_pointer(p, "1-t", STR("lost"));
}

static enum status
read_one_of_no_revision(struct probe *p)
{
	return read_pointer(p, "1-q", STR("kept"));
}

static enum status
read_all(struct probe *p)
{
	struct world *w = p->world;
	const struct rev_id rev = fixture_rev(w->f, "1-t");
	struct rev_doc doc;

	TRY(rev_doc_read_head(p->tx, begin(p), STR("t"), rev, false, p->arena, &doc));
	for (size_t i = 0; i < doc.atts_count; i++) {
		buf_append_str(&p->said, doc.atts[i].name);
		buf_printf(&p->said, " %llu ", (unsigned long long)doc.atts[i].length);
	}
	return rev_body_write(&doc, false, &p->said);
}

static const struct probe_op reading[] = {
	{ "whole", read_whole, "ok, conflicts 0 0+0; 1-2: C/~O 3: C/~" },
	{ "slowly", read_slowly, "ok, conflicts 0 0+0; 1: C/~O 2: C/O 3: C/~O 4: C/O 5: C/~" },
	{ "the middle", read_the_middle, "ok, conflicts 0 0+0; 1: C/O~ 2: C/~O" },
	{ "nothing", read_nothing, "ok, conflicts 0 0+0" },
	{ "decoded", read_decoded, "ok, conflicts 0 0+0; 1: C/COC" },
	{ "encoded", read_encoded, "ok, conflicts 0 0+0; 1: C/~O" },
	{ "as base64", read_base64, "ok, conflicts 0 0+0; 1: C/~" },
	{ "whether it is kept", ask_whether_kept, "ok, conflicts 0 0+0; 1: O/O" },
	{ "one", read_one, "ok, conflicts 2 0+0; 1: O/O 2: C/CNC~C~C~C~C~CO" },
	{ "one that is not there", read_one_that_is_not_there, "deleted, conflicts 2 0+0; 1: O/O" },
	{ "one of no revision", read_one_of_no_revision,
	  "not_found, conflicts 2 0+0; despite 2=not_found" },
	{ "all", read_all,
	  "ok, conflicts 2 0+0; 1: C~/CNCOC 2: CO/CNC~C 3: C/CNCOCOC~COCOCO 4: C/CNCOCOC~COCOCOC" },
};

/* ---- Uploads, which have transactions of their own ---- */

static void
say_att(struct probe *p, const struct rev_att_edit *edit)
{
	buf_printf(&p->said, "%d %llu %llu %d ", edit->source, (unsigned long long)edit->att.length,
		   (unsigned long long)edit->att.encoded_length, edit->att.encoding);
	buf_append(&p->said, edit->att.digest, sizeof(edit->att.digest));
	buf_append_str(&p->said, edit->data);
}

static enum status
upload_end(struct probe *p, struct rev_upload *u, enum status status)
{
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_att_edit edit = { 0 };

	if (status == STATUS_OK)
		status = rev_upload_finish(u, &edit, md5, &p->err);
	if (status == STATUS_OK)
		status = rev_upload_touch(u, &p->err);
	if (status == STATUS_OK) {
		say_att(p, &edit);
		buf_append(&p->said, md5, sizeof(md5));
	}
	rev_upload_free(u, false);
	return status;
}

static enum status
upload_text(struct probe *p, int gzip_level, size_t memory_bytes)
{
	const struct world *w = p->world;
	const struct rev_upload_options options = {
		.store = w->f->store,
		.db = w->f->db,
		.gzip_level = gzip_level,
		.memory_bytes = memory_bytes,
	};
	struct rev_upload *u;
	enum status status;

	(void)begin(p);
	TRY(rev_upload_new(&options, &u));
	status = rev_upload_write(u, STR("some "), &p->err);
	if (status == STATUS_OK)
		status = rev_upload_write(u, STR("text"), &p->err);
	return upload_end(p, u, status);
}

static enum status
upload_in_memory(struct probe *p)
{
	return upload_text(p, 0, 9);
}

static enum status
upload_ahead(struct probe *p)
{
	return upload_text(p, 0, 8);
}

static enum status
upload_gzip(struct probe *p)
{
	return upload_text(p, 9, 100);
}

static enum status
upload_inline(struct probe *p)
{
	const struct world *w = p->world;
	const struct rev_upload_options options = {
		.store = w->f->store,
		.db = w->f->db,
		.memory_bytes = 100,
	};
	struct rev_att_json *atts;
	struct rev_upload *u;
	size_t count;

	(void)begin(p);
	TRY(rev_atts_parse(STR("{\"a\":{\"data\":\"c29t\\nZSB0ZXh0\"}}"), p->arena, &atts, &count,
			   &p->err));
	TRY(rev_upload_new(&options, &u));
	return upload_end(p, u, rev_att_inline(&atts[0], u, &p->err));
}

static enum status
sweep(struct probe *p)
{
	const struct world *w = p->world;
	uint64_t removed = 0;

	(void)begin(p);
	TRY(rev_uploads_sweep(w->f->store, 0, &removed, &p->err));
	buf_printf(&p->said, "%llu", (unsigned long long)removed);
	return STATUS_OK;
}

static enum status
clear_of_database(struct probe *p)
{
	const struct world *w = p->world;

	(void)begin(p);
	return rev_uploads_clear(w->f->store, w->f->db->number, &p->err);
}

/* Two uploads are there whose servers have ended. */
static void
leave_uploads(void *world)
{
	struct world *w = world;

	assert_int_equal(rev_uploads_clear(w->f->store, w->f->db->number, NULL), STATUS_OK);
	for (int i = 0; i < 2; i++) {
		struct rev_upload *u = upload_new(w, 0, 0);
		struct rev_att_edit edit;

		upload_all(u, 10, "u", &edit);
		rev_upload_free(u, true);
	}
}

static const struct probe_op uploading[] = {
	{ "in memory", upload_in_memory, "ok, conflicts 0 0+0" },
	{ "ahead", upload_ahead,
	  "ok, conflicts 3 0+0; despite 7=ok 8=ok 9=ok 10=ok 11=ok 12=ok; despite allocation 14=ok "
	  "15=ok 16=ok 17=ok 18=ok 19=ok 20=ok 21=ok 22=ok; 1: C/CNC0COCOCO 2: O/O" },
	{ "compressed", upload_gzip, "ok, conflicts 0 0+0" },
	{ "in JSON", upload_inline, "ok, conflicts 0 0+0" },
};

/* Which bytes of a time make it later differs from run to run. */
static const struct probe_op sweeping[] = {
	{ "sweep", sweep, "ok, conflicts 0 2+0" },
};

static const struct probe_op clearing[] = {
	{ "clear those of a database", clear_of_database, "ok, conflicts 0 2+0; 1-2: C/CNCOCO" },
};

/* ---- The world ---- */

static void
put_with(struct world *w, const char *id, const char *history, const struct rev_att_edit *atts,
	 size_t count)
{
	struct rev_edit edit = fixture_copy(w->f, id, history, false, "{\"n\":1}");
	struct rev_result result;

	edit.atts = atts;
	edit.atts_count = count;
	fixture_write(w->f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
}

static void
put_uploaded(struct world *w, const char *id, const char *history, int gzip_level, size_t bytes,
	     struct rev_att *ret)
{
	struct rev_upload *u = upload_new(w, gzip_level, 0);
	struct rev_att_edit edit;

	upload_all(u, bytes, "u", &edit);
	*ret = edit.att;
	put_with(w, id, history, &edit, 1);
	rev_upload_free(u, true);
}

static int
setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct rev_att_edit atts[2];
	void *f;

	assert_non_null(w);
	assert_int_equal(setenv("FROND_TEST_FAULTS", "rate=0,delay=0,watch=0", 1), 0);
	assert_int_equal(fixture_setup(&f), 0);
	w->f = f;
	atts[0] = between_att("more", "more");
	atts[1] = between_att("kept", "kept it");
	w->kept = atts[1].att;
	put_with(w, "t", "1-t", atts, 2);
	atts[0] = between_att("c", "v");
	put_with(w, "both", "1-v", atts, 1);
	atts[0] = between_att("c", "w");
	put_with(w, "both", "1-w", atts, 1);
	put_uploaded(w, "big", "1-b", 0, BIG_BYTES, &w->big);
	put_uploaded(w, "zip", "1-z", 6, 300, &w->zip);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;
	void *f = w->f;

	rev_upload_free(w->upload, true);
	free(w);
	return fixture_teardown(&f);
}

#define COUNT(ops) (sizeof(ops) / sizeof((ops)[0]))

static void
writers_hand_failures_on(void **state)
{
	struct world *w = *state;

	w->upload = upload_new(w, 0, 0);
	upload_all(w->upload, 10, "staged", &w->staged);
	probe_each(w->f->store, w, writing, COUNT(writing));
}

static void
readers_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->f->store, w, reading, COUNT(reading));
}

static void
uploads_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each_alone(w->f->store, w, NULL, uploading, COUNT(uploading));
}

static void
sweeps_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each_alone_undamaged(w->f->store, w, leave_uploads, sweeping, COUNT(sweeping));
	probe_each_alone(w->f->store, w, leave_uploads, clearing, COUNT(clearing));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(writers_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(readers_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(uploads_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(sweeps_hand_failures_on, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
