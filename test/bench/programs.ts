/** Finds programs, also where daemons live and an ordinary user's PATH does not look. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const MORE_FOLDERS = ['/usr/sbin', '/usr/local/sbin', '/sbin'];

/** Absolute path of an executable, or null. */
export function findProgram(name: string): string | null {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== ''), ...MORE_FOLDERS];
  return folders.map((folder) => join(folder, name)).find((path) => isUsable(path, constants.X_OK)) ?? null;
}

/** The first of `paths` that can be read, or null. */
export function findFile(...paths: readonly string[]): string | null {
  return paths.find((path) => isUsable(path, constants.R_OK)) ?? null;
}

function isUsable(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}
