/** The policy of a fresh home: it allows nothing, and shows how to open something. */
export const starterPolicy = `# The default policy. It allows nothing: a request that no rule allows is refused, with a reason, and recorded.
#
#   sallyport policy check FILE                                  does it load, is anything odd
#   sallyport policy explain FILE 'GET https://example.com/'     which rule wins, and why
#   sallyport reload                                             put it in force
version: 1
name: default
description: Nothing is allowed until somebody writes down what.

# Order never matters: the built-in never-list (metadata services, loopback, …) beats every rule, a deny rule beats
# every allow rule, and what nothing allows is refused.
rules: []
#  - name: docs-read
#    effect: allow
#    hosts: [docs.example.com]        # exact; "*.example.com" is every name below it, but not example.com itself
#    methods: [GET]                   # implies HEAD; left out = any method
#    paths: ["/guide/**"]             # left out = any path
#    reason: Reading the guide.

# A credential goes only to what its own \`bind\` names. The value stays in the vault; the sandbox never holds it.
#   sallyport vault set docs/token
credentials: []
#  - name: docs-token
#    secret: vault:docs/token         # or env:NAME, or file:PATH; never the value itself
#    bind: { hosts: [docs.example.com], methods: [GET], paths: ["/guide/**"] }
#    inject: { header: Authorization, format: "Bearer {secret}" }

# Run at every load; a test that fails refuses the load, and what was in force stays in force.
tests:
  - { request: GET https://example.com/, expect: deny }
  - { request: GET http://169.254.169.254/latest/meta-data/, expect: deny }
#  - { request: GET https://docs.example.com/guide/start, expect: allow, rule: docs-read, credential: docs-token }
`;
