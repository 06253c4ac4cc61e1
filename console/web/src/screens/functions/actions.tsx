// What can be done with a function: call it, turn it off and on, delete it.
import {deleteFunction, updateFunction, type Function as Fn} from '@idplatform/sdk';
import {asProblem, call} from '../../lib/api';
import {saveFile} from '../../lib/csv';
import {changed} from '../../lib/load';
import {go, href, setQuery} from '../../lib/router';
import {Button} from '../../ui/basics';
import {confirm, toast} from '../../ui/dialog';
import {RecordMenu, remove} from '../../ui/record';
import {carryOut} from '../../ui/undo';
import {t} from './text';

const scope = 'functions:write';

export function Actions({f, again}: {f: Fn; again: () => void}) {
  const on = f.status === '1';
  const turn = (status: '0' | '1') => () => call(updateFunction({path: {id: f.id}, body: {status}}));
  const toggle = () =>
    void carryOut({
      send: turn(on ? '0' : '1'),
      back: turn(on ? '1' : '0'),
      said: t(on ? 'disabledDone' : 'enabledDone', {name: f.name}),
      after: () => {
        changed('functions');
        again();
      },
    });
  return (
    <>
      <Button icon="play" scope={scope} onClick={() => void setQuery({tab: 'invoke'}, {force: true})}>
        {t('invoke')}
      </Button>
      <RecordMenu
        items={[
          {label: t(on ? 'disable' : 'enable'), icon: on ? 'lock' : 'check', scope, onClick: toggle},
          {
            label: t('downloadSource'),
            icon: 'code',
            disabled: f.source === undefined,
            onClick: () => saveFile(`${f.code}.js`, 'text/javascript', f.source ?? ''),
          },
        ]}
        record={f}
        file={`function-${f.code}`}
        scope={scope}
        removal={() => void removeUnused(f)}
      />
    </>
  );
}

/** removeUnused leads to the jobs that run a function, as it cannot be deleted while there are any. */
async function removeUnused(f: Fn): Promise<void> {
  const act = (dry_run?: 'true') =>
    call(deleteFunction({path: {id: f.id}, query: {dry_run}, headers: {'If-Match': `"${f.version}"`}}));
  try {
    await act('true');
  } catch (e) {
    const {code, errors} = asProblem(e).problem;
    const n = code === 'in_use' ? errors?.find((x) => x.location === 'jobs')?.count : undefined;
    if (!n) return toast(asProblem(e).message);
    const question = {title: t('inUseTitle', {name: f.name}), text: t('inUseText', {n}), yes: t('showJobs')};
    if (await confirm(question)) await go(href('jobs', [], {target: 'function'}));
    return;
  }
  await remove({
    title: t('deleteTitle', {name: f.name}),
    text: t('deleteText', {n: f.revisions.length}),
    typed: f.name,
    record: f,
    file: `function-${f.code}`,
    send: () => act(),
    said: t('deletedDone', {name: f.name}),
    kinds: ['functions'],
    leave: () => setQuery({open: null, tab: null, diff: null}, {force: true}),
  });
}
