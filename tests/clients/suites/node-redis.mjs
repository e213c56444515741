/* node-redis, in both versions of the protocol. */
import assert from 'node:assert/strict';
import { WatchError, createClient } from 'redis';

import { startRedis } from '../lib/redis.mjs';
import { eventually, rejection } from '../lib/util.mjs';

async function connect(door, options = {}) {
	const client = createClient({ socket: { host: door.host, port: door.port }, ...options });
	client.on('error', () => {}); // each command tells its own
	await client.connect();
	return client;
}

async function setup(ctx) {
	const door = await startRedis(ctx, 'node-redis');
	return { ...door, two: await connect(door, { RESP: 2 }), three: await connect(door, { RESP: 3 }) };
}

async function types(client, name) {
	await client.set(`${name}:s`, 'value', { expiration: { type: 'EX', value: 60 } });
	assert.equal(await client.get(`${name}:s`), 'value');
	assert.equal(await client.hSet(`${name}:h`, { field: 'a', other: 'b' }), 2);
	assert.deepEqual({ ...(await client.hGetAll(`${name}:h`)) }, { field: 'a', other: 'b' });
	assert.equal(await client.rPush(`${name}:l`, ['1', '2', '3']), 3);
	assert.deepEqual(await client.lRange(`${name}:l`, 0, -1), ['1', '2', '3']);
	assert.equal(await client.sAdd(`${name}:set`, ['a', 'b']), 2);
	assert.deepEqual([...(await client.sMembers(`${name}:set`))].sort(), ['a', 'b']);
	await client.zAdd(`${name}:z`, [
		{ value: 'b', score: 2.5 },
		{ value: 'a', score: 1 },
	]);
	assert.deepEqual(await client.zRangeWithScores(`${name}:z`, 0, -1), [
		{ value: 'a', score: 1 },
		{ value: 'b', score: 2.5 },
	]);
	assert.equal(await client.zScore(`${name}:z`, 'b'), 2.5);
	assert.equal(await client.exists(`${name}:none`), 0);
	assert.match((await rejection(client.incr(`${name}:l`))).message, /^WRONGTYPE/);
}

const tests = {
	'values of each type come back in RESP2': ({ two }) => types(two, 'two'),

	'values of each type come back in RESP3': ({ three }) => types(three, 'three'),

	'an iteration gives every key': async ({ three }) => {
		const seen = new Set();
		for await (const keys of three.scanIterator({ MATCH: 'three:*' }))
			for (const key of keys) seen.add(key);
		assert.equal(seen.size, 5);
	},

	'a transaction runs as a whole, or not at all': async ({ two, three }) => {
		assert.deepEqual(await three.multi().set('n', '1').incr('n').get('n').exec(), [
			...['OK', 2],
			'2',
		]);
		await three.watch('n');
		await two.set('n', '7');
		assert.ok((await rejection(three.multi().incr('n').exec())) instanceof WatchError);
		assert.equal(await two.get('n'), '7');
	},

	'a script is loaded, run, and run again by its name': async ({ three }) => {
		const text = "return {KEYS[1], redis.call('INCRBY', KEYS[1], ARGV[1])}";
		const run = { keys: ['visits'], arguments: ['5'] };
		assert.deepEqual(await three.eval(text, run), ['visits', 5]);
		const sha = await three.scriptLoad(text);
		assert.deepEqual(await three.evalSha(sha, run), ['visits', 10]);
	},

	'messages come in both versions, and other commands beside them in RESP3': async (state) => {
		const got = [];
		const subscribers = [await connect(state, { RESP: 2 }), await connect(state, { RESP: 3 })];
		for (const client of subscribers)
			await client.subscribe('news', (message) => got.push(message));
		await subscribers[1].pSubscribe('n?ws', (message) => got.push(`p ${message}`));
		assert.equal(await subscribers[1].publish('news', 'one'), 3);
		await eventually(() => got.length === 3);
		assert.deepEqual(got.sort(), ['one', 'one', 'p one']);
		for (const client of subscribers) await client.close();
	},

	'commands that wait are served': async (state) => {
		const waiting = await connect(state, { RESP: 3 });
		const element = waiting.blPop('queue', 0);
		await state.three.rPush('queue', 'job');
		assert.deepEqual({ ...(await element) }, { key: 'queue', element: 'job' });
		const entry = waiting.xRead({ key: 'stream', id: '0' }, { BLOCK: 0 });
		const id = await state.three.xAdd('stream', '*', { a: '1' });
		const [{ name, messages }] = await entry;
		assert.equal(name, 'stream');
		assert.equal(messages[0].id, id);
		assert.deepEqual({ ...messages[0].message }, { a: '1' });
		await waiting.close();
	},
};

async function teardown({ two, three, frond }) {
	two.destroy();
	three.destroy();
	await frond.stop();
}

export default { name: 'node-redis', ownsServer: true, setup, tests, teardown };
