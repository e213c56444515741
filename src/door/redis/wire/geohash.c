#include "door/redis/wire/geohash.h"

#include <math.h>

/*
 * A geohash halves the range of longitudes and that of latitudes `step` times each, and interleaves
 * the bits, those of the longitude first. The order of what is computed with doubles is Redis's
 * (geohash.c, geohash_helper.c): another one would round otherwise.
 */

enum {
	STEP_MOST = 26, /* 52 bits, which a score keeps exactly */
	TEXT_BITS = 5,  /* of a letter */
};

static const double earth_radius = 6372797.560856;
static const double mercator_most = 20037726.37;

#define X_BITS UINT64_C(0xaaaaaaaaaaaaaaaa)
#define Y_BITS UINT64_C(0x5555555555555555)

/* ---- Hashes ---- */

struct hash {
	uint64_t bits;
	unsigned step; /* 0: none */
};

struct range {
	double min, max;
};

struct area {
	struct range longitude, latitude;
};

static const struct area mercator = {
	.longitude = { -GEOHASH_LONGITUDE_MOST, GEOHASH_LONGITUDE_MOST },
	.latitude = { -GEOHASH_LATITUDE_MOST, GEOHASH_LATITUDE_MOST },
};
static const struct area whole = {
	.longitude = { -180, 180 },
	.latitude = { -90, 90 },
};

