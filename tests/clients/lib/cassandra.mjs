/* frond with Cassandra's door, for clients of Cassandra. */
import { freePort, startFrond } from './frond.mjs';

/* → { frond, host, port }; `port` is that of the door. */
export async function startCassandra(ctx, name) {
	const port = await freePort();
	const frond = await startFrond(ctx, name, ['--cql', `127.0.0.1:${port}`]);
	return { frond, host: '127.0.0.1', port };
}
