import test from 'ava';
import { Undo, withUndo } from './undo.ts';

test('close() runs the steps once, newest first', async (t) => {
  const undo = new Undo();
  const ran: number[] = [];
  for (const step of [1, 2, 3]) undo.add(() => void ran.push(step));
  await Promise.all([undo.close(), undo.close()]);
  t.deepEqual(ran, [3, 2, 1]);
});

test('close() goes on when a step fails, and says so at the end', async (t) => {
  const undo = new Undo();
  let isRun = false;
  undo.add(() => {
    isRun = true;
  });
  undo.add(() => Promise.reject(new Error('stuck')));
  await t.throwsAsync(undo.close(), { instanceOf: AggregateError });
  t.true(isRun);
});

test('close() also runs a step that is added while it runs', async (t) => {
  const undo = new Undo();
  let isRun = false;
  undo.add(() =>
    undo.add(() => {
      isRun = true;
    }),
  );
  await undo.close();
  t.true(isRun);
});

test('withUndo() cleans up when the work fails, and leaves no signal handler', async (t) => {
  const before = process.listenerCount('SIGINT');
  let isRun = false;
  const failing = withUndo(async (undo) => {
    undo.add(() => {
      isRun = true;
    });
    throw new Error('work failed');
  });
  await t.throwsAsync(failing, { message: 'work failed' });
  t.true(isRun);
  t.is(process.listenerCount('SIGINT'), before);
});
