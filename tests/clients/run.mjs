/*
 * Runs frond as a black box, with the clients that people use it with.
 *
 *     node run.mjs [--full] [--seed N] [--url URL] [SUITE...]
 *
 * The binary is $FROND, by default ../../build/frond. --full takes every document of the data set
 * instead of a few thousand. --seed repeats a run of the crash tests. --url runs the suites that
 * need no process of their own against a server that is there already, such as CouchDB.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { documents, measure, sample } from './demo/data.mjs';
import { note, runSuites } from './lib/tap.mjs';
import nano from './suites/nano.mjs';
import revisions from './suites/revisions.mjs';
import feeds from './suites/feeds.mjs';
import pouch from './suites/pouch.mjs';
import attachments from './suites/attachments.mjs';
import couchbackup from './suites/couchbackup.mjs';
import garbage from './suites/garbage.mjs';
import crash from './suites/crash.mjs';
import queries from './suites/queries.mjs';
import replicator from './suites/replicator.mjs';
import browser from './suites/browser.mjs';
import fauxton from './suites/fauxton.mjs';
import operator from './suites/operator.mjs';
import walk from './suites/walk.mjs';
import guides from './suites/guides.mjs';
import ioredis from './suites/ioredis.mjs';
import nodeRedis from './suites/node-redis.mjs';
import bullmq from './suites/bullmq.mjs';
import cassandraDriver from './suites/cassandra-driver.mjs';
import mongodb from './suites/mongodb.mjs';
import mongoose from './suites/mongoose.mjs';

const SUITES = [nano, revisions, feeds, pouch, attachments, couchbackup, garbage, crash, replicator, queries, browser, fauxton, operator, walk, guides, ioredis, nodeRedis, bullmq, mongodb, mongoose, cassandraDriver];
const SAMPLE_DOCUMENTS = 2000;

const here = path.dirname(fileURLToPath(import.meta.url));
const { values: options, positionals } = parseArgs({
	allowPositionals: true,
	options: {
		full: { type: 'boolean', default: false },
		seed: { type: 'string', default: String(Date.now() % 1000000) },
		url: { type: 'string' },
	},
});
const unknown = positionals.filter((name) => !SUITES.some((suite) => suite.name === name));
if (unknown.length > 0) {
	console.error(`no suite ${unknown}; there are: ${SUITES.map((suite) => suite.name)}`);
	process.exit(2);
}

const all = [...documents()];
const ctx = {
	frond: path.resolve(process.env.FROND ?? path.join(here, '../../build/frond')),
	full: options.full,
	seed: Number(options.seed),
	url: options.url?.replace(/\/$/, ''),
	docs: options.full ? all : sample(all, SAMPLE_DOCUMENTS),
	tmp: fs.mkdtempSync(path.join(os.tmpdir(), 'frond-clients-')),
};
process.env.TMPDIR = ctx.tmp; // some clients leave files where the system keeps such
process.on('exit', () => fs.rmSync(ctx.tmp, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1)); // runs what is to run at an exit

const suites = SUITES.filter(
	(suite) => positionals.length === 0 || positionals.includes(suite.name),
).filter((suite) => !ctx.url || !suite.ownsServer);
note(`seed ${ctx.seed}, node ${process.version}, ${ctx.url ?? ctx.frond}`);
note(`data: ${JSON.stringify(measure(ctx.docs))}`);
const failures = await runSuites(suites, ctx);
process.exit(failures > 0 ? 1 : 0);
