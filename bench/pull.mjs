/*
 * PouchDB pulling a database into one of its own in memory; prints how many documents came.
 *
 *     node pull.mjs http://HOST:PORT/DB [CREDENTIALS of HTTP Basic, encoded]
 */
import { createRequire } from 'node:module';
import process from 'node:process';

const [url, auth] = process.argv.slice(2);
const require = createRequire(`${process.env.BENCH_PEERS}/package.json`);
const PouchDB = require('pouchdb');

PouchDB.plugin(require('pouchdb-adapter-memory'));
const fetch = (address, options) => {
	if (auth) options.headers.set('Authorization', `Basic ${auth}`);
	return PouchDB.fetch(address, options);
};
const remote = new PouchDB(url, { fetch, skip_setup: true });
const local = new PouchDB('local', { adapter: 'memory' });
const pulled = await local.replicate.from(remote, { batch_size: 1000 });

console.log(pulled.docs_written);
process.exit(pulled.ok ? 0 : 1);
