/** The configuration: what it may say, and how it is read. */
export { configSchema } from './config-shape.ts';
export { resolveHome } from './home.ts';
export {
  type ConfigFlags,
  type ConfigProblem,
  type LoadConfigInput,
  type LoadedConfig,
  loadConfig,
} from './load-config.ts';
export { configProblemCodes } from './shape.ts';
