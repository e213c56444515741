/* ioredis, as programs use it: types, pipelines, transactions, scripts, messages, waiting. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Redis } from 'ioredis';

import { startRedis } from '../lib/redis.mjs';
import { eventually, rejection } from '../lib/util.mjs';

const KEYS = 1000;

async function setup(ctx) {
	const door = await startRedis(ctx, 'ioredis');
	const redis = new Redis(door.port, door.host);
	redis.on('error', () => {}); // each command tells its own
	return { ...door, redis, more: () => redis.duplicate() };
}

const tests = {
	'values of each type are written and read': async ({ redis }) => {
		assert.equal(await redis.set('text', 'grüße', 'EX', 100), 'OK');
		assert.equal(await redis.get('text'), 'grüße');
		assert.equal(await redis.ttl('text'), 100);
		assert.equal(await redis.incrby('n', 41), 41);
		const bytes = Buffer.from([0, 255, 13, 10]);
		await redis.set('bytes', bytes);
		assert.deepEqual(await redis.getBuffer('bytes'), bytes);
		await redis.hset('hash', { a: '1', b: '2' });
		assert.deepEqual(await redis.hgetall('hash'), { a: '1', b: '2' });
		await redis.rpush('list', 'a', 'b', 'c');
		assert.deepEqual(await redis.lrange('list', 0, -1), ['a', 'b', 'c']);
		await redis.sadd('set', 'x', 'y');
		assert.deepEqual((await redis.smembers('set')).sort(), ['x', 'y']);
		await redis.zadd('zset', 2, 'two', 1, 'one');
		assert.deepEqual(await redis.zrange('zset', 0, -1, 'WITHSCORES'), [
			...['one', '1'],
			...['two', '2'],
		]);
		assert.match((await rejection(redis.incr('list'))).message, /^WRONGTYPE/);
	},

	'a pipeline answers each of its commands': async ({ redis }) => {
		const pipeline = redis.pipeline();
		for (let i = 0; i < KEYS; i++) pipeline.set(`key:${i}`, i);
		pipeline.lpush('key:0', 'x');
		const answers = await pipeline.exec();
		assert.equal(answers.length, KEYS + 1);
		assert.deepEqual(answers[7], [null, 'OK']);
		assert.match(answers[KEYS][0].message, /^WRONGTYPE/);
		const names = Array.from({ length: KEYS }, (_, i) => `key:${i}`);
		assert.deepEqual(
			await redis.mget(names),
			names.map((_, i) => String(i)),
		);
	},

	'a scan gives every key': async ({ redis }) => {
		const seen = new Set();
		for await (const keys of redis.scanStream({ match: 'key:*', count: 100 }))
			for (const key of keys) seen.add(key);
		assert.equal(seen.size, KEYS);
	},

	'a transaction is refused when what it watches has changed': async ({ redis, more }) => {
		const other = more();
		await redis.set('watched', 1);
		await redis.watch('watched');
		await other.incr('watched');
		assert.equal(await redis.multi().set('watched', 'lost').exec(), null);
		assert.deepEqual(await redis.multi().incr('watched').get('watched').exec(), [
			[null, 3],
			[null, '3'],
		]);
		await other.quit();
	},

	'a command made of a script is one': async ({ redis }) => {
		redis.defineCommand('take', {
			numberOfKeys: 1,
			lua: `local n = tonumber(redis.call('GET', KEYS[1]) or 0)
				if n < tonumber(ARGV[1]) then return redis.error_reply('NOT enough') end
				return redis.call('DECRBY', KEYS[1], ARGV[1])`,
		});
		await redis.set('stock', 5);
		assert.equal(await redis.take('stock', 3), 2);
		assert.match((await rejection(redis.take('stock', 3))).message, /^NOT enough/);
		await redis.script('FLUSH'); // the client then sends the text once more
		assert.equal(await redis.take('stock', 2), 0);
	},

	'messages come to subscribers of channels and patterns': async ({ redis, more }) => {
		const subscriber = more();
		await subscriber.subscribe('news');
		await subscriber.psubscribe('w*');
		const news = once(subscriber, 'message');
		const weather = once(subscriber, 'pmessage');
		assert.equal(await redis.publish('news', 'one'), 1);
		assert.equal(await redis.publish('weather', 'rain'), 1);
		assert.deepEqual(await news, ['news', 'one']);
		assert.deepEqual(await weather, ['w*', 'weather', 'rain']);
		await subscriber.quit();
	},

	'a command that waits is served': async ({ redis, more }) => {
		const waiting = more();
		const element = waiting.blpop('queue', 0);
		await redis.rpush('queue', 'job');
		assert.deepEqual(await element, ['queue', 'job']);
		assert.equal(await waiting.blpop('queue', 0.01), null);
		await waiting.quit();
	},

	'a stream is written, read and waited for': async ({ redis, more }) => {
		const first = await redis.xadd('stream', '*', 'a', '1');
		const waiting = more();
		const entry = waiting.xread('BLOCK', 0, 'STREAMS', 'stream', '$');
		await eventually(async () =>
			/blocked_clients:1\r/.test(await redis.info('clients')),
		);
		const second = await redis.xadd('stream', 'MAXLEN', '~', 1000, '*', 'b', '2');
		assert.deepEqual(await entry, [['stream', [[second, ['b', '2']]]]]);
		assert.deepEqual(await redis.xrange('stream', '-', '+'), [
			[first, ['a', '1']],
			[second, ['b', '2']],
		]);
		assert.equal(await redis.xtrim('stream', 'MAXLEN', 1), 1);
		assert.equal(await redis.xlen('stream'), 1);
		await waiting.quit();
	},

	'a client connects again after a stop, and goes on': async ({ redis, frond }) => {
		await redis.set('kept', 'yes');
		const again = new Promise((resolve) => redis.once('ready', resolve));
		await frond.kill();
		await frond.start();
		await again;
		assert.equal(await redis.get('kept'), 'yes');
	},
};

async function teardown({ redis, frond }) {
	redis.disconnect();
	await frond.stop();
}

export default { name: 'ioredis', ownsServer: true, setup, tests, teardown };
