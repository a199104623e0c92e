/** Where Sallyport keeps its files when nobody says otherwise. */
import { userInfo } from 'node:os';
import { join, resolve } from 'node:path';

export interface HomeInput {
  readonly flags: { readonly home?: string };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly user?: { readonly isRoot: boolean; readonly home: string };
}

/** `--home`, else `$SALLYPORT_HOME`, else `/var/lib/sallyport` for root and `~/.local/share/sallyport` for others. Absolute. */
export function resolveHome(input: HomeInput): string {
  const named = input.flags.home || input.env.SALLYPORT_HOME;
  if (named) return resolve(named);
  const user = input.user ?? { isRoot: process.getuid?.() === 0, home: input.env.HOME || userInfo().homedir };
  return user.isRoot ? '/var/lib/sallyport' : join(resolve(user.home), '.local/share/sallyport');
}
