/** nginx with Lua as an intercepting egress proxy: TLS ended by SNI, allowlist and injection in Lua, JSON log. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startDaemon } from '../daemon.ts';
import { readPem } from '../pki.ts';
import { findFile, findProgram } from '../programs.ts';
import { RULES, SECRET } from '../workload.ts';
import { missing, type Peer, type PeerContext, type RunningPeer } from './peer.ts';

const PACKAGES = ['nginx', 'libnginx-mod-http-lua'];
const MODULES = ['ndk_http_module.so', 'ngx_http_lua_module.so'];
const MODULE_FOLDERS = ['/usr/lib/nginx/modules', '/usr/lib64/nginx/modules'];

/** Upstream connections pooled: one static upstream block with keep-alive. */
export const nginxLua: Peer = nginxPeer('nginx-lua', 'nginx + Lua, pooled upstream', true);

/** `proxy_pass` with a variable and no upstream block: neither keep-alive nor session reuse upstream. */
export const nginxLuaUnpooled: Peer = nginxPeer('nginx-lua-unpooled', 'nginx + Lua, no upstream keep-alive', false);

function nginxPeer(name: string, title: string, isPooled: boolean): Peer {
  return {
    name,
    title,
    packages: PACKAGES,
    available: () =>
      missing(
        { nginx: findProgram('nginx') !== null, 'lua module': MODULES.every((file) => modulePath(file) !== null) },
        PACKAGES,
      ),
    start: (dir, context) => startNginx(dir, context, isPooled),
  };
}

async function startNginx(dir: string, context: PeerContext, isPooled: boolean): Promise<RunningPeer> {
  const port = await freePort();
  writeFileSync(join(dir, 'allow.lua'), allowlist());
  writeFileSync(join(dir, 'nginx.conf'), configuration(dir, port, context, isPooled));
  const args = ['-p', dir, '-c', join(dir, 'nginx.conf'), '-e', 'stderr'];
  const daemon = await startDaemon(findProgram('nginx') ?? 'nginx', args, {
    cpu: context.cpu,
    port,
    undo: context.undo,
  });
  const caPem = readPem(context.pki.interceptCa.cert);
  return { access: { kind: 'sni', port, hostPort: 443, caPem }, ...daemon };
}

/** A Lua table from host to its rule; the header value is built once, here. */
function allowlist(): string {
  const rows = RULES.map((rule) => {
    const methods = rule.shape.methods.map((method) => `${method}=true`).join(',');
    return `["${rule.host}"]={name="${rule.name}",methods={${methods}},prefix="${rule.shape.prefix}",authorization="Bearer ${SECRET}"}`;
  });
  return `return {\n${rows.join(',\n')}\n}\n`;
}

/** Decides as early as nginx lets Lua: exact host, method, path prefix of the normalised URI; SNI and Host must agree. */
const ACCESS_LUA = `
      local var = ngx.var
      local host = var.host
      if var.ssl_server_name ~= host then
        var.bench_verdict = "deny"
        ngx.status = 421
        ngx.header["Content-Type"] = "application/json"
        ngx.print('{"error":{"code":"misdirected"}}')
        return ngx.exit(421)
      end
      local rule = allow[host]
      local prefix = rule and rule.prefix
      if not rule or not rule.methods[ngx.req.get_method()] or string.sub(var.uri, 1, #prefix) ~= prefix then
        var.bench_verdict = "deny"
        ngx.status = 403
        ngx.header["Content-Type"] = "application/json"
        ngx.print('{"error":{"code":"policy_denied"}}')
        return ngx.exit(403)
      end
      var.bench_verdict = "allow"
      var.bench_rule = rule.name
      var.bench_authorization = rule.authorization`;

function configuration(dir: string, port: number, context: PeerContext, isPooled: boolean): string {
  const { pki, originPort } = context;
  const modules = MODULES.map((file) => `load_module ${modulePath(file)};`).join('\n');
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${dir}/t-${kind};`,
  );
  const upstream = `upstream origin {
    server 127.0.0.1:${originPort};
    keepalive 128;
    keepalive_requests 1000000000;
    keepalive_time 1d;
    keepalive_timeout 1h;
  }`;
  const pass = isPooled
    ? 'proxy_pass https://origin; proxy_set_header Connection "";'
    : `set $bench_target 127.0.0.1:${originPort}; proxy_pass https://$bench_target;`;
  return `${process.geteuid?.() === 0 ? 'user www-data;' : ''}
${modules}
daemon off;
worker_processes 1;
pid ${dir}/nginx.pid;
error_log stderr error;
events { worker_connections 4096; }
http {
  ${temp.join(' ')}
  lua_package_path "${dir}/?.lua;;";
  init_by_lua_block { allow = dofile("${dir}/allow.lua") }
  log_format audit escape=json '{"time":"$time_iso8601","id":"$request_id","verdict":"$bench_verdict","rule":"$bench_rule",'
    '"src":"$remote_addr:$remote_port","method":"$request_method","host":"$host","path":"$uri","status":$status,'
    '"bytes":$body_bytes_sent,"seconds":$request_time,"upstream":"$upstream_addr"}';
  access_log ${dir}/access.log audit buffer=64k flush=1s;
  ${isPooled ? upstream : ''}
  server {
    listen 127.0.0.1:${port} ssl backlog=1024;
    ssl_certificate ${pki.interceptLeaf.cert};
    ssl_certificate_key ${pki.interceptLeaf.key};
    ssl_protocols TLSv1.2 TLSv1.3;
    keepalive_requests 1000000000;
    keepalive_time 1d;
    keepalive_timeout 1h;
    location / {
      set $bench_verdict ""; set $bench_rule ""; set $bench_authorization "";
      access_by_lua_block {${ACCESS_LUA}
      }
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header Authorization $bench_authorization;
      proxy_ssl_server_name on;
      proxy_ssl_name $host;
      proxy_ssl_verify on;
      proxy_ssl_verify_depth 2;
      proxy_ssl_protocols TLSv1.2 TLSv1.3;
      proxy_ssl_trusted_certificate ${pki.originCa.cert};
      ${pass}
    }
  }
}
`;
}

function modulePath(file: string): string | null {
  return findFile(...MODULE_FOLDERS.map((folder) => join(folder, file)));
}
