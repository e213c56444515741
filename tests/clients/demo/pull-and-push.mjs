/*
 * What PouchDB does for a living: pulls a database, edits a document, pushes the edit back. It is put
 * together of the parts that this takes, since `pouchdb` brings more.
 *
 *     node pull-and-push.mjs http://127.0.0.1:5984/DB DOCID
 */
import process from 'node:process';
import http from 'pouchdb-adapter-http';
import memory from 'pouchdb-adapter-memory';
import PouchDB from 'pouchdb-core';
import replication from 'pouchdb-replication';

const [url, id] = process.argv.slice(2);
if (!url || !id) {
	console.error('usage: node pull-and-push.mjs DATABASE-URL DOCID');
	process.exit(2);
}

PouchDB.plugin(http).plugin(memory).plugin(replication);
const local = new PouchDB('local', { adapter: 'memory' });
const seconds = (since) => ((performance.now() - since) / 1000).toFixed(1);

let begun = performance.now();
const pulled = await local.replicate
	.from(url, { batch_size: 500 })
	.on('change', (info) => process.stderr.write(`\r${info.docs_written} documents pulled`));
process.stderr.write('\r');
console.log(`${pulled.docs_written} documents pulled in ${seconds(begun)} s`);

const doc = await local.get(id);
const { rev } = await local.put({ ...doc, edited: new Date().toISOString() });
console.log(`${id} edited: ${doc._rev} -> ${rev}`);

begun = performance.now();
const pushed = await local.replicate.to(url);
console.log(`${pushed.docs_written} document pushed in ${seconds(begun)} s`);

const there = await new PouchDB(url).get(id);
console.log(`the server has ${there._rev}`);
process.exit(there._rev === rev ? 0 : 1);
