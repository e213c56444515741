/* Apache's own client for Node.js: databases, documents, listings, feeds, and how each refuses. */
import assert from 'node:assert/strict';
import Nano from 'nano';

import { startFrond } from '../lib/frond.mjs';
import { expectStatus, request } from '../lib/http.mjs';
import { note } from '../lib/tap.mjs';
import { byBytes, chunks, eventually, generation, rejection } from '../lib/util.mjs';

/* Documents that are asked for together, and what that may take: on a busy machine, too. */
const ABSENT_DOCS = 100;
const ABSENT_MS = 1000;

const refusal = async (promise, status, error) => {
	const err = await rejection(promise);
	assert.equal(err.statusCode, status, `${err.statusCode} ${err.message}`);
	if (error) assert.equal(err.error, error);
	return err;
};

/* A database of its own for a test, gone afterwards. */
const withDb = (test) => async (state) => {
	const name = `nano-${++state.databases}-${state.run}`;
	await state.server.db.create(name);
	try {
		await test(state.server.use(name), state, name);
	} finally {
		await state.server.db.destroy(name);
	}
};

async function fill(db, count) {
	const docs = Array.from({ length: count }, (_, i) => ({ _id: `doc-${i}`, n: i }));
	const rows = await db.bulk({ docs });
	return rows.map((row, i) => ({ ...docs[i], _rev: row.rev }));
}

async function setup(ctx) {
	const frond = ctx.url ? undefined : await startFrond(ctx, 'nano');
	const url = ctx.url ?? frond.url;
	return { frond, server: Nano(url), url, databases: 0, run: process.pid, strict: !ctx.url };
}

