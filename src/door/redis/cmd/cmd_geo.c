/* Places in sorted sets: their scores are geohashes (wire/geohash.h). */
#include <math.h>
#include <stdio.h>

#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/members.h"
#include "door/redis/wire/geohash.h"
#include "door/redis/wire/number.h"
#include "loop/sort.h"
#include "loop/step.h"

enum {
	DISTANCE_BYTES = 64,    /* of a distance as text */
	DISTANCE_PARTS = 10000, /* of a unit: four digits */
};

/* ---- Arguments and answers ---- */

static enum status
geo_read_place(struct call *c, size_t i, struct geohash_place *ret)
{
	TRY(call_double(c, i, &ret->longitude));
	TRY(call_double(c, i + 1, &ret->latitude));
	if (fabs(ret->longitude) <= GEOHASH_LONGITUDE_MOST &&
	    fabs(ret->latitude) <= GEOHASH_LATITUDE_MOST)
		return STATUS_OK;
	return call_errorf(c, "ERR invalid longitude,latitude pair %f,%f", ret->longitude,
			   ret->latitude);
}

/* How many meters the unit of argument `i` has. */
static enum status
geo_read_unit(struct call *c, size_t i, double *ret)
{
	static const struct {
		const char *name;
		double meters;
	} units[] = { { "m", 1 }, { "km", 1000 }, { "ft", 0.3048 }, { "mi", 1609.34 } };

	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		if (!call_arg_is(c, i, units[u].name))
			continue;
		*ret = units[u].meters;
		return STATUS_OK;
	}
	return call_error(c, STR("ERR unsupported unit provided. please use M, KM, FT, MI"));
}

static enum status
geo_read_length(struct call *c, size_t i, const char *what, double *ret)
{
	if (number_read_double(c->argv[i], ret))
		return STATUS_OK;
	return call_errorf(c, "ERR need numeric %s", what);
}

static enum status
geo_read_radius(struct call *c, size_t i, struct geohash_shape *ret)
{
	TRY(geo_read_length(c, i, "radius", &ret->radius));
	if (ret->radius < 0)
		return call_error(c, STR("ERR radius cannot be negative"));
	ret->is_box = false;
	return geo_read_unit(c, i + 1, &ret->unit);
}

static enum status
geo_read_box(struct call *c, size_t i, struct geohash_shape *ret)
{
	TRY(geo_read_length(c, i, "width", &ret->width));
	TRY(geo_read_length(c, i + 1, "height", &ret->height));
	if (ret->width < 0 || ret->height < 0)
		return call_error(c, STR("ERR height or width cannot be negative"));
	ret->is_box = true;
	return geo_read_unit(c, i + 2, &ret->unit);
}

static void
geo_answer_distance(struct call *c, double distance)
{
	long long parts = llrint(distance * DISTANCE_PARTS);
	char text[DISTANCE_BYTES];
	int len = snprintf(text, sizeof(text), "%lld.%04lld", parts / DISTANCE_PARTS,
			   parts % DISTANCE_PARTS);

	reply_bulk(c->reply, str_of(text, (size_t)len));
}

static void
geo_answer_place(struct call *c, struct geohash_place at)
{
	reply_array(c->reply, 2);
	reply_human_double(c->reply, at.longitude);
	reply_human_double(c->reply, at.latitude);
}

/* ---- GEOADD, GEODIST, GEOHASH, GEOPOS ---- */

/* GEOADD is a ZADD of scores. */
enum status
cmd_geoadd(struct call *c)
{
	struct call zadd = *c;
	bool nx = false, xx = false;
	size_t first = 2, count;

	for (; first < c->argc; first++) {
		nx |= call_arg_is(c, first, "nx");
		xx |= call_arg_is(c, first, "xx");
		if (!call_arg_is(c, first, "nx") && !call_arg_is(c, first, "xx") &&
		    !call_arg_is(c, first, "ch"))
			break;
	}
	if ((c->argc - first) % 3 || (nx && xx))
		return call_syntax_error(c);
	count = (c->argc - first) / 3;
	zadd.argc = first + 2 * count;
	zadd.argv = arena_alloc(c->arena, (zadd.argc + 1) * sizeof(*zadd.argv));
	if (!zadd.argv)
		return STATUS_LIMIT;
	memcpy(zadd.argv, c->argv, first * sizeof(*zadd.argv));
	for (size_t i = 0; i < count; i++) {
		struct geohash_place at;
		struct str score;

		TRY(geo_read_place(c, first + 3 * i, &at));
		score = arena_printf(c->arena, "%llu", (unsigned long long)geohash_encode(at));
		if (!score.ptr)
			return STATUS_LIMIT;
		zadd.argv[first + 2 * i] = score;
		zadd.argv[first + 2 * i + 1] = c->argv[first + 3 * i + 2];
	}
	return cmd_zadd(&zadd);
}

