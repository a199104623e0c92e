/** The policy and servers that the plain HTTP clients share. */
import type { TestCertificate } from '../../kit/certificates.ts';
import { send, startServer } from './https-server.ts';

/** Reads below /open of one https and one http host; nothing may delete. */
export const webPolicy = `
version: 1
name: web
rules:
  - name: read-open
    effect: allow
    hosts: [api.acme.test]
    methods: [GET]
    paths: ["/open/**"]
  - name: read-plain
    effect: allow
    scheme: http
    hosts: [plain.acme.test]
    methods: [GET]
    paths: ["/open/**"]
  - name: nothing-secret
    effect: deny
    hosts: ["**"]
    paths: ["/secret/**"]
    reason: Nobody reads the secrets.
`;

const answer = (request: { url?: string | undefined }, response: Parameters<typeof send>[0]): void =>
  send(response, 'text/plain', `you asked for ${request.url}\n`);

/** Servers for {@link webPolicy}. */
export const webServers = {
  'api.acme.test': (certificate: TestCertificate) => startServer(certificate, answer),
  'plain.acme.test': () => startServer(null, answer),
};

/** What the gateway's refusal of /secret looks like; `requestId` differs. */
export interface RefusalBody {
  readonly error: {
    readonly code: string;
    readonly rule: string | null;
    readonly reason: string;
    readonly requestId: string;
  };
}
