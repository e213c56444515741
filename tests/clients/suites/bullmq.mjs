/* BullMQ's queues, unchanged: its scripts, its markers to wait for, its events in streams. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { FlowProducer, Queue, QueueEvents, UnrecoverableError, Worker } from 'bullmq';
import { Redis } from 'ioredis';

import { startRedis } from '../lib/redis.mjs';
import { eventually, rejection } from '../lib/util.mjs';

const JOBS = 50;
const LIMIT = { max: 2, duration: 300 };

async function setup(ctx) {
	const door = await startRedis(ctx, 'bullmq');
	const redis = new Redis(door.port, door.host, { maxRetriesPerRequest: null });
	return { ...door, redis, queues: 0 };
}

/*
 * A queue of its own for a test, with all that is made for it; closed afterwards. `worker(process,
 * options)` begins to work.
 */
const withQueue = (test) => async (state) => {
	const connection = state.redis;
	const name = `queue-${++state.queues}`;
	const queue = new Queue(name, { connection }).setMaxListeners(0); // each job that is waited for
	// From the first event on: by default it is from whenever the first XREAD arrives.
	const events = new QueueEvents(name, { connection, lastEventId: '0-0' });
	const made = [];
	const make = (thing) => made.push(thing) && thing;
	const worker = (process, options) =>
		make(new Worker(name, process, { connection, ...options }));
	try {
		await events.waitUntilReady();
		await test({ queue, events, worker, make, connection, name });
	} finally {
		for (const thing of made) await thing.close();
		await events.close();
		await queue.close();
	}
};