const tests = {
	'the server introduces itself': async ({ server, url, strict }) => {
		const info = await server.info();
		if (strict) assert.equal(info.couchdb, 'Welcome');
		assert.ok(info.version);
		const { uuids } = await server.uuids(3);
		assert.equal(new Set(uuids).size, 3);
		for (const uuid of uuids) assert.match(uuid, /^[0-9a-f]{32}$/);
		if (strict)
			assert.deepEqual(await expectStatus(200, 'GET', `${url}/_up`), {
				status: 'ok',
				seeds: {},
			});
	},

	'a database is made, listed, described and destroyed': async ({ server, run }) => {
		const name = `nano-life-${run}`;
		assert.equal((await server.db.create(name)).ok, true);
		assert.ok((await server.db.list()).includes(name));
		const info = await server.db.get(name);
		assert.equal(info.db_name, name);
		assert.equal(info.doc_count, 0);
		await refusal(server.db.create(name), 412, 'file_exists');
		assert.equal((await server.db.destroy(name)).ok, true);
		assert.ok(!(await server.db.list()).includes(name));
		await refusal(server.db.get(name), 404, 'not_found');
		await refusal(server.db.destroy(name), 404, 'not_found');
		await refusal(server.use(name).get('x'), 404, 'not_found');
		await refusal(server.use(name).insert({ a: 1 }), 404, 'not_found');
	},

	'a recreated database is empty': async ({ server, run }) => {
		const name = `nano-again-${run}`;
		await server.db.create(name);
		await fill(server.use(name), 20);
		await server.db.destroy(name);
		await server.db.create(name);
		assert.deepEqual((await server.use(name).list()).rows, []);
		assert.deepEqual((await server.use(name).changes()).results, []);
		assert.equal((await server.db.get(name)).doc_count, 0);
		await server.db.destroy(name);
	},

	'a large database that is gone slows nobody down': async ({ server, run }, { docs }) => {
		const [big, small] = [`nano-big-${run}`, `nano-small-${run}`];
		await server.db.create(big);
		for (const some of chunks(docs, 500)) await server.use(big).bulk({ docs: some });
		await server.db.destroy(big);
		await server.db.create(small);
		const ask = Object.fromEntries(
			Array.from({ length: ABSENT_DOCS }, (_, i) => [`absent-${i}`, ['1-a']]),
		);
		const begin = performance.now();
		const missing = await server.request({
			db: small,
			method: 'POST',
			path: '_revs_diff',
			body: ask,
		});
		const took = Math.round(performance.now() - begin);
		assert.equal(Object.keys(missing).length, ABSENT_DOCS);
		await server.db.destroy(small);
		note(`${took} ms to miss ${ABSENT_DOCS} documents`);
		assert.ok(took < ABSENT_MS, `${took} ms to miss ${ABSENT_DOCS} documents`);
	},

	'names with a slash and other signs are one name each': async ({ server, run }) => {
		const name = `nano/a+b(c)$_-${run}`;
		await server.db.create(name);
		const db = server.use(name);
		assert.equal((await server.db.get(name)).db_name, name);
		const ids = [
			'a/b',
			'a b',
			'a+b',
			'a%2Fb',
			'ü',
			'日本',
			'😀',
			'?x=1&y#z',
			'"q"',
			'\\',
			'.',
			'..',
			'a:b',
			'@@iterator',
		];
		for (const id of ids.filter((id) => id !== '.' && id !== '..')) {
			const { rev } = await db.insert({ value: id }, id);
			const doc = await db.get(id);
			assert.deepEqual(doc, { _id: id, _rev: rev, value: id });
		}
		const { rows } = await db.list();
		assert.deepEqual(
			rows.map((row) => row.id),
			ids.filter((id) => id !== '.' && id !== '..').sort(byBytes),
		);
		await server.db.destroy(name);
	},

	'a bad database name is refused': async ({ server }) => {
		for (const name of ['Capital', '1first', 'a?b', '_unknown'])
			await refusal(server.db.create(name), 400, 'illegal_database_name');
	},

	'a document is inserted, read, changed and destroyed': withDb(async (db) => {
		const first = await db.insert(
			{ title: 'one', nested: { list: [1, { two: 2 }, []] } },
			'it',
		);
		assert.equal(first.ok, true);
		assert.equal(generation(first.rev), 1);
		assert.deepEqual(await db.get('it'), {
			_id: 'it',
			_rev: first.rev,
			title: 'one',
			nested: { list: [1, { two: 2 }, []] },
		});
		const head = await db.head('it');
		assert.equal(head.etag, `"${first.rev}"`);
		const second = await db.insert({ _rev: first.rev, title: 'two' }, 'it');
		assert.equal(generation(second.rev), 2);
		assert.deepEqual(await db.get('it'), { _id: 'it', _rev: second.rev, title: 'two' });
		const gone = await db.destroy('it', second.rev);
		assert.equal(generation(gone.rev), 3);
		const err = await refusal(db.get('it'), 404, 'not_found');
		assert.equal(err.reason, 'deleted');
		assert.equal((await refusal(db.get('never'), 404, 'not_found')).reason, 'missing');
		const back = await db.insert({ title: 'back' }, 'it');
		assert.equal(generation(back.rev), 4);
		const info = await db.info();
		assert.equal(info.doc_count, 1);
		assert.equal(info.doc_del_count, 0);
	}),

	'a document without an id gets one': withDb(async (db) => {
		const { id, rev } = await db.insert({ a: 1 });
		assert.match(id, /^[0-9a-f-]{32,36}$/);
		assert.deepEqual(await db.get(id), { _id: id, _rev: rev, a: 1 });
	}),

	'a write that does not name the current revision is a conflict': withDb(async (db) => {
		const first = await db.insert({ n: 1 }, 'it');
		await db.insert({ n: 2, _rev: first.rev }, 'it');
		await refusal(db.insert({ n: 3, _rev: first.rev }, 'it'), 409, 'conflict');
		await refusal(db.insert({ n: 3 }, 'it'), 409, 'conflict');
		await refusal(db.destroy('it', first.rev), 409, 'conflict');
		await refusal(db.insert({ n: 3, _rev: first.rev }, 'absent'), 409, 'conflict');
		assert.equal((await db.get('it')).n, 2);
	}),

	'every kind of JSON value comes back as it went in': withDb(async (db) => {
		const values = {
			'': 'a member without a name',
			null: null,
			true: true,
			false: false,
			integers: [
				0,
				1,
				-1,
				255,
				256,
				-256,
				65536,
				2147483648,
				-2147483649,
				Number.MAX_SAFE_INTEGER,
				Number.MIN_SAFE_INTEGER,
			],
			doubles: [0.1, -0.1, 1.5, 1e-300, 1e300, 5e-324, Number.MAX_VALUE, Math.PI],
			empty: { object: {}, array: [], string: '', deep: [[[]], [{}], {}] },
			text: [
				'a\u0000b',
				'\u007f\u0080',
				'ü',
				'日本語',
				'😀',
				'"\\/\b\f\n\r\t',
				'\u2028',
			],
			long: 'x'.repeat(300000),
			wide: Array.from({ length: 2000 }, (_, i) => i),
			names: {
				'a.b': 1,
				'a/b': 2,
				'a\u0000b': 3,
				0: 4,
				10: 5,
				9: 6,
				_under: 7,
				'😀': 8,
			},
			_inner: undefined,
		};
		delete values._inner;
		let deep = 'bottom';
		for (let i = 0; i < 100; i++) deep = i % 2 ? [deep] : { deep };
		values.deep = deep;
		const { rev } = await db.insert(values, 'all');
		assert.deepEqual(await db.get('all'), { _id: 'all', _rev: rev, ...values });
	}),

	'numbers keep their digits': withDb(async (db, { url, strict }, name) => {
		if (!strict) return;
		const body =
			'{"big":123456789012345678901234567890,"neg":-9223372036854775809,"one":1.0}';
		await expectStatus(201, 'PUT', `${url}/${name}/digits`, body);
		const { text } = await request('GET', `${url}/${name}/digits`);
		assert.match(text, /"big":123456789012345678901234567890[,}]/);
		assert.match(text, /"neg":-9223372036854775809[,}]/);
		assert.match(text, /"one":1\.0[,}]/);
	}),

	'a document over the limit is refused whole': withDb(async (db, { strict }) => {
		if (!strict) return;
		const { rev } = await db.insert({ text: 'x'.repeat(999000) }, 'fits');
		assert.equal((await db.get('fits'))._rev, rev);
		await refusal(
			db.insert({ text: 'x'.repeat(8000001) }, 'not'),
			413,
			'document_too_large',
		);
		await refusal(db.get('not'), 404);
		const rows = await db.bulk({ docs: [{ _id: 'small' }] });
		assert.equal(rows[0].ok, true);
	}),

	'what is no document is refused': withDb(async (db, { url, strict }, name) => {
		await refusal(db.insert({ _unknown: 1 }, 'x'), 400, 'doc_validation');
		const put = (body) => request('PUT', `${url}/${name}/x`, body);
		for (const body of [
			'',
			'{',
			'{"a":}',
			'{"a":1} x',
			'\u0000',
			'{"a":"\ud800"}'.slice(0, 6),
		])
			assert.equal((await put(body)).status, 400, body);
		for (const body of ['[]', '1', 'null', '"text"'])
			assert.equal((await put(body)).status, 400, body);
		if (strict) {
			const typed = await request('POST', `${url}/${name}`, '{}', {
				headers: { 'Content-Type': 'text/plain' },
			});
			assert.equal(typed.status, 415);
		}
		await refusal(db.get('x'), 404);
	}),

	'a bulk write answers for each document': withDb(async (db) => {
		const { rev } = await db.insert({ n: 1 }, 'b');
		const rows = await db.bulk({
			docs: [
				{ _id: 'a', n: 1 },
				{ _id: 'b', n: 2 },
				{ n: 3 },
				{
					_id: 'd',
					_deleted: true,
					_rev: '1-967a00dff5e02add41819138abb3284d',
				},
			],
		});
		assert.equal(rows.length, 4);
		assert.equal(rows[0].id, 'a');
		assert.equal(generation(rows[0].rev), 1);
		assert.deepEqual([rows[1].id, rows[1].error], ['b', 'conflict']);
		assert.ok(rows[2].id && rows[2].rev);
		assert.equal(rows[3].error, 'conflict');
		assert.equal((await db.get('b'))._rev, rev);
		const next = await db.bulk({
			docs: [
				{ _id: 'b', _rev: rev, _deleted: true },
				{ _id: 'a', _rev: rows[0].rev, n: 2 },
			],
		});
		assert.deepEqual(
			next.map((row) => generation(row.rev)),
			[2, 2],
		);
		await refusal(db.get('b'), 404);
		assert.equal((await db.get('a')).n, 2);
	}),

	'the same id twice in a bulk write is a conflict for the second': withDb(async (db) => {
		const rows = await db.bulk({
			docs: [
				{ _id: 'x', n: 1 },
				{ _id: 'x', n: 2 },
			],
		});
		assert.equal(rows.filter((row) => row.rev).length, 1);
		assert.equal(rows.filter((row) => row.error === 'conflict').length, 1);
		assert.equal((await db.get('x'))._rev, rows.find((row) => row.rev).rev);
	}),

	'documents are fetched by their keys': withDb(async (db) => {
		const docs = await fill(db, 5);
		await db.destroy('doc-4', docs[4]._rev);
		const keys = ['doc-3', 'absent', 'doc-0', 'doc-4', 'doc-3'];
		const { rows } = await db.fetch({ keys });
		assert.deepEqual(
			rows.map((row) => row.key),
			keys,
		);
		assert.deepEqual(rows[0].doc, docs[3]);
		assert.equal(rows[1].error, 'not_found');
		assert.deepEqual(rows[2].doc, docs[0]);
		assert.equal(rows[3].value.deleted, true);
		assert.equal(rows[3].doc, null);
		const revs = await db.fetchRevs({ keys: ['doc-1'] });
		assert.equal(revs.rows[0].value.rev, docs[1]._rev);
		assert.equal(revs.rows[0].doc, undefined);
	}),

	'listings honour every parameter': withDb(async (db) => {
		await fill(db, 120);
		const ids = Array.from({ length: 120 }, (_, i) => `doc-${i}`).sort(byBytes);
		const list = async (params) => (await db.list(params)).rows.map((row) => row.id);
		const from = (id) => ids.filter((x) => byBytes(x, id) >= 0);

		assert.deepEqual(await list(), ids);
		assert.deepEqual(await list({ limit: 7 }), ids.slice(0, 7));
		assert.deepEqual(await list({ limit: 0 }), []);
		assert.deepEqual(await list({ limit: 7, skip: 5 }), ids.slice(5, 12));
		assert.deepEqual(await list({ descending: true }), [...ids].reverse());
		assert.deepEqual(await list({ startkey: 'doc-5' }), from('doc-5'));
		assert.deepEqual(
			await list({ startkey: 'doc-5', endkey: 'doc-7' }),
			from('doc-5').filter((x) => byBytes(x, 'doc-7') <= 0),
		);
		assert.deepEqual(
			await list({ startkey: 'doc-5', endkey: 'doc-7', inclusive_end: false }),
			from('doc-5').filter((x) => byBytes(x, 'doc-7') < 0),
		);
		assert.deepEqual(
			await list({ startkey: 'doc-7', endkey: 'doc-5', descending: true }),
			from('doc-5')
				.filter((x) => byBytes(x, 'doc-7') <= 0)
				.reverse(),
		);
		assert.deepEqual(
			await list({ startkey: 'doc-5', limit: 3, skip: 2, descending: true }),
			ids
				.filter((x) => byBytes(x, 'doc-5') <= 0)
				.reverse()
				.slice(2, 5),
		);
		assert.deepEqual(await list({ key: 'doc-77' }), ['doc-77']);
		assert.deepEqual(await list({ key: 'none' }), []);
		const whole = await db.list({ include_docs: true, limit: 2 });
		assert.equal(whole.total_rows, 120);
		for (const row of whole.rows) {
			assert.equal(row.doc._id, row.id);
			assert.equal(row.doc._rev, row.value.rev);
			assert.equal(`doc-${row.doc.n}`, row.id);
		}
	}),

	'the feed has one row for each document, at its last change': withDb(
		async (db, { strict }) => {
			const docs = await fill(db, 10);
			await db.insert({ ...docs[2], n: 'changed' }, 'doc-2');
			const gone = await db.destroy('doc-5', docs[5]._rev);
			const { results, last_seq } = await db.changes();
			assert.equal(results.length, 10);
			assert.deepEqual(
				results.slice(-2).map((row) => row.id),
				['doc-2', 'doc-5'],
			);
			assert.equal(results.at(-1).deleted, true);
			assert.deepEqual(results.at(-1).changes, [{ rev: gone.rev }]);
			assert.deepEqual(results.at(-1).seq, last_seq);
			if (strict) {
				const seqs = results.map((row) => row.seq);
				assert.deepEqual(seqs, [...seqs].sort());
				for (const seq of seqs) assert.match(seq, /^[0-9a-f]{26}$/);
			}
			const since = await db.changes({ since: results[3].seq });
			assert.deepEqual(since.results, results.slice(4));
			const some = await db.changes({ since: results[3].seq, limit: 2 });
			assert.deepEqual(some.results, results.slice(4, 6));
			assert.equal(some.last_seq, results[5].seq);
			const end = await db.changes({ since: last_seq });
			assert.deepEqual([end.results, end.last_seq], [[], last_seq]);
			const now = await db.changes({ since: 'now' });
			assert.deepEqual(now.results, []);
			const bodies = await db.changes({ include_docs: true });
			assert.equal(
				bodies.results.find((row) => row.id === 'doc-2').doc.n,
				'changed',
			);
			assert.equal(bodies.results.at(-1).doc._deleted, true);
			const back = await db.changes({ descending: true });
			assert.deepEqual(back.results, [...results].reverse());
		},
	),

	'a changes reader gets what is there and what comes': withDb(async (db) => {
		await fill(db, 30);
		const seen = [];
		const reader = db.changesReader.start({
			since: '0',
			batchSize: 10,
			wait: false,
			fastChanges: true,
			timeout: 5000,
			includeDocs: true,
		});
		reader.on('change', (change) => seen.push(change));
		const failed = new Promise((_, reject) => reader.on('error', reject));
		await Promise.race([failed, eventually(() => seen.length === 30)]);
		await db.insert({ n: 'new' }, 'late');
		await Promise.race([failed, eventually(() => seen.length === 31)]);
		db.changesReader.stop();
		assert.equal(seen.at(-1).id, 'late');
		assert.equal(seen.at(-1).doc.n, 'new');
	}),

	'a changes reader ends when it is to read what is there': withDb(async (db) => {
		await fill(db, 55);
		const seen = [];
		await new Promise((resolve, reject) => {
			db.changesReader
				.get({ since: '0', batchSize: 20, timeout: 500 })
				.on('batch', (batch) =>
					seen.push(...batch.map((change) => change.id)),
				)
				.on('end', resolve)
				.on('error', reject);
		});
		assert.equal(seen.length, 55);
		assert.equal(new Set(seen).size, 55);
	}),

	'a long poll waits for a change and a timeout ends it': withDb(async (db) => {
		const { last_seq } = await db.insert({ n: 1 }, 'x').then(() => db.changes());
		const waiting = db.changes({ feed: 'longpoll', since: last_seq, timeout: 20000 });
		const { rev } = await db.insert({ n: 1 }, 'y');
		const { results } = await waiting;
		assert.deepEqual(
			results.map((row) => [row.id, row.changes]),
			[['y', [{ rev }]]],
		);
		const begin = performance.now();
		const none = await db.changes({
			feed: 'longpoll',
			since: results[0].seq,
			timeout: 300,
		});
		assert.deepEqual(none.results, []);
		assert.ok(performance.now() - begin >= 250);
	}),

	'the history of revisions is told': withDb(async (db) => {
		const revs = [];
		for (let i = 0; i < 4; i++)
			revs.unshift(
				(await db.insert({ i, ...(i ? { _rev: revs[0] } : {}) }, 'it')).rev,
			);
		const info = await db.get('it', { revs_info: true });
		assert.deepEqual(
			info._revs_info.map((entry) => entry.rev),
			revs,
		);
		assert.equal(info._revs_info[0].status, 'available');
		const { _revisions } = await db.get('it', { revs: true });
		assert.equal(_revisions.start, 4);
		assert.deepEqual(
			_revisions.ids,
			revs.map((rev) => rev.split('-')[1]),
		);
		assert.equal((await db.get('it', { rev: revs[0] })).i, 3);
		await refusal(db.get('it', { rev: '9-00000000000000000000000000000000' }), 404);
	}),

	'branches are kept and the winner is the same everywhere': withDb(async (db) => {
		const branch = (digit, n) => ({
			_id: 'it',
			_rev: `2-${digit.repeat(32)}`,
			n,
			_revisions: { start: 2, ids: [digit.repeat(32), '1'.repeat(32)] },
		});
		for (const doc of [branch('b', 2), branch('a', 1), branch('c', 3)])
			assert.deepEqual(await db.bulk({ new_edits: false, docs: [doc] }), []);
		const rev = (digit) => `2-${digit.repeat(32)}`;
		const doc = await db.get('it', { conflicts: true });
		assert.equal(doc._rev, rev('c'));
		assert.deepEqual([...doc._conflicts].sort(), [rev('a'), rev('b')]);
		assert.equal((await db.get('it', { rev: rev('a') })).n, 1);
		const open = await db.get('it', {
			open_revs: JSON.stringify([rev('a'), rev('9')]),
		});
		assert.deepEqual(
			open.map((entry) => entry.ok?._rev ?? entry.missing),
			[rev('a'), rev('9')],
		);
		const all = await db.get('it', { open_revs: 'all' });
		assert.deepEqual(all.map((entry) => entry.ok._rev).sort(), [
			rev('a'),
			rev('b'),
			rev('c'),
		]);
		const row = (await db.changes({ style: 'all_docs' })).results[0];
		assert.deepEqual(row.changes.map((change) => change.rev).sort(), [
			rev('a'),
			rev('b'),
			rev('c'),
		]);
		await db.destroy('it', rev('c'));
		assert.equal((await db.get('it'))._rev, rev('b'));
		assert.equal((await db.changes()).results[0].deleted, undefined);
		await db.destroy('it', rev('a'));
		assert.equal((await db.get('it'))._rev, rev('b'));
		await db.destroy('it', rev('b'));
		await refusal(db.get('it'), 404);
		assert.equal((await db.changes()).results[0].deleted, true);
	}),

	'missing revisions are told apart from known ones': withDb(async (db, { server }, name) => {
		const { rev } = await db.insert({ n: 1 }, 'it');
		const ask = { it: [rev, '3-00000000000000000000000000000001'], known: ['1-a'] };
		const diff = await server.request({
			db: name,
			method: 'POST',
			path: '_revs_diff',
			body: ask,
		});
		assert.deepEqual(diff.it.missing, ['3-00000000000000000000000000000001']);
		assert.deepEqual(diff.it.possible_ancestors, [rev]);
		assert.deepEqual(diff.known, { missing: ['1-a'] });
		assert.deepEqual(
			await server.request({
				db: name,
				method: 'POST',
				path: '_revs_diff',
				body: { it: [rev] },
			}),
			{},
		);
	}),

	'local documents stay out of listings and feeds': withDb(async (db, { server }, name) => {
		const local = (method, body, qs) =>
			server.request({ db: name, method, path: '_local/mark', body, qs });
		await refusal(local('GET'), 404, 'not_found');
		const first = await local('PUT', { a: { deep: [1, 2.5, null] } });
		assert.equal(first.rev, '0-1');
		assert.deepEqual(await local('GET'), {
			_id: '_local/mark',
			_rev: '0-1',
			a: { deep: [1, 2.5, null] },
		});
		const second = await local('PUT', { a: 2, _rev: '0-1' });
		assert.equal(second.rev, '0-2');
		assert.deepEqual((await db.list()).rows, []);
		assert.deepEqual((await db.changes()).results, []);
		await local('DELETE', undefined, { rev: '0-2' });
		await refusal(local('GET'), 404, 'not_found');
	}),

	'design documents are documents': withDb(async (db) => {
		const { rev } = await db.insert({ language: 'query' }, '_design/it');
		assert.deepEqual(await db.get('_design/it'), {
			_id: '_design/it',
			_rev: rev,
			language: 'query',
		});
		await db.insert({}, 'a');
		await db.insert({}, 'Z');
		assert.deepEqual(
			(await db.list()).rows.map((row) => row.id),
			['Z', '_design/it', 'a'],
		);
	}),

	'settings of a database are kept': withDb(async (db, { server, strict }, name) => {
		if (!strict) return;
		const ask = (method, path, body) =>
			server.request({ db: name, method, path, body });
		assert.equal(await ask('GET', '_revs_limit'), 1000);
		await ask('PUT', '_revs_limit', 3);
		assert.equal(await ask('GET', '_revs_limit'), 3);
		let rev;
		for (let i = 0; i < 6; i++)
			({ rev } = await db.insert({ i, ...(rev ? { _rev: rev } : {}) }, 'it'));
		const { _revisions } = await db.get('it', { revs: true });
		assert.deepEqual([_revisions.start, _revisions.ids.length], [6, 3]);
		const security = {
			admins: { names: ['a'], roles: [] },
			members: { names: [], roles: ['r'] },
		};
		await ask('PUT', '_security', security);
		assert.deepEqual(await ask('GET', '_security'), security);
	}),

	'concurrent writers of one document lose no update': withDb(async (db) => {
		const writers = 8,
			rounds = 10;
		await db.insert({ total: 0 }, 'counter');
		let conflicts = 0;
		const writer = async () => {
			for (let i = 0; i < rounds;) {
				const doc = await db.get('counter');
				try {
					await db.insert({ ...doc, total: doc.total + 1 });
					i++;
				} catch (err) {
					assert.equal(err.statusCode, 409, err.message);
					conflicts++;
				}
			}
		};
		await Promise.all(Array.from({ length: writers }, writer));
		const doc = await db.get('counter');
		assert.equal(doc.total, writers * rounds);
		assert.equal(generation(doc._rev), writers * rounds + 1);
		assert.ok(conflicts > 0, 'nobody met anybody: this showed nothing');
	}),

	'a quiet database reads the same byte for byte': withDb(
		async (db, { url, strict }, name) => {
			await fill(db, 200);
			const read = async (path) =>
				(await request('GET', `${url}/${name}/${path}`)).text;
			for (const path of [
				'_changes?style=all_docs',
				'_all_docs?include_docs=true',
				'doc-7',
			]) {
				if (strict) assert.equal(await read(path), await read(path));
			}
		},
	),
};

export default {
	name: 'nano',
	setup,
	tests,
	teardown: ({ frond }) => frond?.stop(),
};
