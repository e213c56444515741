/*
 * Writers that keep a ledger of what was acknowledged to them, while the server may die at any time;
 * and the check of a server that came back against that ledger.
 *
 * A request without an answer is in doubt: its write may be there or not, as a whole. Everything
 * else must be exactly as acknowledged. Each writer has documents of its own, so that nothing but
 * its own doubt can explain a difference; one counter is everybody's.
 */
import assert from 'node:assert/strict';
import http from 'node:http';
import { isDeepStrictEqual } from 'node:util';

import { expectStatus, request } from './http.mjs';
import { generation, pick, random } from './util.mjs';

const DOCS_PER_WRITER = 40;
const BULK = 8;
const DB = '/crash';
const COUNTER = 'counter';
const PAGE = 500;

/* A body that shows whether it is one version as a whole. */
const bodyOf = (n, ballast) => ({ n, copies: [n, { n, list: [n, [n]] }], ballast });
const isWhole = (doc) => isDeepStrictEqual(doc.copies, bodyOf(doc.n).copies);

class Refused extends Error {}

export class Workload {
	constructor({ url, seed, writers, docs }) {
		this.url = url;
		this.rand = random(seed);
		this.ballast = docs;
		this.next = 1;
		this.docs = new Map(); // id → { rev, n, deleted, doubt: { n, deleted } | undefined }
		this.databases = new Map(); // name → { exists, doubt: true | false | undefined }
		this.writers = Array.from({ length: writers }, (_, w) => ({
			w,
			counted: 0,
			countDoubt: 0,
			local: 0,
			localDoubt: 0,
		}));
		this.maxSeq = '';
		this.acknowledged = 0;
		this.inDoubt = 0;
	}

	async create() {
		await expectStatus(201, 'PUT', this.url + DB);
		await expectStatus(201, 'PUT', `${this.url}${DB}/${COUNTER}`, { counts: {} });
	}

	/* Writes until the server goes away or stop() is called. → the first wrong answer, if any */
	async run() {
		this.stopped = false;
		const results = await Promise.allSettled(
			this.writers.map((writer) => this.#write(writer)),
		);
		const failure = results.find((result) => result.status === 'rejected');
		if (failure) throw failure.reason;
	}

	stop() {
		this.stopped = true;
	}

	async #write(writer) {
		const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
		const ask = (method, path, body) =>
			request(method, `${this.url}${path}`, body, { agent, timeoutMs: 60000 });
		try {
			while (!this.stopped) await this.#step(writer, ask);
		} catch (err) {
			if (err instanceof Refused || err instanceof assert.AssertionError)
				throw err;
			// the server is gone, and what was under way stays in doubt
		} finally {
			agent.destroy();
		}
	}

