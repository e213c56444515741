/*
 * Questions by Mango, asked as people ask them: pouchdb-find and nano over HTTP. What is found is
 * compared with a filter over the same documents here, which knows no index.
 */
import assert from 'node:assert/strict';
import Nano from 'nano';
import PouchDB from 'pouchdb';
import memory from 'pouchdb-adapter-memory';
import find from 'pouchdb-find';

import { startFrond } from '../lib/frond.mjs';
import { expectStatus } from '../lib/http.mjs';
import { note } from '../lib/tap.mjs';
import { byBytes, chunks, eventually, pick, random, rejection, without } from '../lib/util.mjs';

PouchDB.plugin(memory);
PouchDB.plugin(find);

const DOCS = 600;
const PAGE = 7;
const QUERIES = 150; // random ones
const ALL = 100000;
const CITIES = ['Aachen', 'Bonn', 'Celle', 'Dresden', 'Emden', 'Fulda'];

async function setup(ctx) {
	const frond = ctx.url ? undefined : await startFrond(ctx, 'queries');
	const url = ctx.url ?? frond.url;
	return { frond, url, server: Nano(url), strict: !ctx.url, run: process.pid, databases: 0 };
}

/* Every member is missing now and then, so that an index has some documents and not others. */
function person(rand, i) {
	const doc = {
		_id: `person-${String(i).padStart(5, '0')}`,
		age: Math.floor(rand() * 90),
		city: pick(rand, CITIES),
		name: { first: `f${i % 17}`, last: `l${i}` },
		score: Math.round(rand() * 1000) / 4 - 100,
	};
	for (const name of ['age', 'city', 'score']) if (rand() < 0.1) delete doc[name];
	return doc;
}

function people(seed, count = DOCS) {
	const rand = random(seed);
	return Array.from({ length: count }, (_, i) => person(rand, i));
}

/* A database with `docs` in it, as nano and as PouchDB know it; gone afterwards. */
const withDb = (test, { docs, partitioned = false } = {}) => async (state, ctx) => {
	const name = `queries-${++state.databases}-${state.run}`;
	await state.server.db.create(name, { partitioned });
	const db = state.server.use(name);
	const pouch = new PouchDB(`${state.url}/${name}`);
	try {
		const filled = docs?.(ctx) ?? [];
		for (const some of chunks(filled, 500)) await db.bulk({ docs: some });
		await test({ ...state, db, pouch, docs: filled, url: `${state.url}/${name}` }, ctx);
	} finally {
		await pouch.close();
		await state.server.db.destroy(name);
	}
};

const ids = (docs) => docs.map((doc) => doc._id);
const sortedIds = (docs) => ids(docs).sort(byBytes);
const explained = async ({ url }, query) =>
	expectStatus(200, 'POST', `${url}/_explain`, query);
const indexOf = async (base, query) => (await explained(base, query)).index.name;

/* ---- A filter that shares nothing with the server ---- */

const OPERATORS = {
	$eq: (a, b) => a === b,
	$ne: (a, b) => a !== b,
	$lt: (a, b) => a < b,
	$lte: (a, b) => a <= b,
	$gt: (a, b) => a > b,
	$gte: (a, b) => a >= b,
	$in: (a, list) => list.includes(a),
};

/* Of selectors whose members are compared with values of their own type only. */
function matches(doc, selector) {
	return Object.entries(selector).every(([name, what]) => {
		if (name === '$or') return what.some((one) => matches(doc, one));
		if (name === '$and') return what.every((one) => matches(doc, one));
		const value = name.split('.').reduce((at, part) => at?.[part], doc);
		return Object.entries(what).every(([operator, operand]) =>
			operator === '$exists'
				? (value !== undefined) === operand
				: value !== undefined && OPERATORS[operator](value, operand),
		);
	});
}

function randomCondition(rand) {
	const number = () => Math.floor(rand() * 95) - 2;
	const text = () => pick(rand, [...CITIES, 'C', 'Zz']);
	const made = {
		age: () => number(),
		city: () => text(),
		score: () => Math.round(rand() * 1000) / 4 - 100,
		'name.first': () => `f${Math.floor(rand() * 18)}`,
	};
	const field = pick(rand, Object.keys(made));
	const operator = pick(rand, [...Object.keys(OPERATORS), '$exists', 'range']);
	if (operator === 'range') {
		const [low, high] = [made[field](), made[field]()].sort((a, b) => (a < b ? -1 : 1));
		return { [field]: { $gte: low, $lt: high } };
	}
	if (operator === '$exists') return { [field]: { $exists: rand() < 0.7 } };
	if (operator === '$in') return { [field]: { $in: [made[field](), made[field]()] } };
	return { [field]: { [operator]: made[field]() } };
}

