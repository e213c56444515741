/*
 * The page at /_frond/: what the server does, and what is in it. It asks the endpoints below
 * /_frond and some of CouchDB's, and shows what they answer.
 */
'use strict';

const AGAIN_MS = 2000;
const METRICS = '/_node/_local/_prometheus';
const ITSELF = '/_frond/operations'; // what this page asks

const byId = (id) => document.getElementById(id);

/* An element with its children: texts are texts, whatever they have in them. */
function make(tag, options = {}, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(options)) {
		if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
		else element.setAttribute(name, value);
	}
	element.append(...children);
	return element;
}

function table(caption, heads, rows) {
	return make('table', {},
		make('caption', {}, caption),
		make('thead', {}, make('tr', {}, ...heads.map(([text, kind = '']) => make('th', { class: kind }, text)))),
		make('tbody', {}, ...rows.map((cells) => make('tr', {},
			...cells.map((cell, i) => make('td', { class: heads[i][1] ?? '' }, cell))))));
}

/* ---- Asking ---- */

class Refused extends Error {}

async function ask(path, body) {
	const options = body === undefined ? {} : {
		method: 'POST',
		headers: { 'Content-Type': 'application/json' },
		body: JSON.stringify(body),
	};
	const answer = await fetch(path, { credentials: 'same-origin', ...options });
	if (answer.status === 401 || answer.status === 403) throw new Refused(path);
	const text = await answer.text();
	if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
	return answer.headers.get('Content-Type')?.includes('json') ? JSON.parse(text) : text;
}

const parameters = (values) => new URLSearchParams(
	Object.entries(values).filter(([, value]) => value !== undefined && value !== ''));

/* ---- Words and numbers ---- */

function bytesText(n) {
	const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
	let unit = 0;
	for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
	return `${unit ? n.toFixed(1) : n} ${units[unit]}`;
}

