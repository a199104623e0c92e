import test from 'ava';
import fc from 'fast-check';
import { asciiLine, canonicalJson, wellFormed } from '../../../gateway/audit/canonical.ts';
import { GatewayError } from '../../../gateway/errors.ts';

/** IEEE 754 bits and their text: RFC 8785 appendix B. */
const numbers: [bits: string, text: string][] = [
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['ffefffffffffffff', '-1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
];

for (const [bits, text] of numbers) {
  test(`canonicalJson() writes ${text} when the bits are ${bits}`, (t) => {
    t.is(canonicalJson(Buffer.from(bits, 'hex').readDoubleBE(0)), text);
  });
}

for (const bits of ['7fffffffffffffff', '7ff0000000000000', 'fff0000000000000']) {
  test(`canonicalJson() throws when the bits are ${bits}`, (t) => {
    const error = t.throws(() => canonicalJson([Buffer.from(bits, 'hex').readDoubleBE(0)]), {
      instanceOf: GatewayError,
    });
    t.is(error?.code, 'GATEWAY_AUDIT_FAILED');
  });
}

/** RFC 8785 section 3.2.2.2. */
const strings: [name: string, value: string, text: string][] = [
  ['quote and backslash', '"\\', '"\\"\\\\"'],
  ['short escapes', '\b\t\n\f\r', '"\\b\\t\\n\\f\\r"'],
  ['other controls', '\u0000\u001b\u000f', '"\\u0000\\u001b\\u000f"'],
  ['slash stays', '</script>', '"</script>"'],
  ['euro, DEL and U+2028 stay', '\u20ac\u007f\u2028', '"\u20ac\u007f\u2028"'],
  ['the example of section 3.2.2', '\u20ac$\u000f\nA\'B"\\\\"/', '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'],
];

for (const [name, value, text] of strings) {
  test(`canonicalJson() escapes as RFC 8785 says when the string holds: ${name}`, (t) =>
    t.is(canonicalJson(value), text));
}

test('canonicalJson() sorts by UTF-16 units when keys are not ASCII (RFC 8785 section 3.2.3)', (t) => {
  const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 };
  t.is(canonicalJson(value), '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}');
});

test('canonicalJson() throws when a string or key has no UTF-8 form, or the value no JSON form', (t) => {
  for (const value of ['\ud800', { '\udc00': 1 }, 1n, undefined, () => 1, Symbol('x')]) {
    t.throws(() => canonicalJson(value), { instanceOf: GatewayError });
  }
});

test('canonicalJson() throws when the value is nested without end', (t) => {
  const loop: unknown[] = [];
  loop.push(loop);
  t.throws(() => canonicalJson(loop), { instanceOf: GatewayError });
});

test('canonicalJson() is its own fixed point and asciiLine() changes no value when given any JSON', (t) => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const json = JSON.parse(wellFormed(JSON.stringify(value)));
      let text: string;
      try {
        text = canonicalJson(json);
      } catch (error) {
        return error instanceof GatewayError;
      }
      t.is(canonicalJson(JSON.parse(text)), text);
      const line = asciiLine(text);
      t.regex(line, /^[\x20-\x7e]*$/);
      t.deepEqual(JSON.parse(line), JSON.parse(text));
      return true;
    }),
  );
});

test('asciiLine() escapes when a terminal could obey or be fooled', (t) => {
  t.is(
    asciiLine('"\u007f\u009b31m\u2028\u202eevil\ufeff\u0430\ud83d\ude00"'),
    '"\\u007f\\u009b31m\\u2028\\u202eevil\\ufeff\\u0430\\ud83d\\ude00"',
  );
});