function randomSelector(rand) {
	const some = () => Array.from({ length: 1 + Math.floor(rand() * 3) }, () => randomCondition(rand));
	const kind = rand();
	if (kind < 0.25) return { $or: some() };
	if (kind < 0.5) return { $and: some() };
	return Object.assign({}, ...some());
}

/* ---- The tests ---- */

const tests = {
	'an index is made once, listed, and taken away': withDb(async ({ pouch }) => {
		const ask = { index: { fields: ['age', 'city'], ddoc: 'by-age', name: 'age-city' } };
		assert.equal((await pouch.createIndex(ask)).result, 'created');
		assert.equal((await pouch.createIndex(ask)).result, 'exists');
		const { indexes, total_rows } = await pouch.getIndexes();
		assert.equal(total_rows, 2);
		assert.equal(indexes[0].name, '_all_docs');
		assert.deepEqual(
			[indexes[1].ddoc, indexes[1].name, indexes[1].type],
			['_design/by-age', 'age-city', 'json'],
		);
		assert.deepEqual(indexes[1].def.fields, [{ age: 'asc' }, { city: 'asc' }]);
		await pouch.deleteIndex(indexes[1]);
		assert.equal((await pouch.getIndexes()).indexes.length, 1);
		assert.equal((await rejection(pouch.get('_design/by-age'))).status, 404);
	}),

	'an index without a name gets the one that CouchDB would give': withDb(
		async ({ db, pouch }) => {
			const { id, name } = await pouch.createIndex({ index: { fields: ['age'] } });
			assert.match(id, /^_design\/[0-9a-f]{40}$/);
			assert.equal(id, `_design/${name}`);
			const again = await db.createIndex({ index: { fields: ['age'] } });
			assert.deepEqual([again.result, again.id], ['exists', id]);
		},
	),

	'queries by an index find what a filter finds, in its order': withDb(
		async ({ pouch, docs, url }) => {
			await pouch.createIndex({ index: { fields: ['age'], name: 'age' } });
			const query = {
				selector: { age: { $gte: 30, $lt: 60 } },
				sort: [{ age: 'desc' }],
				fields: ['_id', 'age'],
				limit: ALL,
			};
			await eventually(async () => (await indexOf({ url }, query)) === 'age');
			const found = (await pouch.find(query)).docs;
			const expected = docs.filter((doc) => doc.age >= 30 && doc.age < 60);
			assert.deepEqual(sortedIds(found), sortedIds(expected));
			for (const doc of found) assert.deepEqual(Object.keys(doc).sort(), ['_id', 'age']);
			found.slice(1).forEach((doc, i) => assert.ok(found[i].age >= doc.age));
			const part = (await pouch.find({ ...query, skip: 10, limit: 5 })).docs;
			assert.deepEqual(part, found.slice(10, 15));
		},
		{ docs: ({ seed }) => people(seed) },
	),

	'random selectors find what a filter finds, while documents are written': withDb(
		async ({ db, pouch, docs }, { seed }) => {
			const rand = random(seed + 1);
			const now = new Map(docs.map((doc) => [doc._id, doc]));
			let next = DOCS;
			let matched = 0;
			for (const fields of [['age'], ['city', 'age'], ['score'], ['name.first']])
				await db.createIndex({ index: { fields } });
			for (let i = 0; i < QUERIES; i++) {
				const selector = randomSelector(rand);
				const { docs: found } = await pouch.find({ selector, limit: ALL });
				const expected = [...now.values()].filter((doc) => matches(doc, selector));
				assert.deepEqual(
					sortedIds(found),
					sortedIds(expected),
					JSON.stringify(selector),
				);
				for (const doc of found)
					assert.deepEqual(without(doc, '_rev'), now.get(doc._id));
				matched += found.length;

				const doc = person(rand, rand() < 0.3 ? next++ : Math.floor(rand() * next));
				const old = await db.head(doc._id).then(
					({ etag }) => ({ _rev: JSON.parse(etag) }),
					() => ({}),
				);
				if (old._rev && rand() < 0.2) {
					await db.destroy(doc._id, old._rev);
					now.delete(doc._id);
				} else {
					await db.insert({ ...doc, ...old });
					now.set(doc._id, doc);
				}
			}
			note(`${QUERIES} selectors, ${matched} documents found`);
			assert.ok(matched > QUERIES, 'hardly anything was found: this showed little');
		},
		{ docs: ({ seed }) => people(seed) },
	),

	'what was acknowledged is found at once': withDb(async ({ db }) => {
		await db.createIndex({ index: { fields: ['n'] }, name: 'n' });
		for (let n = 0; n < 50; n++) {
			await db.insert({ n });
			const { docs } = await db.find({ selector: { n }, fields: ['n'] });
			assert.deepEqual(docs, [{ n }]);
		}
	}),

	'bookmarks lead through all documents once, whatever is written meanwhile': withDb(
		async ({ db, docs, url, strict }, { seed }) => {
			if (!strict) return; // CouchDB passes over one when a page's last one goes
			await db.createIndex({ index: { fields: ['age'] }, name: 'age' });
			const query = { selector: { age: { $gte: 0 } }, sort: ['age'], limit: PAGE };
			await eventually(async () => (await indexOf({ url }, query)) === 'age');
			const rand = random(seed + 2);
			const seen = new Map();
			let bookmark;
			for (;;) {
				const page = await db.find({ ...query, ...(bookmark ? { bookmark } : {}) });
				for (const doc of page.docs)
					seen.set(doc._id, (seen.get(doc._id) ?? 0) + 1);
				if (page.docs.length < PAGE) break;
				({ bookmark } = page);
				const last = page.docs.at(-1);
				// One before and one behind the place, and the place's own document goes.
				await db.insert({ _id: `new-${seen.size}-a`, age: last.age - 0.5 });
				await db.insert({ _id: `new-${seen.size}-b`, age: last.age + rand() });
				if (rand() < 0.3) await db.destroy(last._id, last._rev);
			}
			for (const doc of docs.filter(({ age }) => age !== undefined))
				assert.equal(seen.get(doc._id), 1, doc._id);
			for (const [id, times] of seen) assert.equal(times, 1, id);
			assert.ok([...seen.keys()].some((id) => id.endsWith('-b')));
			assert.ok(![...seen.keys()].some((id) => id.endsWith('-a')));
		},
		{ docs: ({ seed }) => people(seed, 200) },
	),

	'a sort without an index is refused, a query without one warned': withDb(
		async ({ db, pouch }) => {
			const refused = await rejection(
				pouch.find({ selector: { age: { $gt: 1 } }, sort: ['age'] }),
			);
			assert.deepEqual([refused.status, refused.error], [400, 'no_usable_index']);
			const { docs, warning } = await db.find({ selector: { age: { $gt: 1 } } });
			assert.equal(docs.length, 25);
			assert.match(warning, /create an index/);
			const wrong = await rejection(db.find({ selector: { age: { $what: 1 } } }));
			assert.deepEqual([wrong.statusCode, wrong.error], [400, 'invalid_operator']);
		},
		{ docs: ({ seed }) => people(seed, 60) },
	),

	'explain names the index, its range, and why others are left': withDb(
		async ({ pouch, url }) => {
			await pouch.createIndex({ index: { fields: ['age'], name: 'age' } });
			await pouch.createIndex({ index: { fields: ['city', 'age'], name: 'city' } });
			const query = { selector: { city: 'Bonn', age: { $gt: 20 } }, limit: 3 };
			await eventually(async () => (await indexOf({ url }, query)) === 'city');
			const plan = await pouch.explain({ ...query, use_index: ['nothing'] });
			assert.deepEqual(plan.index.def.fields, [{ city: 'asc' }, { age: 'asc' }]);
			assert.equal(plan.limit, 3);
			assert.deepEqual(plan.selector, {
				$and: [{ city: { $eq: 'Bonn' } }, { age: { $gt: 20 } }],
			});
			assert.deepEqual([...plan.mrargs.start_key].slice(0, 2), ['Bonn', 20]);
			const left = plan.index_candidates.map(({ index }) => index.name);
			assert.deepEqual(left.sort(), ['_all_docs', 'age']);
			const covered = await explained({ url }, { ...query, fields: ['age', 'city'] });
			assert.equal(covered.covering, true);
		},
		{ docs: ({ seed }) => people(seed, 60) },
	),

	'an index of some documents serves those who ask for it': withDb(
		async ({ db, docs }) => {
			const partial_filter_selector = { city: { $eq: 'Emden' } };
			await db.createIndex({
				index: { fields: ['age'], partial_filter_selector },
				ddoc: 'emden',
				name: 'age',
			});
			const found = await db.find({
				selector: { age: { $gte: 0 }, city: 'Emden' },
				use_index: ['emden', 'age'],
				limit: ALL,
				execution_stats: true,
			});
			const expected = docs.filter(({ age, city }) => age >= 0 && city === 'Emden');
			assert.deepEqual(sortedIds(found.docs), sortedIds(expected));
			assert.equal(found.warning, undefined);
			assert.equal(found.execution_stats.results_returned, expected.length);
			await eventually(async () => {
				const { execution_stats } = await db.find({
					selector: { age: { $gte: 0 }, city: 'Emden' },
					use_index: ['emden', 'age'],
					execution_stats: true,
					limit: ALL,
				});
				return execution_stats.total_docs_examined === expected.length;
			});
		},
		{ docs: ({ seed }) => people(seed) },
	),

	'an index comes with its design document from another database': withDb(
		async ({ pouch, url, docs, run, databases }) => {
			const here = new PouchDB(`index-${run}-${databases}`, { adapter: 'memory' });
			await here.bulkDocs(structuredClone(docs));
			await here.createIndex({ index: { fields: ['age'], name: 'age', ddoc: 'by-age' } });
			await here.replicate.to(pouch);
			const query = { selector: { age: { $gt: 80 } }, sort: ['age'], limit: ALL };
			await eventually(async () => (await indexOf({ url }, query)) === 'age');
			const [mine, theirs] = [await here.find(query), await pouch.find(query)];
			assert.deepEqual(ids(theirs.docs), ids(mine.docs));
			assert.ok(mine.docs.length > 0);
			await here.destroy();
		},
		{ docs: ({ seed }) => people(seed, 300) },
	),

	'a partition is asked alone, and by indexes of its own': withDb(
		async ({ db, docs, url }) => {
			await db.createIndex({ index: { fields: ['age'] }, ddoc: 'part', name: 'age' });
			await db.createIndex({
				index: { fields: ['score'] },
				ddoc: 'whole',
				name: 'score',
				partitioned: false,
			});
			const bonn = docs.filter(({ _id }) => _id.startsWith('Bonn:'));
			const selector = { age: { $gte: 40 } };
			const { docs: found } = await db.partitionedFind('Bonn', { selector, limit: ALL });
			assert.deepEqual(
				sortedIds(found),
				sortedIds(bonn.filter(({ age }) => age >= 40)),
			);
			const everywhere = await db.find({ selector: { score: { $gte: 0 } }, limit: ALL });
			assert.deepEqual(
				sortedIds(everywhere.docs),
				sortedIds(docs.filter(({ score }) => score >= 0)),
			);
			const plan = await expectStatus(
				200,
				'POST',
				`${url}/_partition/Bonn/_explain`,
				{ selector },
			);
			assert.equal(plan.index.name, 'age');
			const info = await db.partitionInfo('Bonn');
			assert.deepEqual([info.partition, info.doc_count], ['Bonn', bonn.length]);
			const { rows } = await db.partitionedList('Bonn');
			assert.deepEqual(
				rows.map((row) => row.id),
				sortedIds(bonn),
			);
			const wrong = await rejection(db.insert({ _id: 'nowhere' }));
			assert.equal(wrong.statusCode, 400);
		},
		{
			partitioned: true,
			docs: ({ seed }) =>
				people(seed, 200).map((doc) => ({
					...doc,
					_id: `${doc.city ?? 'None'}:${doc._id}`,
				})),
		},
	),
};

export default {
	name: 'queries',
	setup,
	tests,
	teardown: ({ frond }) => frond?.stop(),
};