enum status
cmd_geodist(struct call *c)
{
	struct timed_member ends[2] = { { .name = c->argv[2] }, { .name = c->argv[3] } };
	struct timed_item *item;
	double unit = 1;

	if (c->argc > 5)
		return call_syntax_error(c);
	if (c->argc == 5)
		TRY(geo_read_unit(c, 4, &unit));
	TRY(data_item(c, 1, TIMED_ZSET, &item));
	TRY(timed_members_get(item, ends, 2));
	if (ends[0].found && ends[1].found)
		geo_answer_distance(c, geohash_distance(geohash_decode(ends[0].score),
							geohash_decode(ends[1].score)) /
					       unit);
	else
		reply_null(c->reply);
	return STATUS_OK;
}

enum status
cmd_geohash(struct call *c)
{
	struct timed_member *m;
	size_t count;

	TRY(members_look_up(c, TIMED_ZSET, false, &m, &count));
	reply_array(c->reply, count);
	for (size_t i = 0; i < count; i++) {
		char text[GEOHASH_TEXT_BYTES];

		if (m[i].found)
			geohash_text(geohash_decode(m[i].score), text);
		reply_bulk_if(c->reply, m[i].found, str_of(text, sizeof(text)));
	}
	return STATUS_OK;
}

enum status
cmd_geopos(struct call *c)
{
	struct timed_member *m;
	size_t count;

	TRY(members_look_up(c, TIMED_ZSET, false, &m, &count));
	reply_array(c->reply, count);
	for (size_t i = 0; i < count; i++) {
		if (m[i].found)
			geo_answer_place(c, geohash_decode(m[i].score));
		else
			reply_null_array(c->reply);
	}
	return STATUS_OK;
}

/* ---- Searches ---- */

/* A place that was found. */
struct geo_point {
	struct str name;
	double score;
	double distance; /* in meters */
};

struct geo_search {
	struct timed_item *item; /* TIMED_LEAF: there is none */
	struct geohash_shape shape;
	bool is_search; /* GEOSEARCH, GEOSEARCHSTORE; else GEORADIUS and its kin */
	bool from_member, from_place, by_radius, by_box;
	bool with_distance, with_hash, with_place;
	bool any, ascending, descending;
	int64_t count;    /* 0: all */
	size_t store;     /* the argument that has the destination; 0: none */
	bool store_dist;  /* its scores are distances */
	bool stores_last; /* STORE or STOREDIST may be an option */

	struct geo_point *points;
	size_t found, cap;
};

