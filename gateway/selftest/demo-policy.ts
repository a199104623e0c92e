/** What the demonstration is judged by. */

/** Below a name that is nobody's (RFC 6761 section 6.2), so it can never be reached but by its pin. */
export const demoHost = 'echo.sallyport.test';
export const demoOtherHost = 'other.sallyport.test';
export const demoSecret = 'demo/token';

export const demoPolicy = `version: 1
name: demo
rules:
  - { name: public-read, effect: allow, hosts: [${demoHost}], methods: [GET], paths: ["/public/**"] }
  - { name: account-read, effect: allow, hosts: [${demoHost}], methods: [GET], paths: ["/account/**"] }
  - { name: no-admin, effect: deny, hosts: [${demoHost}], paths: ["/admin/**"], reason: Agents have no business in administration. }
credentials:
  - name: demo-token
    secret: vault:${demoSecret}
    bind: { hosts: [${demoHost}], methods: [GET], paths: ["/account/**"] }
    inject: { header: Authorization, format: "Bearer {secret}" }
tests:
  - { request: GET https://${demoHost}/public/a, expect: allow, rule: public-read }
  - { request: GET https://${demoHost}/account/a, expect: allow, rule: account-read, credential: demo-token }
  - { request: GET https://${demoHost}/admin/a, expect: deny, rule: no-admin }
`;
