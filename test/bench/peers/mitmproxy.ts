/** mitmproxy with an addon that does the job: allowlist, injection, JSON log. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startDaemon } from '../daemon.ts';
import { readPem } from '../pki.ts';
import { findProgram } from '../programs.ts';
import { RULES, SECRET } from '../workload.ts';
import { missing, type Peer, type PeerContext, type RunningPeer } from './peer.ts';

const PACKAGES = ['mitmproxy'];

export const mitmproxy: Peer = {
  name: 'mitmproxy',
  title: 'mitmproxy + addon',
  packages: PACKAGES,
  available: () => missing({ mitmdump: findProgram('mitmdump') !== null }, PACKAGES),
  start: startMitmproxy,
};

async function startMitmproxy(dir: string, context: PeerContext): Promise<RunningPeer> {
  const port = await freePort();
  const { interceptCa, originCa } = context.pki;
  const confdir = join(dir, 'conf');
  mkdirSync(confdir);
  writeFileSync(join(confdir, 'mitmproxy-ca.pem'), readPem(interceptCa.key) + readPem(interceptCa.cert), {
    mode: 0o600,
  });
  const rules = RULES.map((rule) => [
    rule.host,
    { name: rule.name, methods: rule.shape.methods, prefix: rule.shape.prefix },
  ]);
  const job = {
    rules: Object.fromEntries(rules),
    secret: SECRET,
    originPort: context.originPort,
    log: join(dir, 'audit.log'),
  };
  writeFileSync(join(dir, 'job.json'), JSON.stringify(job));
  writeFileSync(join(dir, 'addon.py'), ADDON);
  const options = [
    `confdir=${confdir}`,
    `ssl_verify_upstream_trusted_ca=${originCa.cert}`,
    'http2=false',
    'flow_detail=0',
  ];
  const sets = [...options, 'connection_strategy=lazy', 'listen_host=127.0.0.1', `listen_port=${port}`];
  const args = ['-q', ...sets.flatMap((set) => ['--set', set]), '-s', join(dir, 'addon.py')];
  const daemon = await startDaemon(findProgram('mitmdump') ?? 'mitmdump', args, {
    cpu: context.cpu,
    port,
    undo: context.undo,
  });
  const caPem = readPem(interceptCa.cert);
  const access = { kind: 'connect', port, hostPort: 443, caPem, proxyAuthorization: null } as const;
  return { access, ...daemon };
}

/** Names are sent to the origin by address, as the gateway's pinned upstreams are; the certificate is checked by name all the same. */
const ADDON = `import json, os, time
from mitmproxy import http

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "job.json")) as file:
    JOB = json.load(file)
RULES = JOB["rules"]
for rule in RULES.values():
    rule["methods"] = frozenset(rule["methods"])
AUTHORIZATION = "Bearer " + JOB["secret"]
LOG = open(JOB["log"], "w", buffering=65536)
DENIED = b'{"error":{"code":"policy_denied"}}'


def denied():
    return http.Response.make(403, DENIED, {"Content-Type": "application/json"})


class Egress:
    def http_connect(self, flow):
        if flow.request.host not in RULES or flow.request.port != 443:
            flow.response = denied()

    def server_connect(self, data):
        data.server.address = ("127.0.0.1", JOB["originPort"])

    def request(self, flow):
        request = flow.request
        rule = RULES.get(request.pretty_host)
        path = request.path.split("?", 1)[0]
        if rule is None or request.method not in rule["methods"] or not path.startswith(rule["prefix"]):
            flow.response = denied()
            flow.metadata["rule"] = None
            return
        flow.metadata["rule"] = rule["name"]
        request.headers["Authorization"] = AUTHORIZATION

    def response(self, flow):
        request, response = flow.request, flow.response
        rule = flow.metadata.get("rule")
        LOG.write(json.dumps({
            "time": time.time(), "id": flow.id, "verdict": "allow" if rule else "deny", "rule": rule,
            "src": flow.client_conn.peername[0], "method": request.method, "host": request.pretty_host,
            "path": request.path.split("?", 1)[0], "status": response.status_code,
            "bytes": len(response.raw_content or b""), "upstream": str(flow.server_conn.address),
        }) + "\\n")

    def done(self):
        LOG.close()


addons = [Egress()]
`;
