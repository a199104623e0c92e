/** Policy texts of one allow rule, with and without a credential. */

/** Fields of a narrow rule. */
export const read = 'methods: [GET], paths: ["/x"]';

/** A policy with one allow rule `r` for api.example.com. */
export const rule = (fields: string) =>
  `version: 1\nname: t\nrules:\n  - { name: r, effect: allow, hosts: [api.example.com], ${fields} }\n`;

/** The same with a credential bound to that host. */
export const bound = (ruleFields: string, bind: string) =>
  `${rule(ruleFields)}credentials:\n  - { name: c, secret: env:X, bind: { hosts: [api.example.com]${bind} }, inject: { header: X-Key } }\n`;

/** Every part of the format that loads, most of it not in canonical spelling. */
export const fullPolicy = `version: 1
name: coding-agent
description: |
  What a coding agent may reach.
owner: platform-security
mode: enforce
allowPrivate: [10.20.0.0/16]
rules:
  - name: github-read
    effect: allow
    reason: >
      Read-only access
      to our repositories.
    hosts: [API.GitHub.com., "*.Bücher.example"]
    methods: [read]
    paths: ["/repos/%61cme/**"]
  - name: metrics
    effect: allow
    scheme: http
    cidrs: ["10.20.30.0/24", "2606:4700:0::/48"]
    methods: [any]
    query: { format: "text*" }
    ports: [9090]
    encodedSlash: true
    tls: intercept
    protocol: http
  - { name: no-deletes, effect: deny, hosts: ["**"], methods: [DELETE] }
credentials:
  - name: token
    secret: vault:github/acme@2
    bind: { hosts: [api.github.com], methods: [GET], paths: ["/repos/acme/**"] }
    inject: { header: Authorization, format: "Bearer {secret}" }
    onClientCredential: replace
tests:
  - { request: GET https://api.github.com/repos/acme/site, expect: allow, rule: github-read, credential: token }
  - { request: DELETE https://api.github.com/repos/acme/site, expect: deny, rule: no-deletes }
`;
