#include "replicator/doc_state.h"

#include "base/clock.h"
#include "model/revisioned/revisioned.h"
#include "replicator/checkpoint.h"

#define STATE_MEMBER  "_replication_state"
#define TIME_MEMBER   "_replication_state_time"
#define REASON_MEMBER "_replication_state_reason"
#define STATS_MEMBER  "_replication_stats"

enum status
doc_text_of(const struct rev_doc *doc, struct arena *arena, struct str *ret)
{
	struct buf AUTO(buf_release) text = BUF_INIT(DOC_TEXT_BYTES);

	buf_append_byte(&text, '{');
	TRY(rev_body_write(doc, false, &text));
	TRY(buf_status(&text));
	*ret = buf_dup(&text, arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static struct str
doc_state_string(const struct json_member *members, size_t count, const char *name)
{
	const struct json_value *value = json_value_find(members, count, name);

	return value && value->kind == JSON_STRING ? value->string : (struct str){ NULL, 0 };
}

struct doc_state
doc_state_of(const struct json_member *members, size_t count)
{
	const struct json_value *stats = json_value_find(members, count, STATS_MEMBER);

	return (struct doc_state){
		.state = doc_state_string(members, count, STATE_MEMBER),
		.time = doc_state_string(members, count, TIME_MEMBER),
		.reason = doc_state_string(members, count, REASON_MEMBER),
		.stats = stats ? stats->text : (struct str){ NULL, 0 },
		.owner = doc_state_string(members, count, "owner"),
	};
}

enum status
doc_state_parse(struct str text, struct arena *arena, struct doc_state *ret)
{
	struct json_value object;
	struct json_member *members;
	size_t count;

	TRY(json_value_read(text, arena, &object, NULL));
	TRY(json_value_members(&object, arena, &members, &count, NULL));
	*ret = doc_state_of(members, count);
	return STATUS_OK;
}

bool
doc_state_is_end(const struct doc_state *state)
{
	return str_eq(state->state, STR("completed")) || str_eq(state->state, STR("failed"));
}

static bool
doc_state_has_member(struct str name)
{
	return str_eq(name, STR(STATE_MEMBER)) || str_eq(name, STR(TIME_MEMBER)) ||
	       str_eq(name, STR(REASON_MEMBER)) || str_eq(name, STR(STATS_MEMBER));
}

enum status
doc_state_write_end(struct str text, bool failed, struct str detail, struct arena *arena,
		    struct buf *out)
{
	struct json_value object;
	struct json_member *members;
	size_t count;
	char date[CHECKPOINT_DATE_BYTES];

	TRY(json_value_read(text, arena, &object, NULL));
	TRY(json_value_members(&object, arena, &members, &count, NULL));
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (doc_state_has_member(members[i].name))
			continue;
		json_write_str(out, members[i].name);
		buf_append_byte(out, ':');
		buf_append_str(out, members[i].value.text);
		buf_append_byte(out, ',');
	}
	checkpoint_iso_date(clock_wall_ms(), date);
	buf_printf(out, "\"" STATE_MEMBER "\":\"%s\",\"" TIME_MEMBER "\":\"%s\"",
		   failed ? "failed" : "completed", date);
	if (failed) {
		buf_append_cstr(out, ",\"" REASON_MEMBER "\":");
		json_write_str(out, detail);
	} else {
		buf_append_cstr(out, ",\"" STATS_MEMBER "\":");
		buf_append_str(out, detail);
	}
	buf_append_byte(out, '}');
	return buf_status(out);
}
