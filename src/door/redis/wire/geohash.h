/*
 * Places on the earth as scores of sorted sets: geohashes of 52 bits, computed as Redis does
 * so that scores and distances are equal to the last bit. Threading: none.
 */
#ifndef FROND_DOOR_REDIS_WIRE_GEOHASH_H
#define FROND_DOOR_REDIS_WIRE_GEOHASH_H

#include <stdbool.h>
#include <stdint.h>

enum {
	GEOHASH_BOXES = 9,       /* that a search looks through: one and those around it */
	GEOHASH_TEXT_BYTES = 11, /* of a geohash as others write it */
};

/* Of the range of Mercator's projection, in degrees. */
#define GEOHASH_LONGITUDE_MOST 180.0
#define GEOHASH_LATITUDE_MOST  85.05112878

struct geohash_place {
	double longitude, latitude; /* in degrees */
};

/* The score of a place within the range. */
uint64_t geohash_encode(struct geohash_place at);
/* The place that a score stands for, whatever number it is. */
struct geohash_place geohash_decode(double score);
/* The usual geohash of the place. */
void geohash_text(struct geohash_place at, char ret[static GEOHASH_TEXT_BYTES]);

/* In meters, on a sphere. */
double geohash_distance(struct geohash_place a, struct geohash_place b);

/* What a search looks for: places within a circle or a box around one. Meters. */
struct geohash_shape {
	struct geohash_place center;
	bool is_box;
	double radius;
	double width, height;
	double unit; /* of these numbers, in meters */
};

/* False: the place is outside. `*ret_distance`: from the center. */
bool geohash_within(const struct geohash_shape *shape, struct geohash_place at,
		    double *ret_distance);

/* Scores from `from` up to but without `to`. */
struct geohash_box {
	double from, to;
};

/* The scores among which all places within the shape are. Returns how many boxes there are. */
unsigned geohash_boxes(const struct geohash_shape *shape,
		       struct geohash_box ret[static GEOHASH_BOXES]);

#endif