static enum status
geo_center_on(struct call *c, struct geo_search *s, size_t i)
{
	struct timed_member m = { .name = c->argv[i] };

	s->from_member = true;
	if (s->item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(timed_members_get(s->item, &m, 1));
	if (!m.found)
		return call_error(c, STR("ERR could not decode requested zset member"));
	s->shape.center = geohash_decode(m.score);
	return STATUS_OK;
}

/* STORE, STOREDIST at `*i`. False: it is neither. */
static bool
geo_read_store(struct call *c, struct geo_search *s, size_t *i)
{
	bool dist = call_arg_is(c, *i, "storedist");

	if (s->is_search) {
		s->store_dist |= dist && s->store;
		return dist && s->store;
	}
	if ((!dist && !call_arg_is(c, *i, "store")) || !s->stores_last || *i + 1 == c->argc)
		return false;
	s->store = ++*i;
	s->store_dist = dist;
	return true;
}

/* An option of GEOSEARCH alone at `*i`, with what belongs to it. */
static enum status
geo_read_shape(struct call *c, struct geo_search *s, size_t *i)
{
	size_t left = c->argc - *i, at = *i + 1;

	if (s->is_search && left > 1 && !s->from_place && call_arg_is(c, *i, "frommember")) {
		*i += 1;
		return geo_center_on(c, s, at);
	}
	if (s->is_search && left > 2 && !s->from_member && call_arg_is(c, *i, "fromlonlat")) {
		*i += 2;
		s->from_place = true;
		return geo_read_place(c, at, &s->shape.center);
	}
	if (s->is_search && left > 2 && !s->by_box && call_arg_is(c, *i, "byradius")) {
		*i += 2;
		s->by_radius = true;
		return geo_read_radius(c, at, &s->shape);
	}
	if (s->is_search && left > 3 && !s->by_radius && call_arg_is(c, *i, "bybox")) {
		*i += 3;
		s->by_box = true;
		return geo_read_box(c, at, &s->shape);
	}
	return call_syntax_error(c);
}

static enum status
geo_read_count(struct call *c, struct geo_search *s, size_t i)
{
	TRY(call_int(c, i, &s->count));
	return s->count > 0 ? STATUS_OK : call_error(c, STR("ERR COUNT must be > 0"));
}

static enum status
geo_options(struct call *c, struct geo_search *s, size_t i)
{
	for (; i < c->argc; i++) {
		if (call_arg_is(c, i, "withdist"))
			s->with_distance = true;
		else if (call_arg_is(c, i, "withhash"))
			s->with_hash = true;
		else if (call_arg_is(c, i, "withcoord"))
			s->with_place = true;
		else if (call_arg_is(c, i, "any"))
			s->any = true;
		else if (call_arg_is(c, i, "asc") || call_arg_is(c, i, "desc"))
			s->descending = !(s->ascending = call_arg_is(c, i, "asc"));
		else if (call_arg_is(c, i, "count") && i + 1 < c->argc)
			TRY(geo_read_count(c, s, ++i));
		else if (!geo_read_store(c, s, &i))
			TRY(geo_read_shape(c, s, &i));
	}
	return STATUS_OK;
}

static enum status
geo_check(struct call *c, const struct geo_search *s)
{
	if (s->store && (s->with_distance || s->with_hash || s->with_place))
		return call_errorf(c,
				   "ERR %s is not compatible with WITHDIST, WITHHASH and WITHCOORD "
				   "options",
				   s->is_search ? "GEOSEARCHSTORE" : "STORE option in GEORADIUS");
	if (s->is_search && !s->from_member && !s->from_place)
		return call_errorf(
			c, "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for %.*s",
			STR_ARG(call_shown(c->argv[0])));
	if (s->is_search && !s->by_radius && !s->by_box)
		return call_errorf(
			c, "ERR exactly one of BYRADIUS and BYBOX can be specified for %.*s",
			STR_ARG(call_shown(c->argv[0])));
	if (s->any && !s->count)
		return call_error(c, STR("ERR the ANY argument requires COUNT argument"));
	return STATUS_OK;
}

/* What comes before the options. */
static enum status
geo_open(struct call *c, struct geo_search *s)
{
	bool by_member = strncmp(c->command->name, "georadiusbymember", 17) == 0;

	s->is_search = strncmp(c->command->name, "geosearch", 9) == 0;
	s->stores_last = !(c->command->flags & COMMAND_READONLY);
	s->store = call_is(c, HOW_STORES);
	TRY(data_item_read(c, 1 + s->store, TIMED_ZSET, &s->item));
	if (s->is_search)
		return geo_options(c, s, 2 + s->store);
	if (!by_member)
		TRY(geo_read_place(c, 2, &s->shape.center));
	else
		TRY(geo_center_on(c, s, 2));
	if (!by_member || s->item->type != TIMED_LEAF)
		TRY(geo_read_radius(c, by_member ? 3 : 4, &s->shape));
	return geo_options(c, s, by_member ? 5 : 6);
}

/* True if no more is wanted. */
static bool
geo_has_any(const struct geo_search *s)
{
	return s->any && s->found >= (uint64_t)s->count;
}

/* Takes the members of a page that are within the shape. */
static enum status
geo_take(struct call *c, struct geo_search *s, const struct timed_members *page)
{
	for (size_t i = 0; i < page->count && !geo_has_any(s); i++) {
		const struct timed_member *m = &page->members[i];
		double distance;

		TRY(step_count(1));
		if (!geohash_within(&s->shape, geohash_decode(m->score), &distance))
			continue;
		TRY(arena_room(c->arena, &s->points, s->found, &s->cap, sizeof(*s->points)));
		s->points[s->found++] = (struct geo_point){ m->name, m->score, distance };
	}
	return STATUS_OK;
}

static enum status
geo_look(struct call *c, struct geo_search *s)
{
	struct geohash_box boxes[GEOHASH_BOXES];
	unsigned count = geohash_boxes(&s->shape, boxes);

	for (unsigned i = 0; i < count && !geo_has_any(s); i++) {
		struct timed_zset_range range = {
			.by = TIMED_BY_SCORE,
			.lower = { .kind = TIMED_BOUND_INCLUSIVE, .score = boxes[i].from },
			.upper = { .kind = TIMED_BOUND_EXCLUSIVE, .score = boxes[i].to },
			.limit = DATA_PAGE,
		};
		struct timed_members page;

		do {
			TRY(timed_zset_range(s->item, &range, &page));
			TRY(geo_take(c, s, &page));
			range.skip += page.count;
		} while (page.count == range.limit && !geo_has_any(s));
	}
	return STATUS_OK;
}

static int
point_cmp(const void *a, const void *b)
{
	double x = ((const struct geo_point *)a)->distance;
	double y = ((const struct geo_point *)b)->distance;

	return x > y ? 1 : x == y ? 0 : -1;
}

static int
point_cmp_desc(const void *a, const void *b)
{
	return point_cmp(b, a);
}

static void
geo_answer(struct call *c, const struct geo_search *s, size_t count)
{
	size_t more = (size_t)s->with_distance + s->with_hash + s->with_place;

	reply_array(c->reply, count);
	for (size_t i = 0; i < count; i++) {
		const struct geo_point *p = &s->points[i];

		if (more)
			reply_array(c->reply, 1 + more);
		reply_bulk(c->reply, p->name);
		if (s->with_distance)
			geo_answer_distance(c, p->distance / s->shape.unit);
		if (s->with_hash)
			reply_int(c->reply, (int64_t)p->score);
		if (s->with_place)
			geo_answer_place(c, geohash_decode(p->score));
	}
}

/* The result becomes the sorted set of the destination. */
static enum status
geo_store(struct call *c, const struct geo_search *s, size_t count)
{
	struct timed_member *members = arena_zalloc(c->arena, (count + 1) * sizeof(*members));
	struct str key = c->argv[s->store];
	struct timed_item *to;

	if (!members)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		members[i].name = s->points[i].name;
		members[i].score = s->store_dist ? s->points[i].distance / s->shape.unit
						 : s->points[i].score;
	}
	TRY(data_replace(c, key, count, &to));
	if (!count)
		return STATUS_OK;
	TRY(timed_members_put(to, TIMED_ZSET, members, count));
	return txn_changed(c, key, EVENT_ZSET, s->is_search ? "geosearchstore" : "georadiusstore");
}

enum status
cmd_geo_search(struct call *c)
{
	struct geo_search s = { .count = 0 };
	size_t count;

	TRY(geo_open(c, &s));
	TRY(geo_check(c, &s));
	if (s.item->type != TIMED_LEAF)
		TRY(geo_look(c, &s));
	/* The nearest ones, where no order and no haste is asked for. */
	s.ascending |= s.count && !s.any && !s.descending;
	if (s.ascending || s.descending)
		TRY(sort_items_by(s.points, s.found, sizeof(*s.points),
				  s.ascending ? point_cmp : point_cmp_desc, c->arena));
	count = s.count && (uint64_t)s.count < s.found ? (size_t)s.count : s.found;
	if (s.store)
		return geo_store(c, &s, count);
	geo_answer(c, &s, count);
	return STATUS_OK;
}
