/** The audit log: written by one process, followed and verified by anybody with read access. */
export { AuditLog, type AuditLogOptions, type AuditStatus } from './log.ts';
export type { StoredRecord } from './record-line.ts';
export { auditRecordSchema } from './schema.ts';
export { type AuditSigner, createAuditSigner, generateAuditKey } from './signer.ts';
export { type TailOptions, tailAudit } from './tail.ts';
export { createUlid, isUlid } from './ulid.ts';
export {
  type AuditGap,
  type FirstBad,
  parseHead,
  type VerifyOptions,
  type VerifyReport,
  verifyAudit,
} from './verify.ts';
