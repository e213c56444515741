#include "door/cql/wire/params.h"

enum {
	CONSISTENCY_MOST = PARAMS_LOCAL_ONE,
	VALUE_LEAST_BYTES = 4,     /* what a value takes at least, of its length alone */
	STATEMENT_LEAST_BYTES = 5, /* a statement of a batch: its kind, a length, a number */
};

static enum status
check_consistency(unsigned level, struct err *err)
{
	if (level > CONSISTENCY_MOST)
		return err_set(err, STATUS_INVALID, "Unknown code %u for a consistency level",
			       level);
	return STATUS_OK;
}

static enum status
truncated(struct err *err)
{
	return err_set(err, STATUS_INVALID, "Message is truncated or malformed");
}

/* `named`: each value has its name in front. */
static enum status
values_read(struct frame_in *in, bool named, struct arena *arena, struct params_value **ret,
	    size_t *ret_count, struct err *err)
{
	size_t count = frame_u16(in);
	struct params_value *values;

	*ret = NULL;
	*ret_count = 0;
	/* Nobody has memory set aside by a number alone. */
	if (in->bad || count * VALUE_LEAST_BYTES > in->rest.len)
		return truncated(err);
	if (!count)
		return STATUS_OK;
	values = arena_alloc(arena, count * sizeof(*values));
	if (!values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		values[i].name = named ? frame_short(in) : STR("");
		values[i].kind = frame_value(in, &values[i].bytes);
	}
	if (in->bad)
		return truncated(err);
	*ret = values;
	*ret_count = count;
	return STATUS_OK;
}

static unsigned
flags_read(struct frame_in *in, unsigned version)
{
	return version >= 5 ? (unsigned)frame_i32(in) : frame_u8(in);
}

/* What comes behind the values, by the flags. */
static enum status
rest_read(struct frame_in *in, struct params *p, struct err *err)
{
	p->serial_consistency = PARAMS_SERIAL;
	if (p->flags & PARAMS_HAS_PAGE_SIZE)
		p->page_size = frame_i32(in);
	if (p->flags & PARAMS_HAS_PAGING_STATE)
		(void)frame_value(in, &p->paging_state);
	if (p->flags & PARAMS_HAS_SERIAL)
		p->serial_consistency = frame_u16(in);
	if (p->flags & PARAMS_HAS_TIMESTAMP)
		p->timestamp = frame_i64(in);
	if (p->flags & PARAMS_HAS_KEYSPACE)
		p->keyspace = frame_short(in);
	if (p->flags & PARAMS_HAS_NOW)
		p->now_s = frame_i32(in);
	if (in->bad)
		return truncated(err);
	if (p->serial_consistency != PARAMS_SERIAL && p->serial_consistency != PARAMS_LOCAL_SERIAL)
		return err_set(err, STATUS_INVALID,
			       "Serial consistency can only be set to SERIAL or LOCAL_SERIAL");
	if (p->page_size < 0)
		p->page_size = 0;
	return check_consistency(p->consistency, err);
}

static void
flags_of_version(struct params *p, unsigned version)
{
	if (version < 5)
		p->flags &= ~(unsigned)(PARAMS_HAS_KEYSPACE | PARAMS_HAS_NOW);
}

enum status
params_read(struct frame_in *in, unsigned version, struct arena *arena, struct params *ret,
	    struct err *err)
{
	*ret = (struct params){ 0 };
	ret->consistency = frame_u16(in);
	ret->flags = flags_read(in, version);
	flags_of_version(ret, version);
	if (ret->flags & PARAMS_HAS_VALUES)
		TRY(values_read(in, ret->flags & PARAMS_HAS_NAMES, arena, &ret->values,
				&ret->value_count, err));
	return rest_read(in, ret, err);
}

enum status
batch_read(struct frame_in *in, unsigned version, struct arena *arena, struct batch *ret,
	   struct err *err)
{
	unsigned type = frame_u8(in);
	size_t count = frame_u16(in);

	*ret = (struct batch){ .type = (enum batch_type)type };
	if (in->bad || count * STATEMENT_LEAST_BYTES > in->rest.len)
		return truncated(err);
	if (type > BATCH_COUNTER)
		return err_set(err, STATUS_INVALID, "Invalid batch type %u", type);
	ret->statements = arena_alloc(arena, (count + 1) * sizeof(*ret->statements));
	if (!ret->statements)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		struct batch_statement *s = &ret->statements[i];
		unsigned kind = frame_u8(in);

		if (kind > 1)
			return err_set(
				err, STATUS_INVALID,
				"Invalid query kind in BATCH messages. Must be 0 or 1 but got %u",
				kind);
		*s = (struct batch_statement){ .is_prepared = kind == 1 };
		s->text = s->is_prepared ? frame_short(in) : frame_long(in);
		TRY(values_read(in, false, arena, &s->values, &s->value_count, err));
	}
	ret->count = count;
	ret->params.consistency = frame_u16(in);
	ret->params.flags = flags_read(in, version);
	flags_of_version(&ret->params, version);
	/* Only these come with a batch. Names would, but no client may send them. */
	ret->params.flags &= PARAMS_HAS_SERIAL | PARAMS_HAS_TIMESTAMP | PARAMS_HAS_KEYSPACE |
			     PARAMS_HAS_NOW;
	return rest_read(in, &ret->params, err);
}
