/* cassandra-driver, as programs use it: types, prepared statements, pages, batches, conditions, the schema. */
import assert from 'node:assert/strict';
import cassandra from 'cassandra-driver';

import { startCassandra } from '../lib/cassandra.mjs';
import { rejection } from '../lib/util.mjs';

const { Client, types } = cassandra;
const PREPARED = { prepare: true };
const ROWS = 250;

const connect = ({ host, port }, options) =>
	new Client({
		contactPoints: [host],
		localDataCenter: 'datacenter1',
		protocolOptions: { port },
		...options,
	});

async function setup(ctx) {
	const door = await startCassandra(ctx, 'cassandra-driver');
	const client = connect(door);
	await client.connect();
	await client.execute(
		"CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
	);
	await client.execute('CREATE TYPE shop.place (street text, number int)');
	await client.execute(
		`CREATE TABLE shop.things (id uuid PRIMARY KEY, n int, big bigint, price decimal, made timestamp, day date,
		 at time, bytes blob, tags set<text>, parts list<int>, words map<text, int>, where_ frozen<place>,
		 pair tuple<int, text>, ip inet, yes boolean)`,
	);
	await client.execute('CREATE TABLE shop.rows (k int, c int, v text, PRIMARY KEY (k, c))');
	return { ...door, client };
}

const tests = {
	'values of each type are written and read': async ({ client }) => {
		const row = {
			id: types.Uuid.random(),
			n: 41,
			big: types.Long.fromString('9007199254740993'),
			price: types.BigDecimal.fromString('12.50'),
			made: new Date('2024-02-29T12:00:00.123Z'),
			day: types.LocalDate.fromString('2024-02-29'),
			at: types.LocalTime.fromString('10:11:12.000000013'),
			bytes: Buffer.from([0, 255, 13, 10]),
			tags: ['a', 'b'],
			parts: [3, 1, 2],
			words: { grüße: 1 },
			where_: { street: 'Main', number: 5 },
			pair: new types.Tuple(1, 'x'),
			ip: types.InetAddress.fromString('127.0.0.1'),
			yes: true,
		};
		const names = Object.keys(row);
		await client.execute(
			`INSERT INTO shop.things (${names}) VALUES (${names.map(() => '?')})`,
			Object.values(row),
			PREPARED,
		);
		const found = (
			await client.execute('SELECT * FROM shop.things WHERE id = ?', [row.id], PREPARED)
		).first();
		for (const name of names) {
			if (row[name]?.equals && !Buffer.isBuffer(row[name]))
				assert.ok(row[name].equals(found[name]), name);
			else assert.deepEqual(found[name], row[name], name);
		}
	},

	'pages are gone through, by hand and as a stream': async ({ client }) => {
		const insert = 'INSERT INTO shop.rows (k, c, v) VALUES (?, ?, ?)';
		await Promise.all(
			Array.from({ length: ROWS }, (_, c) => client.execute(insert, [1, c, `v${c}`], PREPARED)),
		);
		const select = 'SELECT c FROM shop.rows WHERE k = ?';
		const first = await client.execute(select, [1], { prepare: true, fetchSize: 100 });
		assert.equal(first.rowLength, 100);
		const second = await client.execute(select, [1], {
			prepare: true,
			fetchSize: 100,
			pageState: first.pageState,
		});
		assert.equal(second.first().c, 100);
		const seen = [];
		for await (const row of client.stream(select, [1], { prepare: true, fetchSize: 7, autoPage: true }))
			seen.push(row.c);
		assert.deepEqual(
			seen,
			Array.from({ length: ROWS }, (_, c) => c),
		);
	},

	'a batch and a condition are one transaction': async ({ client }) => {
		const insert = 'INSERT INTO shop.rows (k, c, v) VALUES (?, ?, ?)';
		await client.batch(
			[
				{ query: insert, params: [2, 1, 'a'] },
				{ query: insert, params: [3, 1, 'b'] },
			],
			PREPARED,
		);
		const update = "UPDATE shop.rows SET v = 'z' WHERE k = 2 AND c = 1 IF v = ?";
		const refused = await client.execute(update, ['b'], PREPARED);
		assert.equal(refused.wasApplied(), false);
		assert.equal(refused.first().v, 'a');
		assert.equal((await client.execute(update, ['a'], PREPARED)).wasApplied(), true);
	},

	'errors have their codes': async ({ client }) => {
		const { responseErrorCodes: codes } = types;
		assert.equal((await rejection(client.execute('SELEC'))).code, codes.syntaxError);
		assert.equal((await rejection(client.execute('SELECT * FROM shop.none'))).code, codes.invalid);
		assert.equal(
			(await rejection(client.execute('CREATE TABLE shop.rows (k int PRIMARY KEY)'))).code,
			codes.alreadyExists,
		);
	},

	'the schema is told, and a prepared statement learns of a new column': async ({ client }) => {
		const table = await client.metadata.getTable('shop', 'rows');
		assert.deepEqual(
			[table.partitionKeys, table.clusteringKeys].map((keys) => keys.map((key) => key.name)),
			[['k'], ['c']],
		);
		assert.equal((await client.metadata.getUdt('shop', 'place')).fields.length, 2);
		const select = 'SELECT * FROM shop.rows WHERE k = ? AND c = ?';
		await client.execute(select, [2, 1], PREPARED);
		await client.execute('ALTER TABLE shop.rows ADD extra int');
		const row = (await client.execute(select, [2, 1], PREPARED)).first();
		assert.deepEqual([...row.keys()].sort(), ['c', 'extra', 'k', 'v']);
	},

	'a mapper reads what it has written': async ({ client }) => {
		const { Mapper } = cassandra.mapping;
		const mapper = new Mapper(client, { models: { Row: { tables: ['rows'], keyspace: 'shop' } } });
		const rows = mapper.forModel('Row');
		await rows.insert({ k: 9, c: 1, v: 'mapped' });
		assert.equal((await rows.get({ k: 9, c: 1 })).v, 'mapped');
		await rows.remove({ k: 9, c: 1 });
		assert.equal(await rows.get({ k: 9, c: 1 }), null);
	},

	'version 3 is understood': async (door) => {
		const client = connect(door, { protocolOptions: { port: door.port, maxVersion: 3 } });
		const { rows } = await client.execute('SELECT v FROM shop.rows WHERE k = 3 AND c = 1');
		assert.equal(rows[0].v, 'b');
		await client.shutdown();
	},
};

async function teardown({ client, frond }) {
	await client.shutdown();
	await frond.stop();
}

export default { name: 'cassandra-driver', ownsServer: true, setup, tests, teardown };
