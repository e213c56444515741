#include "loop/lanes.h"

#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"

#define LANE_SHARED (UINT64_C(1) << LANES)

/* The keys that groups of jobs with keys have. The lock of the struct lanes guards it. */
struct lanes_keys {
	uint16_t last;               /* number of a group */
	uint16_t holder[LANES_KEYS]; /* the number of the group that has the key; 0: none */
	uint32_t counts[LANES];      /* of keys that groups have, by their lanes */
	/* Of jobs that a walk through the queue has left behind: a bit each. */
	uint64_t passed[LANES_KEYS / 64];
};

void
lanes_init(struct lanes *q, size_t group_jobs)
{
	*q = (struct lanes){ .group_jobs = group_jobs };
	pthread_mutex_init(&q->lock, NULL);
	q->end = &q->first;
}

bool
lanes_take_keys(struct lanes *q)
{
	q->keys = mem_zalloc(sizeof(*q->keys));
	return q->keys;
}

void
lanes_fini(struct lanes *q)
{
	assert(!q->first && !q->busy && !q->fences && !q->shared && !q->key_groups);
	pthread_mutex_destroy(&q->lock);
	mem_free(q->keys);
}

/* ---- Those who hold lanes without being a group ---- */

struct lanes_fence {
	struct lanes_fence *next;
	uint64_t lanes; /* that it waits for */
	struct event complete;
};

/* With the lock held: the lanes are free again, but for those that a fence takes at once. */
static void
lanes_give_back(struct lanes *q, uint64_t lanes)
{
	for (struct lanes_fence **at = &q->fences; *at;) {
		struct lanes_fence *fence = *at;
		uint64_t taken = fence->lanes & lanes;

		fence->lanes &= ~taken;
		lanes &= ~taken;
		if (fence->lanes) {
			at = &fence->next;
			continue;
		}
		*at = fence->next;
		event_set(&fence->complete);
	}
	q->busy &= ~lanes;
}

void
lanes_hold(struct lanes *q, uint64_t lanes)
{
	struct lanes_fence fence;

	event_init(&fence.complete);
	pthread_mutex_lock(&q->lock);
	fence.lanes = (q->busy | q->shared) & lanes;
	q->busy |= lanes;
	if (fence.lanes) {
		fence.next = q->fences;
		q->fences = &fence;
	}
	pthread_mutex_unlock(&q->lock);
	if (!fence.lanes)
		return;
	(void)event_wait(&fence.complete, WAIT_FOREVER);
	/* lanes_give_back() holds the lock until it has left `fence` alone. */
	pthread_mutex_lock(&q->lock);
	pthread_mutex_unlock(&q->lock);
}

/* ---- Keys: the lock is held ---- */

/* The lanes that a group which has the job has for itself. */
static uint64_t
job_own_lanes(const struct lanes_job *job)
{
	return job->keys ? job->lanes & LANE_SHARED : job->lanes;
}

/* Gives the job, which leads or joins a group, its lanes and its keys. */
static void
job_take(struct lanes *q, struct lanes_job *job, uint16_t number)
{
	struct lanes_keys *k = q->keys;

	q->busy |= job_own_lanes(job);
	q->in_groups++;
	job->number = number;
	for (size_t i = 0; job->keys && i < job->key_count; i++) {
		uint16_t key = job->keys[i];

		assert(!k->holder[key] || k->holder[key] == number);
		if (k->holder[key])
			continue;
		k->holder[key] = number;
		k->counts[key % LANES]++;
		q->shared |= lanes_of_key(key);
	}
}

/* A job of keys that are free may not begin a group of its own now. */
static bool
groups_suffice(const struct lanes *q, const struct lanes_job *job)
{
	return job->keys && q->key_groups >= LANES_KEY_GROUPS;
}

/* The number of a new group; 0: jobs without keys need none. */
static uint16_t
group_number(struct lanes *q, const struct lanes_job *job)
{
	if (!job->keys)
		return 0;
	q->key_groups++;
	if (!++q->keys->last)
		q->keys->last = 1;
	return q->keys->last;
}

/* Gives back the keys of a group, and returns the lanes in which nobody has any more. */
static uint64_t
group_give_keys(struct lanes *q, const struct lanes_job *leader)
{
	struct lanes_keys *k = q->keys;
	uint64_t before = q->shared;
	size_t named = 0, different = 0;

	for (const struct lanes_job *j = leader; j; j = j->group) {
		for (size_t i = 0; j->keys && i < j->key_count; i++) {
			uint16_t key = j->keys[i];

			named++;
			if (k->holder[key] != leader->number)
				continue;
			different++;
			k->holder[key] = 0;
			if (!--k->counts[key % LANES])
				q->shared &= ~lanes_of_key(key);
		}
	}
	q->spread = named && 2 * different > named;
	return before & ~q->shared;
}