/* Puts a 0 before each bit. */
static uint64_t
spread(uint32_t n)
{
	uint64_t x = n;

	x = (x | x << 16) & UINT64_C(0x0000ffff0000ffff);
	x = (x | x << 8) & UINT64_C(0x00ff00ff00ff00ff);
	x = (x | x << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	x = (x | x << 2) & UINT64_C(0x3333333333333333);
	return (x | x << 1) & Y_BITS;
}

/* Every other bit, the lowest first. */
static uint32_t
gather(uint64_t x)
{
	x &= Y_BITS;
	x = (x | x >> 1) & UINT64_C(0x3333333333333333);
	x = (x | x >> 2) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	x = (x | x >> 4) & UINT64_C(0x00ff00ff00ff00ff);
	x = (x | x >> 8) & UINT64_C(0x0000ffff0000ffff);
	return (uint32_t)(x | x >> 16);
}

static double
offset_in(const struct range *r, double at, unsigned step)
{
	double offset = (at - r->min) / (r->max - r->min);

	return offset * (double)(UINT64_C(1) << step);
}

static struct hash
hash_of(const struct area *world, struct geohash_place at, unsigned step)
{
	double y = offset_in(&world->latitude, at.latitude, step);
	double x = offset_in(&world->longitude, at.longitude, step);

	return (struct hash){ spread((uint32_t)y) | spread((uint32_t)x) << 1, step };
}

static struct range
part_of(const struct range *r, uint32_t n, unsigned step)
{
	double parts = (double)(UINT64_C(1) << step), scale = r->max - r->min;
	uint32_t next = n + 1;

	return (struct range){ r->min + n * 1.0 / parts * scale,
			       r->min + next * 1.0 / parts * scale };
}

static struct area
area_of(struct hash hash)
{
	return (struct area){
		.longitude = part_of(&mercator.longitude, gather(hash.bits >> 1), hash.step),
		.latitude = part_of(&mercator.latitude, gather(hash.bits), hash.step),
	};
}

/* The bits of a score, whatever number it is: as the processors do that Redis runs on. */
static uint64_t
bits_of(double score)
{
	const double half = 9223372036854775808.0; /* 2^63 */

	if (score >= 2 * half)
		return 0;
	if (score >= half)
		return (uint64_t)(score - half) | UINT64_C(1) << 63;
	if (score <= -half)
		return UINT64_C(1) << 63;
	return (uint64_t)(int64_t)score;
}

static double
clamp(double n, double most)
{
	return n > most ? most : n < -most ? -most : n;
}

uint64_t
geohash_encode(struct geohash_place at)
{
	return hash_of(&mercator, at, STEP_MOST).bits;
}

struct geohash_place
geohash_decode(double score)
{
	struct area area = area_of((struct hash){ bits_of(score), STEP_MOST });

	return (struct geohash_place){
		.longitude = clamp((area.longitude.min + area.longitude.max) / 2,
				   GEOHASH_LONGITUDE_MOST),
		.latitude = clamp((area.latitude.min + area.latitude.max) / 2,
				  GEOHASH_LATITUDE_MOST),
	};
}

void
geohash_text(struct geohash_place at, char ret[static GEOHASH_TEXT_BYTES])
{
	static const char letters[] = "0123456789bcdefghjkmnpqrstuvwxyz";
	uint64_t bits = hash_of(&whole, at, STEP_MOST).bits;

	/* The last letter would need more bits than there are. */
	for (unsigned i = 0; i < GEOHASH_TEXT_BYTES; i++)
		ret[i] = i == GEOHASH_TEXT_BYTES - 1
				 ? letters[0]
				 : letters[bits >> (2 * STEP_MOST - (i + 1) * TEXT_BITS) & 0x1f];
}

/* ---- Distances ---- */

static double
radians(double degrees)
{
	return degrees * (M_PI / 180.0);
}

static double
degrees(double radians)
{
	return radians / (M_PI / 180.0);
}

static double
latitude_distance(double a, double b)
{
	return earth_radius * fabs(radians(b) - radians(a));
}

double
geohash_distance(struct geohash_place a, struct geohash_place b)
{
	double v = sin((radians(b.longitude) - radians(a.longitude)) / 2);
	double from, to, u, squared;

	if (v == 0.0)
		return latitude_distance(a.latitude, b.latitude);
	from = radians(a.latitude);
	to = radians(b.latitude);
	u = sin((to - from) / 2);
	squared = u * u + cos(from) * cos(to) * v * v;
	return 2.0 * earth_radius * asin(sqrt(squared));
}

bool
geohash_within(const struct geohash_shape *shape, struct geohash_place at, double *ret_distance)
{
	struct geohash_place beside = { shape->center.longitude, at.latitude };

	if (!shape->is_box) {
		*ret_distance = geohash_distance(shape->center, at);
		return !(*ret_distance > shape->radius * shape->unit);
	}
	if (latitude_distance(at.latitude, shape->center.latitude) >
	    shape->height * shape->unit / 2)
		return false;
	if (geohash_distance(at, beside) > shape->width * shape->unit / 2)
		return false;
	*ret_distance = geohash_distance(shape->center, at);
	return true;
}

/* ---- Boxes of a search ---- */

/* What surrounds the shape. It is bent, so its sides are those of the wider end. */
static struct area
bounds_of(const struct geohash_shape *s)
{
	double height = s->unit * (s->is_box ? s->height / 2 : s->radius);
	double width = s->unit * (s->is_box ? s->width / 2 : s->radius);
	double latitude = s->center.latitude, longitude = s->center.longitude;
	double up = degrees(height / earth_radius);
	double top = degrees(width / earth_radius / cos(radians(latitude + up)));
	double bottom = degrees(width / earth_radius / cos(radians(latitude - up)));
	double side = latitude < 0 ? bottom : top;

	return (struct area){ .longitude = { longitude - side, longitude + side },
			      .latitude = { latitude - up, latitude + up } };
}

/* How small the boxes may be for such a radius. */
static unsigned
steps_of(double meters, double latitude)
{
	int step = 1;

	if (meters == 0)
		return STEP_MOST;
	for (; meters < mercator_most; step++)
		meters *= 2;
	step -= 2;
	if (latitude > 66 || latitude < -66)
		step -= 1 + (latitude > 80 || latitude < -80);
	return step < 1 ? 1 : step > STEP_MOST ? STEP_MOST : (unsigned)step;
}

/* The box beside this one, in the direction of the bits `axis`. */
static uint64_t
moved(struct hash hash, uint64_t axis, int by)
{
	unsigned unused = 64 - 2 * hash.step;
	uint64_t on = hash.bits & axis, other = hash.bits & ~axis, gaps = ~axis >> unused;

	if (by > 0)
		on += gaps + 1;
	else if (by < 0)
		on = (on | gaps) - (gaps + 1);
	if (by)
		on &= axis >> unused;
	return on | other;
}

static struct hash
neighbor(struct hash hash, int x, int y)
{
	hash.bits = moved(hash, X_BITS, x);
	hash.bits = moved(hash, Y_BITS, y);
	return hash;
}

/* True if the boxes around this one do not surround the bounds. */
static bool
is_too_small(struct hash hash, const struct area *bounds)
{
	return area_of(neighbor(hash, 0, 1)).latitude.max < bounds->latitude.max ||
	       area_of(neighbor(hash, 0, -1)).latitude.min > bounds->latitude.min ||
	       area_of(neighbor(hash, 1, 0)).longitude.max < bounds->longitude.max ||
	       area_of(neighbor(hash, -1, 0)).longitude.min > bounds->longitude.min;
}

/* True if a neighbor in that direction can have nothing of the shape. */
static bool
is_useless(const struct area *area, const struct area *bounds, int x, int y)
{
	return (y < 0 && area->latitude.min < bounds->latitude.min) ||
	       (y > 0 && area->latitude.max > bounds->latitude.max) ||
	       (x < 0 && area->longitude.min < bounds->longitude.min) ||
	       (x > 0 && area->longitude.max > bounds->longitude.max);
}

unsigned
geohash_boxes(const struct geohash_shape *s, struct geohash_box ret[static GEOHASH_BOXES])
{
	/* In Redis's order, in which a search without an order answers. */
	static const struct {
		int x, y;
	} around[GEOHASH_BOXES] = { { 0, 0 }, { 0, 1 },  { 0, -1 }, { 1, 0 },  { -1, 0 },
				    { 1, 1 }, { -1, 1 }, { 1, -1 }, { -1, -1 } };
	double radius = s->is_box ? sqrt(s->width / 2 * (s->width / 2) +
					 s->height / 2 * (s->height / 2))
				  : s->radius;
	unsigned step = steps_of(radius * s->unit, s->center.latitude), count = 0, last = 0;
	struct area bounds = bounds_of(s), area;
	struct hash hash = hash_of(&mercator, s->center, step), boxes[GEOHASH_BOXES];

	if (step > 1 && is_too_small(hash, &bounds))
		hash = hash_of(&mercator, s->center, --step);
	area = area_of(hash);
	for (unsigned i = 0; i < GEOHASH_BOXES; i++) {
		unsigned unused = 2 * (STEP_MOST - step);

		if (step >= 2 && is_useless(&area, &bounds, around[i].x, around[i].y))
			continue;
		boxes[i] = neighbor(hash, around[i].x, around[i].y);
		/* Where boxes are large, neighbors may be the same one. */
		if (last && boxes[i].bits == boxes[last].bits)
			continue;
		ret[count++] = (struct geohash_box){ (double)(boxes[i].bits << unused),
						     (double)((boxes[i].bits + 1) << unused) };
		last = i;
	}
	return count;
}
