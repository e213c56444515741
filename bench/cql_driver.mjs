/*
 * cassandra-driver at work: prints how many requests a second it gets done.
 *
 *     BENCH_CLIENTS=DIRECTORY node cql_driver.mjs PORT OPERATION SECONDS ROWS
 *
 * OPERATION: insert or select, one after the other; insert-32 or select-32, 32 under way. The tables are
 * bench/cql.py's. DIRECTORY has the driver among its node_modules.
 */
import { createRequire } from 'node:module';
import process from 'node:process';

const TOGETHER = 32;
const require = createRequire(`${process.env.BENCH_CLIENTS}/package.json`);
const { Client } = require('cassandra-driver');
const [port, operation, seconds, rows] = process.argv.slice(2);
const inserts = operation.startsWith('insert');
const client = new Client({
	contactPoints: ['127.0.0.1'],
	localDataCenter: 'datacenter1',
	protocolOptions: { port: Number(port), maxVersion: 4 },
});
const text = inserts
	? 'INSERT INTO bench.d (k, a, b, c, d, e, f) VALUES (?, ?, ?, ?, ?, ?, ?)'
	: 'SELECT * FROM bench.t WHERE k = ?';
const value = 'x'.repeat(166);
let next = 0;

const execute = () => {
	const n = next++;
	const values = inserts
		? [n, value, value, value, value, value, value]
		: [(n * 7919) % Number(rows)];

	return client.execute(text, values, { prepare: true });
};

async function work(until) {
	while (performance.now() < until) await execute();
}

await client.connect();
await execute();
const from = next;
const begin = performance.now();
const until = begin + Number(seconds) * 1000;
await Promise.all(
	Array.from({ length: operation.endsWith(`-${TOGETHER}`) ? TOGETHER : 1 }, () => work(until)),
);
console.log((next - from) / ((performance.now() - begin) / 1000));
await client.shutdown();