/*
 * A walk through the queue: what a job must not want if it is to pass those that the walk has left
 * behind.
 */
struct walk {
	uint64_t taken;  /* lanes */
	uint64_t passed; /* lanes of jobs with keys, which others with keys may have as well */
};

/* `own`: lanes and number of the group that jobs are to be added to. */
static struct walk
walk_begin(const struct lanes *q, uint64_t own)
{
	return (struct walk){ .taken = (q->busy & ~own) | q->owed };
}

static bool
walk_bars(const struct lanes *q, const struct walk *w, const struct lanes_job *job, uint16_t number)
{
	const struct lanes_keys *k = q->keys;

	if (!job->keys)
		return job->lanes & (w->taken | w->passed | q->shared);
	if (job->lanes & w->taken)
		return true;
	for (size_t i = 0; i < job->key_count; i++) {
		uint16_t key = job->keys[i];

		if ((k->holder[key] && k->holder[key] != number) ||
		    k->passed[key / 64] & UINT64_C(1) << key % 64)
			return true;
	}
	return false;
}

static void
walk_pass(struct lanes *q, struct walk *w, const struct lanes_job *job)
{
	w->taken |= job_own_lanes(job);
	if (job->keys)
		w->passed |= job->lanes;
	for (size_t i = 0; job->keys && i < job->key_count; i++)
		q->keys->passed[job->keys[i] / 64] |= UINT64_C(1) << job->keys[i] % 64;
}

/* Whoever was left behind is in the queue still. */
static void
walk_end(struct lanes *q, const struct walk *w)
{
	for (const struct lanes_job *j = q->first; w->passed && j; j = j->next)
		for (size_t i = 0; j->keys && i < j->key_count; i++)
			q->keys->passed[j->keys[i] / 64] = 0;
}

/*
 * How many jobs a group that begins with this one has, unless more of them want its keys. Where the
 * last jobs hardly named the same keys, they are divided among two groups, of which one runs while
 * the other one is written. Jobs that name one key are not: of two groups of them, one would only
 * wait until the other one has given the key back.
 */
static size_t
group_limit(const struct lanes *q, const struct lanes_job *job)
{
	size_t half = (q->crowd_all + 1) / 2;

	if (!job->keys || job->lanes & LANE_SHARED || !q->spread ||
	    q->crowd_all < LANES_HALVED_JOBS)
		return q->group_jobs;
	return half < q->group_jobs ? half : q->group_jobs;
}

/* ---- The queue: its lock is held ---- */

static void
lanes_remove(struct lanes *q, struct lanes_job **at)
{
	struct lanes_job *job = *at;

	*at = job->next;
	if (q->end == &job->next)
		q->end = at;
	job->next = NULL;
	assert(q->waiting);
	q->waiting--;
}

/*
 * Adds jobs that wait to the group that begins with `job`, and takes the lanes of all of them.
 * `job` is in no queue. A job can be added if nobody else has its lanes or has waited longer for
 * them, and if it wants a lane of the group, since it would otherwise wait until the group has
 * ended. Small jobs are added to a group of small ones whatever their lanes are, since together
 * they cost one transaction. Jobs with keys are not in one group with others.
 */
static void
lanes_gather(struct lanes *q, struct lanes_job *job)
{
	struct lanes_job **end = &job->group;
	struct lanes_job **at = &q->first;
	uint64_t lanes = job_own_lanes(job);
	bool small = job->small;
	size_t count = 1;
	struct walk walk;

	for (; *end; end = &(*end)->group) {
		lanes |= job_own_lanes(*end);
		small &= (*end)->small;
		count++;
	}
	walk = walk_begin(q, lanes);
	while (*at && count < q->group_jobs) {
		struct lanes_job *other = *at;
		bool fits = !other->keys == !job->keys &&
			    (other->lanes & lanes || (small && other->small));

		if (!fits || walk_bars(q, &walk, other, job->number)) {
			walk_pass(q, &walk, other);
			at = &other->next;
			continue;
		}
		lanes |= job_own_lanes(other);
		small &= other->small;
		lanes_remove(q, at);
		job_take(q, other, job->number);
		other->group = NULL;
		*end = other;
		end = &other->group;
		count++;
	}
	walk_end(q, &walk);
	if (q->gathering == job) {
		q->gathering_end = end;
		q->gathered = count;
	}
}