	#step(writer, ask) {
		const dice = this.rand();
		if (dice < 0.55) return this.#put(writer, ask);
		if (dice < 0.65) return this.#remove(writer, ask);
		if (dice < 0.8) return this.#bulk(writer, ask);
		if (dice < 0.9) return this.#count(writer, ask);
		if (dice < 0.95) return this.#local(writer, ask);
		if (dice < 0.97) return this.#database(writer, ask);
		return this.#see(ask);
	}

	#idOf(writer) {
		return `w${writer.w}-${Math.floor(this.rand() * DOCS_PER_WRITER)}`;
	}

	#entry(id) {
		if (!this.docs.has(id))
			this.docs.set(id, {
				rev: undefined,
				n: undefined,
				deleted: true,
				doubt: undefined,
			});
		return this.docs.get(id);
	}

	#settle(entry, rev) {
		Object.assign(entry, entry.doubt, { rev, doubt: undefined });
		this.acknowledged++;
	}

	#body(entry, n) {
		return {
			...bodyOf(n, pick(this.rand, this.ballast)),
			...(entry.deleted ? {} : { _rev: entry.rev }),
		};
	}

	async #put(writer, ask) {
		const id = this.#idOf(writer),
			entry = this.#entry(id),
			n = this.next++;
		entry.doubt = { n, deleted: false };
		const answer = await ask('PUT', `${DB}/${id}`, this.#body(entry, n));
		if (answer.status !== 201)
			throw new Refused(`PUT ${id}: ${answer.status} ${answer.text}`);
		this.#settle(entry, answer.json.rev);
	}

	async #remove(writer, ask) {
		const id = this.#idOf(writer),
			entry = this.#entry(id);
		if (entry.deleted) return;
		entry.doubt = { n: undefined, deleted: true };
		const answer = await ask('DELETE', `${DB}/${id}?rev=${entry.rev}`);
		if (answer.status !== 200)
			throw new Refused(`DELETE ${id}: ${answer.status} ${answer.text}`);
		this.#settle(entry, answer.json.rev);
	}

	async #bulk(writer, ask) {
		const ids = [...new Set(Array.from({ length: BULK }, () => this.#idOf(writer)))];
		const docs = ids.map((id) => {
			const entry = this.#entry(id),
				n = this.next++;
			entry.doubt = { n, deleted: false };
			return { _id: id, ...this.#body(entry, n) };
		});
		const answer = await ask('POST', `${DB}/_bulk_docs`, { docs });
		if (answer.status !== 201)
			throw new Refused(`_bulk_docs: ${answer.status} ${answer.text}`);
		answer.json.forEach((row, i) => {
			if (row.id !== ids[i] || !row.rev)
				throw new Refused(
					`_bulk_docs: ${JSON.stringify(row)} for ${ids[i]}`,
				);
			this.#settle(this.#entry(row.id), row.rev);
		});
	}

	/* Reads, adds one to its own count, writes; somebody else's write between is a conflict. */
	async #count(writer, ask) {
		const { json: doc } = await ask('GET', `${DB}/${COUNTER}`);
		const count = (doc.counts[writer.w] ?? 0) + 1;
		writer.countDoubt = 1;
		const answer = await ask('PUT', `${DB}/${COUNTER}`, {
			...doc,
			counts: { ...doc.counts, [writer.w]: count },
		});
		writer.countDoubt = 0;
		if (answer.status === 201) {
			assert.equal(count, writer.counted + 1, 'an increment was lost');
			writer.counted = count;
			this.acknowledged++;
		} else if (answer.status !== 409) {
			throw new Refused(`PUT ${COUNTER}: ${answer.status} ${answer.text}`);
		}
	}

	async #local(writer, ask) {
		const n = writer.local + 1;
		writer.localDoubt = 1;
		const answer = await ask('PUT', `${DB}/_local/w${writer.w}`, {
			n,
			...(n > 1 ? { _rev: `0-${n - 1}` } : {}),
		});
		if (answer.status !== 201)
			throw new Refused(`PUT _local: ${answer.status} ${answer.text}`);
		assert.equal(answer.json.rev, `0-${n}`);
		writer.local = n;
		writer.localDoubt = 0;
		this.acknowledged++;
	}

	async #database(writer, ask) {
		const name = `crash-w${writer.w}-${Math.floor(this.rand() * 3)}`;
		if (!this.databases.has(name))
			this.databases.set(name, { exists: false, doubt: undefined });
		const entry = this.databases.get(name);
		entry.doubt = !entry.exists;
		const answer = await ask(entry.exists ? 'DELETE' : 'PUT', `/${name}`);
		if (answer.status !== 201 && answer.status !== 200)
			throw new Refused(`${name}: ${answer.status} ${answer.text}`);
		entry.exists = entry.doubt;
		entry.doubt = undefined;
		this.acknowledged++;
	}

	async #see(ask) {
		const { json } = await ask('GET', DB);
		this.sawSeq(json.update_seq);
	}

	sawSeq(seq) {
		if (seq > this.maxSeq) this.maxSeq = seq;
	}
	/*
	 * Compares a server that came back with the ledger, settles what was in doubt, and checks the
	 * database against itself.
	 */
	async verify() {
		const state = await readAll(`${this.url}${DB}`);
		assertConsistent(state);
		assert.ok(
			state.info.update_seq >= this.maxSeq,
			`update_seq went back: ${this.maxSeq}, then ${state.info.update_seq}`,
		);
		this.sawSeq(state.info.update_seq);
		for (const [id, entry] of this.docs) this.#verifyDoc(id, entry, state);
		const known = new Set([COUNTER, ...this.docs.keys()]);
		for (const id of state.changes.keys())
			assert.ok(known.has(id), `${id} was never written`);
		await this.#verifyRest(state);
		return state;
	}

	#verifyDoc(id, entry, { changes, docs }) {
		const row = changes.get(id),
			doc = docs.get(id);
		const had = JSON.stringify(entry);
		if (!row) {
			assert.equal(entry.rev, undefined, `${id} is gone: ${had}`);
			this.inDoubt += entry.doubt ? 1 : 0;
			entry.doubt = undefined;
			return;
		}
		const now = { rev: row.changes[0].rev, n: doc?.n, deleted: !doc };
		if (doc)
			assert.ok(isWhole(doc), `${id} is part of one version and part of another`);
		if (now.rev !== entry.rev) {
			assert.ok(
				entry.doubt,
				`${id} changed by itself: ${had}, now ${JSON.stringify(now)}`,
			);
			assert.equal(generation(now.rev), generation(entry.rev ?? '0') + 1, had);
			assert.deepEqual({ n: now.n, deleted: now.deleted }, entry.doubt, id);
		} else {
			assert.deepEqual([now.n, now.deleted], [entry.n, entry.deleted], id);
		}
		this.inDoubt += entry.doubt ? 1 : 0;
		Object.assign(entry, now, { doubt: undefined });
	}

	/* The counter, local documents and databases. */
	async #verifyRest({ docs }) {
		const counter = docs.get(COUNTER);
		const names = await expectStatus(200, 'GET', `${this.url}/_all_dbs`);
		let total = 0;

		for (const writer of this.writers) {
			const count = counter.counts[writer.w] ?? 0;
			assert.ok(
				count === writer.counted ||
					count === writer.counted + writer.countDoubt,
				`writer ${writer.w} counted ${writer.counted}, the counter says ${count}`,
			);
			total += count;
			writer.counted = count;
			writer.countDoubt = 0;

			const { status, json } = await request(
				'GET',
				`${this.url}${DB}/_local/w${writer.w}`,
			);
			const n = status === 200 ? json.n : 0;
			assert.ok(
				n === writer.local || n === writer.local + writer.localDoubt,
				`_local/w${writer.w}: acknowledged ${writer.local}, is ${n}`,
			);
			writer.local = n;
			writer.localDoubt = 0;
		}
		assert.equal(
			generation(counter._rev),
			total + 1,
			'an edit of the counter is no count',
		);
		for (const [name, entry] of this.databases) {
			const exists = names.includes(name);
			assert.ok(
				exists === entry.exists || exists === entry.doubt,
				`${name}: ${JSON.stringify(entry)}, exists: ${exists}`,
			);
			Object.assign(entry, { exists, doubt: undefined });
		}
	}
}

