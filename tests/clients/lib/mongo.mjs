/* frond with MongoDB's door, for its drivers. */
import fs from 'node:fs';
import path from 'node:path';

import { freePort, startFrond } from './frond.mjs';

/* → { frond, uri }; as the only member of a replica set, so that drivers send writes again. */
export async function startMongo(ctx, name) {
	const port = await freePort();
	const ini = path.join(ctx.tmp, `${name}.ini`);
	fs.writeFileSync(ini, '[mongo]\nreplica_set = frond\n');
	const options = ['--mongo', `127.0.0.1:${port}`, '--mongo-test-commands', '--config', ini];
	const frond = await startFrond(ctx, name, options);
	return { frond, uri: `mongodb://127.0.0.1:${port}/?replicaSet=frond` };
}