/* The first job of the queue that nobody waits for longer, and whose lanes are free. Or NULL. */
static struct lanes_job **
lanes_find_free(struct lanes *q)
{
	struct walk walk = walk_begin(q, 0);
	struct lanes_job **at = &q->first;

	for (; *at && (groups_suffice(q, *at) || walk_bars(q, &walk, *at, 0)); at = &(*at)->next)
		walk_pass(q, &walk, *at);
	walk_end(q, &walk);
	return *at ? at : NULL;
}

/* Starts every job whose lanes are free and that nobody waits for longer. */
static void
lanes_start(struct lanes *q)
{
	struct lanes_job **at;

	while ((at = lanes_find_free(q))) {
		struct lanes_job *job = *at;

		lanes_remove(q, at);
		job->group = NULL;
		job_take(q, job, group_number(q, job));
		/* Those that come while its fiber is woken may join it. */
		if (job->keys && !q->gathering)
			q->gathering = job;
		lanes_gather(q, job);
		job->leads = true;
		event_set(&job->woken);
	}
}

void
lanes_release(struct lanes *q, uint64_t lanes)
{
	if (!lanes)
		return;
	pthread_mutex_lock(&q->lock);
	lanes_give_back(q, lanes);
	lanes_start(q);
	pthread_mutex_unlock(&q->lock);
}

uint64_t
lanes_take_free(struct lanes *q, uint64_t lanes)
{
	pthread_mutex_lock(&q->lock);
	lanes &= ~(q->busy | q->owed | q->shared);
	q->busy |= lanes;
	pthread_mutex_unlock(&q->lock);
	return lanes;
}

uint64_t
lanes_choose(struct lanes *q, uint64_t lanes)
{
	uint64_t free;

	assert(lanes);
	pthread_mutex_lock(&q->lock);
	free = lanes & ~(q->busy | q->owed);
	if (!free) {
		unsigned before = q->chosen++ % (unsigned)__builtin_popcountll(lanes);

		free = lanes;
		while (before--)
			free &= free - 1;
	}
	pthread_mutex_unlock(&q->lock);
	return free & -free; /* its lowest bit */
}

/* ---- Lanes that are owed ---- */

void
lanes_owe(struct lanes *q, uint64_t lanes)
{
	lanes &= ~LANE_SHARED;
	pthread_mutex_lock(&q->lock);
	assert((q->busy & lanes) == lanes && !(q->owed & lanes));
	q->owed |= lanes;
	pthread_mutex_unlock(&q->lock);
}

void
lanes_pay(struct lanes *q, uint64_t lanes)
{
	lanes &= ~LANE_SHARED;
	pthread_mutex_lock(&q->lock);
	assert((q->owed & lanes) == lanes);
	q->owed &= ~lanes;
	lanes_start(q);
	pthread_mutex_unlock(&q->lock);
}

/*
 * Takes the job out of the queue if it waits for a lane that is owed, or behind a job that does, or
 * is impatient. False: it waits for a group only, or was started.
 */
static bool
lanes_refuse(struct lanes *q, struct lanes_job *job)
{
	struct lanes_job **at = &q->first;
	bool waits = false;
	uint64_t taken;

	pthread_mutex_lock(&q->lock);
	/* Once it is in a group it is the leader's, and nothing of it is read here. */
	taken = q->owed;
	for (; *at && *at != job; at = &(*at)->next)
		if ((*at)->lanes & taken)
			taken |= (*at)->lanes;
	if (*at)
		waits = job->impatient || job->lanes & taken;
	if (waits) {
		lanes_remove(q, at);
		lanes_start(q); /* those that have waited behind it alone */
	}
	pthread_mutex_unlock(&q->lock);
	return waits;
}

/* ---- Waiting for a crowd ---- */

/* What the leader of a group that has not begun yet sees of the queue. */
struct gathering {
	size_t there;         /* jobs that the group would have, or nearly so */
	size_t expected;      /* jobs that it may come to have; 0: nobody knows */
	uint64_t patience_ns; /* how long it may wait for those */
};