/* → { info, docs: id → document, changes: id → row }, of a quiet database */
export async function readAll(db) {
	const info = await expectStatus(200, 'GET', db);
	const all = await expectStatus(200, 'GET', `${db}/_all_docs?include_docs=true`);
	const feed = await expectStatus(200, 'GET', `${db}/_changes?style=all_docs`);
	return {
		info,
		all,
		feed,
		docs: new Map(all.rows.map((row) => [row.id, row.doc])),
		changes: new Map(feed.results.map((row) => [row.id, row])),
	};
}

/* Every way to ask a quiet database gives the same answer. */
export function assertConsistent({ info, all, feed, docs, changes }) {
	const seqs = feed.results.map((row) => row.seq);

	assert.deepEqual(seqs, [...seqs].sort(), 'the feed is out of order');
	assert.equal(new Set(seqs).size, seqs.length, 'two changes have one sequence');
	assert.equal(changes.size, feed.results.length, 'a document is in the feed twice');
	assert.equal(docs.size, all.rows.length, 'a document is listed twice');
	if (seqs.length > 0) assert.equal(feed.last_seq, seqs.at(-1));
	assert.equal(info.update_seq, feed.last_seq);
	for (const row of all.rows) {
		assert.equal(row.doc._rev, row.value.rev, row.id);
		assert.equal(changes.get(row.id)?.changes[0].rev, row.value.rev, row.id);
		assert.equal(changes.get(row.id).deleted, undefined, row.id);
	}
	for (const row of feed.results)
		assert.equal(row.deleted === true, !docs.has(row.id), row.id);
	assert.equal(all.total_rows, docs.size);
	assert.equal(info.doc_count, docs.size);
	assert.equal(info.doc_del_count, changes.size - docs.size);
}

/*
 * Follows a database's feed the way a client does that keeps its place: id → revision, and the last
 * sequence seen, whatever happens to the connection.
 */
export class Follower {
	constructor(url) {
		this.url = `${url}${DB}/_changes`;
		this.since = '0';
		this.revs = new Map();
		this.rows = 0;
	}

	/* Until the connection ends. Lines that came whole count, in whatever pieces they came. */
	follow() {
		return new Promise((resolve, reject) => {
			const req = http.get(
				`${this.url}?feed=continuous&heartbeat=1000&since=${this.since}`,
				(res) => {
					let rest = '';
					res.setEncoding('utf8');
					res.on('data', (chunk) => {
						const lines = (rest + chunk).split('\n');
						rest = lines.pop();
						try {
							for (const line of lines.filter(
								(text) => text !== '',
							))
								this.#take(JSON.parse(line));
						} catch (err) {
							reject(err);
						}
					});
					res.on('close', resolve);
				},
			);
			req.on('error', resolve);
			this.cancel = () => req.destroy();
		});
	}

	#take(row) {
		if (!row.id) return; // the last line: where the feed ended
		assert.ok(
			row.seq > this.since,
			`the feed went back: ${this.since}, then ${row.seq}`,
		);
		this.since = row.seq;
		this.revs.set(row.id, row.changes[0].rev);
		this.rows++;
	}

	/* Reads on from where it was, and compares what it knows with what there is. */
	async verify({ changes }) {
		const { results } = await expectStatus(
			200,
			'GET',
			`${this.url}?since=${this.since}`,
		);
		for (const row of results) this.#take(row);
		assert.equal(this.revs.size, changes.size);
		for (const [id, row] of changes)
			assert.equal(
				this.revs.get(id),
				row.changes[0].rev,
				`the feed left out a change of ${id}`,
			);
	}
}