const tests = {
	'jobs are added, done once each, and their results told': withQueue(
		async ({ queue, events, worker }) => {
			const done = [];
			worker(async (job) => done.push(job.data.n) && job.data.n * 2, { concurrency: 5 });
			const jobs = await queue.addBulk(
				Array.from({ length: JOBS }, (_, n) => ({ name: 'double', data: { n } })),
			);
			const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
			assert.deepEqual(
				results,
				jobs.map((_, n) => n * 2),
			);
			assert.deepEqual(
				done.sort((a, b) => a - b),
				jobs.map((_, n) => n),
			);
			const counts = await queue.getJobCounts('completed', 'waiting', 'active', 'failed');
			assert.deepEqual(counts, { completed: JOBS, waiting: 0, active: 0, failed: 0 });
			const job = await queue.getJob(jobs[3].id);
			assert.equal(job.returnvalue, 6);
			assert.equal(await job.getState(), 'completed');
		},
	),

	'progress and logs of a job are told': withQueue(async ({ queue, events, worker }) => {
		const told = once(events, 'progress');
		worker(async (job) => {
			await job.updateProgress({ percent: 50 });
			await job.log('halfway');
		});
		const job = await queue.add('work', {});
		await job.waitUntilFinished(events);
		const [{ jobId, data }] = await told;
		assert.deepEqual([jobId, data], [job.id, { percent: 50 }]);
		assert.deepEqual((await queue.getJobLogs(job.id)).logs, ['halfway']);
	}),

	'a delayed job comes when its time has come': withQueue(async ({ queue, events, worker }) => {
		const delay = 300;
		const delayed = once(events, 'delayed');
		const job = await queue.add('later', {}, { delay });
		assert.equal((await delayed)[0].jobId, job.id);
		assert.equal(await job.getState(), 'delayed');
		worker(async () => Date.now());
		const at = await job.waitUntilFinished(events);
		assert.ok(at >= job.timestamp + delay, `${at - job.timestamp} ms`);
	}),

	'a job that fails is tried again, or given up': withQueue(
		async ({ queue, events, worker }) => {
			worker(async (job) => {
				if (job.name === 'hopeless') throw new UnrecoverableError('never');
				if (job.attemptsMade < 2) throw new Error('not yet');
				return job.attemptsMade;
			});
			const backoff = { type: 'exponential', delay: 20 };
			const job = await queue.add('try', {}, { attempts: 5, backoff });
			assert.equal(await job.waitUntilFinished(events), 2);
			const hopeless = await queue.add('hopeless', {}, { attempts: 5 });
			const failure = await rejection(hopeless.waitUntilFinished(events));
			assert.equal(failure.message, 'never');
			const [failed] = await queue.getFailed();
			assert.deepEqual([failed.id, failed.attemptsMade], [hopeless.id, 1]);
			await queue.retryJobs();
			await eventually(async () => (await queue.getFailedCount()) === 1);
		},
	),

	'a schedule makes jobs until it is removed': withQueue(async ({ queue, worker }) => {
		let runs = 0;
		worker(async () => runs++);
		await queue.upsertJobScheduler(
			'tick',
			{ every: 100 },
			{ name: 'tick', data: { from: 'schedule' } },
		);
		await eventually(() => runs >= 3);
		const schedulers = await queue.getJobSchedulers();
		assert.deepEqual(
			schedulers.map((s) => [s.key, Number(s.every)]),
			[['tick', 100]],
		);
		assert.equal(await queue.removeJobScheduler('tick'), true);
		assert.equal(await queue.getJobSchedulersCount(), 0);
		await queue.upsertJobScheduler('daily', { pattern: '0 0 3 * * *' });
		assert.equal(await queue.getDelayedCount(), 1);
	}),

	'jobs of higher priority come first': withQueue(async ({ queue, events, worker }) => {
		const order = [];
		const jobs = [];
		for (const priority of [3, 1, 2, 1])
			jobs.push(await queue.add('work', { priority }, { priority }));
		assert.equal(await queue.getPrioritizedCount(), 4);
		worker(async (job) => order.push([job.data.priority, job.id]));
		await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
		assert.deepEqual(
			order.map(([priority]) => priority),
			[1, 1, 2, 3],
		);
		assert.deepEqual(
			order.slice(0, 2).map(([, id]) => id),
			[jobs[1].id, jobs[3].id],
		);
	}),

	'a parent waits for its children': withQueue(
		async ({ events, worker, make, connection, name }) => {
			worker(async (job) => {
				if (job.name === 'child') return job.data.n;
				return Object.values(await job.getChildrenValues()).reduce((a, b) => a + b);
			});
			const flows = make(new FlowProducer({ connection }));
			const children = [1, 2, 3].map((n) => ({
				name: 'child',
				queueName: name,
				data: { n },
			}));
			const flow = await flows.add({ name: 'parent', queueName: name, children });
			assert.equal(await flow.job.waitUntilFinished(events), 6);
			const tree = await flows.getFlow({ id: flow.job.id, queueName: name });
			assert.equal(tree.children.length, 3);
		},
	),

	'no more jobs run in a time than the limit says': withQueue(
		async ({ queue, events, worker }) => {
			const times = [];
			worker(async () => times.push(Date.now()), { limiter: LIMIT, concurrency: 5 });
			const jobs = await queue.addBulk(
				Array.from({ length: 6 }, (_, n) => ({ name: 'work', data: { n } })),
			);
			await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
			// The third and the fifth begin a window each.
			const took = times.at(-1) - times[0];
			assert.ok(took >= LIMIT.duration, `${took} ms`);
			assert.equal(times.length, 6);
		},
	),

	'a queue that is paused goes on where it was': withQueue(
		async ({ queue, events, worker }) => {
			const done = [];
			await queue.pause();
			assert.equal(await queue.isPaused(), true);
			worker(async (job) => done.push(job.id));
			const job = await queue.add('work', {});
			assert.equal(await queue.getWaitingCount(), 1);
			assert.deepEqual(done, []);
			await queue.resume();
			await job.waitUntilFinished(events);
			assert.deepEqual(done, [job.id]);
		},
	),

	'two workers share a queue, and a job is added once by its id': withQueue(
		async ({ queue, events, worker }) => {
			const done = [[], []];
			for (const list of done) worker(async (job) => list.push(job.id));
			const added = await Promise.all(
				Array.from({ length: JOBS }, (_, n) =>
					queue.add('work', {}, { jobId: `job-${n % 10}` }),
				),
			);
			await Promise.all(added.map((job) => job.waitUntilFinished(events)));
			assert.deepEqual(
				done.flat().sort(),
				Array.from({ length: 10 }, (_, n) => `job-${n}`),
			);
		},
	),

	'a queue is cleaned, drained and obliterated': withQueue(
		async ({ queue, events, worker, connection, name }) => {
			const [first] = await queue.addBulk([
				{ name: 'a', data: {} },
				{ name: 'b', data: {} },
			]);
			const working = worker(async () => 1);
			await first.waitUntilFinished(events);
			await eventually(async () => (await queue.getCompletedCount()) === 2);
			assert.equal((await queue.clean(0, 10, 'completed')).length, 2);
			await working.pause();
			await queue.add('c', {});
			await queue.drain();
			assert.equal(await queue.count(), 0);
			await queue.trimEvents(1);
			await queue.obliterate({ force: true });
			const rest = await connection.keys(`bull:${name}:*`);
			assert.deepEqual(
				rest.filter((key) => !key.includes('stalled')),
				[],
			);
		},
	),
};

async function teardown({ redis, frond }) {
	redis.disconnect();
	await frond.stop();
}

export default { name: 'bullmq', ownsServer: true, setup, tests, teardown };