/* With the lock held. */
static void
lanes_look_locked(const struct lanes *q, const struct lanes_job *job, struct gathering *ret)
{
	*ret = (struct gathering){ .there = q->waiting };
	for (const struct lanes_job *j = job; j; j = j->group)
		ret->there++;
	if (q->crowd_lanes & job->lanes)
		ret->expected = q->crowd < q->group_jobs ? q->crowd : q->group_jobs;
	if (ret->expected > group_limit(q, job))
		ret->expected = group_limit(q, job);
	ret->patience_ns = q->crowd_ns / LANES_GATHER_SHARE;
	if (ret->patience_ns > LANES_GATHER_NS)
		ret->patience_ns = LANES_GATHER_NS;
}

static void
lanes_look(struct lanes *q, const struct lanes_job *job, struct gathering *ret)
{
	pthread_mutex_lock(&q->lock);
	lanes_look_locked(q, job, ret);
	pthread_mutex_unlock(&q->lock);
}

/* Sleeps until as many jobs are there as are expected, or the patience has come to its end. */
static void
lanes_sleep(struct lanes *q, const struct lanes_job *job)
{
	uint64_t begin_ns = clock_mono_ns();
	struct event crowded;
	struct gathering g;
	bool sleeps;

	event_init(&crowded);
	pthread_mutex_lock(&q->lock);
	lanes_look_locked(q, job, &g);
	sleeps = !q->crowded && g.there < g.expected;
	if (sleeps) {
		q->crowded = &crowded;
		q->crowd_missing = g.expected - g.there;
	}
	pthread_mutex_unlock(&q->lock);
	if (!sleeps)
		return;
	(void)event_wait(&crowded, begin_ns + g.patience_ns);
	pthread_mutex_lock(&q->lock);
	if (q->crowded == &crowded)
		q->crowded = NULL;
	pthread_mutex_unlock(&q->lock);
}

/* With the lock held: one more job has come. */
static void
lanes_note_arrival(struct lanes *q)
{
	if (!q->crowded || --q->crowd_missing)
		return;
	event_set(q->crowded);
	q->crowded = NULL;
}

/*
 * Waits for the clients that have just been answered, and are about to send their next commands. A
 * group that began without them would make them wait for its commit, and then for their own: 50
 * clients at one key would be two groups for ever, which take turns.
 */
static void
job_await_crowd(struct lanes *q, const struct lanes_job *job)
{
	uint64_t begin_ns = clock_mono_ns();
	unsigned turns = 0;
	struct gathering g;

	lanes_look(q, job, &g);
	if (g.there < g.expected && g.patience_ns >= LANES_GATHER_SLEEP_NS) {
		lanes_sleep(q, job);
		return;
	}
	while (g.there < g.expected && turns < LANES_GATHER_TURNS &&
	       clock_mono_ns() - begin_ns < g.patience_ns) {
		size_t before = g.there;

		wait_yield();
		lanes_look(q, job, &g);
		turns = g.there > before ? 0 : turns + 1;
	}
}

/* True for a job that begins at once: it is prompt, and met nobody at its lanes last time. */
static bool
job_is_lonely(struct lanes *q, const struct lanes_job *job)
{
	struct gathering g;

	if (!job->prompt)
		return false;
	lanes_look(q, job, &g);
	return g.there <= 1 && g.expected <= 1;
}

/*
 * A job that leads a group does not run at once. It lets the fibers of its loop go on that are
 * ready, too, so that what has come with it is in the group, and not in the next one, which would
 * have to wait for this one's commit.
 */
static void
job_gather(struct lanes *q, struct lanes_job *job)
{
	if (!wait_is_alone() && !job_is_lonely(q, job)) {
		wait_yield();
		job_await_crowd(q, job);
	}
	pthread_mutex_lock(&q->lock);
	if (q->gathering == job)
		q->gathering = NULL;
	lanes_gather(q, job);
	pthread_mutex_unlock(&q->lock);
}

/* ---- A job ---- */

/* With the lock held: the job joins the group that gathers, if it may. */
static bool
lanes_join(struct lanes *q, struct lanes_job *job)
{
	if (!q->gathering || !job->small || !job->keys != !q->gathering->keys)
		return false;
	if (q->gathered >= group_limit(q, q->gathering)) {
		q->gathering = NULL; /* it has enough: the next group may gather */
		return false;
	}
	job_take(q, job, q->gathering->number);
	job->group = NULL;
	*q->gathering_end = job;
	q->gathering_end = &job->group;
	q->gathered++;
	job->joined = true;
	return true;
}

