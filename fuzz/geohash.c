/*
 * Any two places, any score and any shape of a search: a place and its score stand for
 * each other to within what 52 bits tell, and no place that is within a shape lies outside of the
 * boxes that a search looks through.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "door/redis/wire/geohash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Half of what one of 2^26 parts of the range has, and some for rounding. */
#define CLOSE_DEGREES 3e-6
/* The range, but for its ends, to which rounding may come. */
#define LONGITUDE_END (GEOHASH_LONGITUDE_MOST - 1e-6)
#define LATITUDE_END  (GEOHASH_LATITUDE_MOST - 1e-6)
/* Shapes for which boxes are exact: larger ones, and those near a pole, are bent too much. */
#define RADIUS_MOST   1000000.0
#define LATITUDE_MOST 60.0

struct input {
	double longitude, latitude, other_longitude, other_latitude, score, radius;
};

static void
must(bool good)
{
	if (!good)
		abort();
}

static double
within(double n, double most)
{
	return isfinite(n) ? fmod(n, most) : 0;
}

static void
check_score(struct geohash_place at)
{
	uint64_t bits = geohash_encode(at);
	struct geohash_place back = geohash_decode((double)bits);
	char text[GEOHASH_TEXT_BYTES];

	must(bits < UINT64_C(1) << 52);
	must(fabs(back.longitude - at.longitude) < CLOSE_DEGREES);
	must(fabs(back.latitude - at.latitude) < CLOSE_DEGREES);
	must(geohash_encode(back) == bits);
	geohash_text(at, text);
	must(text[GEOHASH_TEXT_BYTES - 1] == '0');
}

static void
check_shape(const struct geohash_shape *shape, struct geohash_place at)
{
	double score = (double)geohash_encode(at), distance;
	struct geohash_box boxes[GEOHASH_BOXES];
	unsigned count = geohash_boxes(shape, boxes);
	bool found = false;

	must(count >= 1 && count <= GEOHASH_BOXES);
	for (unsigned i = 0; i < count; i++)
		found |= score >= boxes[i].from && score < boxes[i].to;
	if (geohash_within(shape, at, &distance))
		must(found);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct geohash_shape shape = { .unit = 1 };
	struct geohash_place a, b;
	struct input in;

	if (size < sizeof(in))
		return 0;
	memcpy(&in, data, sizeof(in));
	/* No member has such a score. */
	if (isnan(in.score))
		return 0;
	(void)geohash_decode(in.score);
	a = (struct geohash_place){ within(in.longitude, LONGITUDE_END),
				    within(in.latitude, LATITUDE_END) };
	b = (struct geohash_place){ within(in.other_longitude, LONGITUDE_END),
				    within(in.other_latitude, LATITUDE_END) };
	check_score(a);
	must(geohash_distance(a, b) >= 0);
	must(fabs(geohash_distance(a, b) - geohash_distance(b, a)) < 0.001);
	shape.center = a;
	shape.radius = fabs(within(in.radius, RADIUS_MOST));
	shape.width = shape.radius;
	shape.height = shape.radius / 2;
	if (fabs(a.latitude) > LATITUDE_MOST || fabs(a.longitude) > LATITUDE_MOST)
		return 0;
	/* Somewhere around the center. */
	b.longitude = a.longitude + b.longitude / 100;
	b.latitude = a.latitude + b.latitude / 100;
	check_shape(&shape, b);
	shape.is_box = true;
	check_shape(&shape, b);
	return 0;
}