function msText(ms) {
	if (ms < 1) return `${Math.round(ms * 1000)} µs`;
	return ms < 1000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

const countText = (n) => n.toLocaleString('en', { maximumFractionDigits: 1 });
const timeText = (ms) => new Date(ms).toISOString().replace('T', ' ').slice(0, 19);

/* ---- Metrics, as Prometheus reads them ---- */

function readMetrics(text) {
	const series = new Map();
	for (const line of text.split('\n')) {
		const found = line.match(/^(\w+(?:\{.*\})?) (\S+)$/);
		if (found) series.set(found[1], Number(found[2]));
	}
	return { at: performance.now(), series };
}

const valueOf = (sample, key) => sample.series.get(key) ?? 0;

/* The sum over the labels of a metric. */
function sumOf(sample, name) {
	let sum = 0;
	for (const [key, value] of sample.series) if (key === name || key.startsWith(`${name}{`)) sum += value;
	return sum;
}

const TIME = 'frond_operation_duration_seconds';

/* What was counted by door and class, since the sample before or, where that has nothing, ever. */
function readTimes(before, now) {
	const times = new Map();
	for (const [key, value] of now.series) {
		const found = key.match(/^frond_operation_duration_seconds_bucket\{door="(\w+)",class="(\w+)",le="(.*)"\}$/);
		if (!found) continue;
		const [, door, name, end] = found;
		const id = `${door} ${name}`;
		if (!times.has(id)) times.set(id, { door, name, buckets: [] });
		times.get(id).buckets.push([end === '+Inf' ? Infinity : Number(end), value - (before ? valueOf(before, key) : 0)]);
	}
	return [...times.values()].map((time) => {
		time.count = time.buckets.at(-1)[1];
		return time;
	}).filter((time) => time.count > 0);
}

/* The end of the bucket in which that share of what was counted is reached. */
function quantile({ buckets, count }, share) {
	const [end] = buckets.find(([, below]) => below >= count * share);
	return Number.isFinite(end) ? end : buckets.at(-2)[0];
}

/* A bar from 10 µs to 10 s, by powers of ten: the median, and behind it the 99th percentile. */
function bar(half, most) {
	const place = (seconds) => Math.min(1, Math.max(0.02, (Math.log10(seconds) + 5) / 6)) * 100;
	const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
	svg.setAttribute('viewBox', '0 0 100 10');
	svg.setAttribute('preserveAspectRatio', 'none');
	for (const [name, width] of [['most', place(most)], ['half', place(half)]]) {
		const rect = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
		rect.setAttribute('class', name);
		rect.setAttribute('height', '10');
		rect.setAttribute('width', width.toFixed(1));
		svg.append(rect);
	}
	return svg;
}

/* ---- Views ---- */

let first; // the first sample of metrics since the page was opened
let last;

function figure(name, value) {
	return make('div', {}, make('b', {}, value), make('span', { class: 'soft' }, name));
}

function timesTable(times, seconds) {
	times.sort((a, b) => b.count - a.count);
	return table('Median (light) and 99th percentile (dark) of how long operations took, from 10 µs to 10 s',
		[['Door'], ['Operation'], ['A second', 'number'], ['Median', 'number'], ['99th', 'number'], ['']],
		times.map((time) => {
			const half = quantile(time, 0.5);
			const most = quantile(time, 0.99);
			return [time.door, time.name, countText(time.count / seconds), msText(half * 1000), msText(most * 1000),
				bar(half, most)];
		}));
}

async function overview() {
	const [up, text, tasks] = await Promise.all([ask('/_up'), ask(METRICS), ask('/_active_tasks')]);
	const now = readMetrics(text);
	const before = last ?? first;
	first ??= now;
	const seconds = before ? (now.at - before.at) / 1000 : 0;
	const rate = (name) => (before ? `${countText((sumOf(now, name) - sumOf(before, name)) / seconds)} a second` : '…');
	last = now;
	const times = readTimes(first === now ? undefined : first, now);
	return [
		make('div', { class: 'figures' },
			figure('version', text.match(/^frond_build_info\{version="(.*?)"/m)?.[1] ?? ''),
			figure('state', up.status),
			figure('connections', countText(sumOf(now, 'frond_net_connections'))),
			figure('commits', rate('frond_kv_commits_total')),
			figure('requests of HTTP', rate('frond_http_requests_total')),
			figure('commands of Redis', rate('frond_redis_commands_total')),
			figure('commands of MongoDB', rate('frond_mongo_commands_total')),
			figure('memory of requests', `${bytesText(valueOf(now, 'frond_memory_requests_bytes'))} of ${
				bytesText(valueOf(now, 'frond_memory_requests_limit_bytes'))}`),
			figure('tables on disk', bytesText(sumOf(now, 'frond_store_tables_bytes'))),
			figure('room on disk', bytesText(sumOf(now, 'frond_store_disk_free_bytes'))),
			figure('wait for the disk', countText(sumOf(now, 'frond_store_commit_queue_length'))),
			figure('slow operations', countText(sumOf(now, 'frond_slow_operations_total')))),
		make('h2', {}, 'Latencies'),
		first === now || !times.length ? make('p', { class: 'soft' }, 'Nothing has been asked since this page was opened.')
			: timesTable(times, (now.at - first.at) / 1000),
		make('h2', {}, 'What is built and copied'),
		tasks.length ? table('', [['Task'], ['Database'], ['Progress', 'number']],
			tasks.map((task) => [task.type, task.database ?? task.doc_id ?? task.source ?? '',
				task.progress === undefined ? '' : `${task.progress} %`]))
			: make('p', { class: 'soft' }, 'Nothing.'),
	];
}

async function running() {
	const { operations, left_out: leftOut } = await ask('operations');
	operations.sort((a, b) => b.ms - a.ms);
	const end = (id) => async (event) => {
		event.target.disabled = true;
		await ask('operations', { end: id }).catch(problem);
		await show();
	};
	return [table(leftOut ? `${leftOut} more are not shown.` : 'Operations of every door, the oldest first',
		[['Door'], ['Operation'], ['On'], ['Person'], ['Client'], ['Runs', 'number'], ['']],
		operations.filter((op) => op.on !== ITSELF).map((op) => [op.door, op.name,
			op.more ? `${op.on}.${op.more}` : op.on, op.user, op.peer, msText(op.ms), make('button', { onclick: end(op.id) }, 'End')]))];
}

async function slow() {
	const { slow: lines } = await ask('slow');
	lines.sort((a, b) => b.time - a.time);
	return [lines.length ? table('Operations that took longer than their door’s setting, the newest first',
		[['Time', 'time'], ['Door'], ['Took', 'number'], ['Client'], ['']],
		lines.map((line) => [timeText(line.time), line.door, msText(line.ms), line.peer, line.line]))
		: make('p', { class: 'soft' }, 'No operation has been slow lately.')];
}

const hashOf = (view, values) => `#${view}?${parameters(values)}`;
const linkTo = (view, values, text) => make('a', { href: hashOf(view, values) }, text);

async function databases(values) {
	const { databases: list, next } = await ask(`databases?${parameters(values)}`);
	const rows = list.map((db) => [linkTo('leaves', { db: db.name }, db.name), db.kind, timeText(db.created),
		bytesText(db.bytes)]);
	return [
		rows.length ? table('Databases of every kind', [['Name'], ['Kind'], ['Created', 'time'], ['Takes', 'number']], rows)
			: make('p', { class: 'soft' }, 'There is no database yet.'),
		...(next ? [make('p', {}, linkTo('databases', { after: next }, 'More'))] : []),
	];
}

/* Where the key of a pair ends: at the first " = " or " -> " outside of quotes and parentheses. */
function cutPair(text) {
	let depth = 0;
	let quote = '';
	for (let i = 0; i < text.length; i++) {
		const c = text[i];
		if (quote) {
			if (c === '\\') i++;
			else if (c === quote) quote = '';
		} else if (c === '"' || c === "'") {
			quote = c;
		} else if (c === '(' || c === '[') {
			depth++;
		} else if (c === ')' || c === ']') {
			depth--;
		} else if (depth === 0) {
			for (const between of [' = ', ' -> ']) {
				if (text.startsWith(between, i)) return [text.slice(0, i), text.slice(i + between.length)];
			}
		}
	}
	return [text, ''];
}

/* The time that a key ends in, where the kind of the database keeps one. */
function cutTime(key) {
	const found = key.match(/^(.*), (\d{4}-\d\d-\d\dT[\d:.]+Z)$/s);
	return found ? [found[1], found[2]] : [key, ''];
}

function leavesForm(values) {
	const field = (name, size) => make('input', { name, value: values[name] ?? '', size });
	return make('form', {
		onsubmit(event) {
			event.preventDefault();
			const { db, id } = Object.fromEntries(new FormData(event.target));
			location.hash = hashOf('leaves', { db, id });
		},
	}, make('label', {}, 'Database ', field('db', 30)), make('label', {}, 'Document ', field('id', 30)),
	make('button', {}, 'Show'));
}

async function leaves(values) {
	const answer = await ask(`leaves?${parameters(values)}`);
	const rows = answer.pairs.map((pair) => {
		const [whole, value] = cutPair(pair.text);
		const [key, time] = cutTime(whole);
		return [pair.space, key, time, value, String(pair.key_bytes + pair.value_bytes)];
	});
	let space;
	const printed = answer.pairs.map((pair) => {
		const heading = pair.space === space ? '' : `${space === undefined ? '' : '\n'}${pair.space}\n`;
		space = pair.space;
		return `${heading}  ${pair.text}\n`;
	});
	return [
		leavesForm(values),
		make('p', { class: 'soft' }, `${values.db}${values.id ? ` / ${values.id}` : ''}: ${answer.summary}`),
		make('div', { class: 'leaves' },
			table('Pairs of the store', [['Part', 'part'], ['Key', 'key'], ['Time', 'time'], ['Value', 'value'],
				['Bytes', 'number']], rows),
			make('div', {}, make('p', { class: 'soft' }, 'As frond inspect prints them'),
				make('pre', {}, ...printed))),
		...(answer.next ? [make('p', {}, linkTo('leaves', { ...values, after: answer.next }, 'More'))] : []),
	];
}

async function people() {
	const [list, admins] = await Promise.all([
		ask('/_users/_all_docs?include_docs=true&startkey="org.couchdb.user:"&limit=1000')
			.catch((error) => (error instanceof Refused ? Promise.reject(error) : { rows: [] })),
		ask('/_node/_local/_config/admins'),
	]);
	const rows = [...Object.keys(admins).map((name) => [name, 'administrator of the configuration']),
		...list.rows.map(({ doc }) => [doc.name, (doc.roles ?? []).join(', ')])];
	return [table('Who may log in, at every door', [['Name'], ['Roles']], rows)];
}

const views = { overview, running, slow, databases, leaves, people };
const LIVE = ['overview', 'running'];

/* ---- Showing ---- */

let shown = 0; // which call of show() may still draw

function problem(error) {
	byId('problem').textContent = error ? error.message : '';
}

async function show() {
	const turn = ++shown;
	const [name, query] = location.hash.slice(1).split('?');
	const view = views[name] ? name : 'overview';
	for (const link of document.querySelectorAll('nav a')) {
		link.className = link.hash === `#${view}` ? 'here' : '';
	}
	try {
		const parts = await views[view](Object.fromEntries(new URLSearchParams(query)));
		if (turn !== shown) return;
		byId('main').replaceChildren(...parts);
		byId('login').hidden = true;
		problem();
		if (LIVE.includes(view)) setTimeout(() => turn === shown && show(), AGAIN_MS);
	} catch (error) {
		if (turn !== shown) return;
		byId('main').replaceChildren();
		byId('login').hidden = !(error instanceof Refused);
		problem(error instanceof Refused ? undefined : error);
	}
	await tellWho();
}

async function tellWho() {
	const { userCtx } = await ask('/_session').catch(() => ({ userCtx: {} }));
	const leave = async () => {
		await fetch('/_session', { method: 'DELETE', credentials: 'same-origin' });
		await show();
	};
	byId('who').replaceChildren(...(userCtx?.name
		? [`${userCtx.name} `, make('button', { onclick: leave }, 'Log out')] : []));
}

byId('login').addEventListener('submit', async (event) => {
	event.preventDefault();
	try {
		await ask('/_session', { name: byId('name').value, password: byId('password').value });
		byId('password').value = '';
		await show();
	} catch (error) {
		problem(error instanceof Refused ? new Error('Name or password is wrong.') : error);
	}
});
window.addEventListener('hashchange', show);
show();
