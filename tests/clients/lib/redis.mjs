/* frond with Redis's door, for clients of Redis. */
import { freePort, startFrond } from './frond.mjs';

/* → { frond, host, port }; `port` is that of the door. */
export async function startRedis(ctx, name) {
	const port = await freePort();
	const frond = await startFrond(ctx, name, ['--redis', `127.0.0.1:${port}`]);
	return { frond, host: '127.0.0.1', port };
}