/*
 * With the lock held: decides whether the job takes the lane in common. Without it, commands of
 * different keys that come while a group waits for its commit form another group, which waits for
 * that commit and then for its own; the two take turns for ever. With it they wait for the group's
 * end, and form one group with the next commands of its clients. With many clients two groups are
 * better: one runs while the other one is written.
 */
static void
job_share_lane(const struct lanes *q, struct lanes_job *job)
{
	if (job->lanes == UINT64_MAX)
		return;
	job->lanes &= ~LANE_SHARED; /* of a turn before */
	if (job->shares && q->crowd <= LANES_SHARED_JOBS)
		job->lanes |= LANE_SHARED;
}

/*
 * Takes the job's lanes. The job then leads a new group, joins one that still gathers, or waits in
 * the queue until a leader runs it or it leads itself. True if it leads now. Otherwise its fiber
 * must not read the job until it is woken, since other fibers change it.
 */
static bool
job_enqueue(struct lanes *q, struct lanes_job *job)
{
	struct walk walk;
	bool leads, barred;

	pthread_mutex_lock(&q->lock);
	job_share_lane(q, job);
	walk = walk_begin(q, 0);
	for (const struct lanes_job *j = q->first; j; j = j->next)
		walk_pass(q, &walk, j);
	barred = walk_bars(q, &walk, job, 0);
	walk_end(q, &walk);
	if (barred || (!lanes_join(q, job) && groups_suffice(q, job))) {
		*q->end = job;
		q->end = &job->next;
		q->waiting++;
	} else if (!job->joined) {
		job_take(q, job, group_number(q, job));
		job->leads = true;
		job->group = NULL;
		if (job->small && !q->gathering) {
			q->gathering = job;
			q->gathering_end = &job->group;
			q->gathered = 1;
		}
	}
	lanes_note_arrival(q);
	leads = job->leads;
	pthread_mutex_unlock(&q->lock);
	return leads;
}

/*
 * Waits until the job leads, or another fiber has run it. False: it was refused. Reads nothing of
 * the job that others change.
 */
static bool
job_await_turn(struct lanes *q, struct lanes_job *job)
{
	uint64_t patience_ms = job->patience_ms;
	uint64_t until_ns = patience_ms ? clock_after_ms(patience_ms) : WAIT_FOREVER;

	while (!event_wait(&job->woken, until_ns)) {
		if (lanes_refuse(q, job))
			return false;
		until_ns = clock_after_ms(LANES_OWED_LOOK_MS);
	}
	return true;
}

bool
lanes_enter(struct lanes *q, struct lanes_job *job)
{
	assert(!job->shares || job->small);
	assert(!job->keys || (job->small && q->keys));
	job->next = job->group = NULL;
	job->leads = job->joined = job->ret_refused = false;
	event_init(&job->woken);
	if (!job_enqueue(q, job) && !job_await_turn(q, job)) {
		job->ret_refused = true;
		return false;
	}
	if (!job->leads)
		return false;
	job_gather(q, job);
	job->began_ns = clock_mono_ns();
	return true;
}

uint64_t
lanes_of_group(const struct lanes_job *leader)
{
	uint64_t lanes = 0;

	for (const struct lanes_job *j = leader; j; j = j->group)
		lanes |= job_own_lanes(j);
	return lanes;
}

/* With the lock held, after the group has ended: notes what the next one may expect. */
static void
lanes_note_crowd(struct lanes *q, const struct lanes_job *leader, uint64_t lanes, uint64_t took_ns)
{
	size_t jobs = 0;

	q->crowd_lanes = lanes;
	for (const struct lanes_job *j = leader; j; j = j->group) {
		q->crowd_lanes |= j->lanes;
		jobs++;
	}
	q->crowd = q->waiting + jobs;
	q->crowd_all = q->waiting + q->in_groups;
	assert(jobs <= q->in_groups);
	q->in_groups -= jobs;
	q->crowd_ns = took_ns;
}

void
lanes_leave(struct lanes *q, struct lanes_job *leader, uint64_t lanes)
{
	uint64_t took_ns = clock_mono_ns() - leader->began_ns;

	pthread_mutex_lock(&q->lock);
	lanes_note_crowd(q, leader, lanes, took_ns);
	lanes_give_back(q, lanes | group_give_keys(q, leader));
	q->key_groups -= leader->keys != NULL;
	lanes_start(q);
	pthread_mutex_unlock(&q->lock);
	for (struct lanes_job *j = leader->group; j;) {
		struct lanes_job *next = j->group;

		event_set(&j->woken); /* from here on it is its own fiber's again */
		j = next;
	}
}
