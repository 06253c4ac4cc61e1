// The revisions of a function's code: what has changed between two, and the way back to one.
import {useSignal} from '@preact/signals';
import {rollbackFunction, type Function as Fn, type FunctionRevision} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {ago, dateTime, number} from '../../lib/format';
import {changed, useLoad} from '../../lib/load';
import {param, setQuery} from '../../lib/router';
import {may} from '../../lib/session';
import {Blank, Button, Failed, Late, Tag} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {LineDiff} from '../../ui/linediff';
import {Actor} from '../../ui/origin';
import {Facts, FormDialog, SelectField} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {undone} from '../../ui/undo';
import {t} from './text';

const scope = 'functions:write';

/**
 * codeAt is the function as it would be after a rollback, tried without effect: revisions themselves have no code.
 */
function codeAt(f: Fn, revision: number, signal?: AbortSignal): Promise<Fn> {
  if (revision === f.revision) return Promise.resolve(f);
  return call(rollbackFunction({path: {id: f.id}, query: {dry_run: 'true'}, body: {revision}, signal}));
}

/** The URL has which two are compared: <function>-<from>-<to>. */
function compared(f: Fn): [number, number] {
  const [id, from, to] = param('diff').split('-');
  const kept = (n: number) => f.revisions.some((r) => r.revision === n);
  if (id === f.id && kept(Number(from)) && kept(Number(to))) return [Number(from), Number(to)];
  return [f.revisions[1]?.revision ?? f.revision, f.revision];
}

export function Revisions({f, again}: {f: Fn; again: () => void}) {
  const rolling = useSignal(0);
  if (!f.revisions.length)
    return (
      <Blank icon="code" title={t('noRevisions')}>
        {t('noRevisionsText')}
      </Blank>
    );
  const [from, to] = compared(f);
  const compare = (a: number, b: number) => void setQuery({diff: `${f.id}-${a}-${b}`}, {replace: true, force: true});
  return (
    <>
      <p class="muted">{t('revisionsText')}</p>
      <ol class="function-revisions">
        {f.revisions.map((r) => (
          <Row
            key={r.revision}
            f={f}
            r={r}
            compare={() => compare(r.revision, f.revision)}
            roll={() => {
              rolling.value = r.revision;
            }}
          />
        ))}
      </ol>
      {f.revisions.length > 1 && (
        <section class="section">
          <h3>{t('differences')}</h3>
          <div class="grid-2">
            <Choice f={f} label={t('from')} value={from} set={(n) => compare(n, to)} />
            <Choice f={f} label={t('to')} value={to} set={(n) => compare(from, n)} />
          </div>
          <Difference f={f} from={from} to={to} />
        </section>
      )}
      {rolling.value > 0 && (
        <Rollback
          f={f}
          revision={rolling.value}
          close={(done) => {
            rolling.value = 0;
            if (done) again();
          }}
        />
      )}
    </>
  );
}

function Row({f, r, compare, roll}: {f: Fn; r: FunctionRevision; compare: () => void; roll: () => void}) {
  const current = r.revision === f.revision;
  return (
    <li>
      <div class="grow">
        <div class="row">
          <strong class="num">{t('revisionNumber', {n: r.revision})}</strong>
          {current && <Tag accent>{t('current')}</Tag>}
          <span class="faint num" title={dateTime(r.time_created)}>
            {ago(r.time_created)}
          </span>
        </div>
        <div class="row faint">
          <Actor actor={r.actor} />
          <span class="num nowrap">{t('bytes', {n: number(r.bytes)})}</span>
          <span class="mono clip">{r.entry}</span>
        </div>
      </div>
      {!current && (
        <>
          {f.runtime === 'javascript' && (
            <Button kind="ghost" small scope={scope} onClick={compare}>
              {t('compare')}
            </Button>
          )}
          <Button small scope={scope} onClick={roll}>
            {t('rollback')}
          </Button>
        </>
      )}
    </li>
  );
}

function Choice({f, label, value, set}: {f: Fn; label: string; value: number; set: (n: number) => void}) {
  return (
    <SelectField label={label} value={value} set={(v) => set(Number(v))}>
      {f.revisions.map((r) => (
        <option key={r.revision} value={r.revision}>
          {t('revisionNumber', {n: r.revision})}
          {r.revision === f.revision ? ` (${t('current')})` : ''}
        </option>
      ))}
    </SelectField>
  );
}

function Difference({f, from, to}: {f: Fn; from: number; to: number}) {
  const readable = may(scope);
  const {state, again} = useLoad(readable ? `${f.id} ${f.version} ${from} ${to}` : null, (signal) =>
    Promise.all([codeAt(f, from, signal), codeAt(f, to, signal)]),
  );
  if (!readable) return <p class="muted">{ui('needsScope', {scope})}</p>;
  const {value, error, busy} = state.value;
  if (error) return <Failed error={error} again={again} />;
  return (
    <Late busy={busy && !value} lines={6}>
      {value && (
        <div class={busy ? 'busy' : ''}>
          <Between a={value[0]} b={value[1]} />
        </div>
      )}
    </Late>
  );
}

/** Between shows what two states of a function's code have in common, and what not. */
function Between({a, b}: {a: Fn; b: Fn}) {
  const moved = a.runtime !== b.runtime || a.entry !== b.entry;
  const name = (f: Fn) => `${t(f.runtime)}, ${f.entry}`;
  return (
    <div class="stack">
      {moved && (
        <Facts
          facts={[
            [
              t('runtimeEntry'),
              <>
                <del>{name(a)}</del> → <ins>{name(b)}</ins>
              </>,
            ],
          ]}
        />
      )}
      {a.runtime === 'wasm' || b.runtime === 'wasm' ? (
        <p class="muted">{t('noTextDiff')}</p>
      ) : (
        <LineDiff from={a.source ?? ''} to={b.source ?? ''} />
      )}
    </div>
  );
}

function Rollback({f, revision, close}: {f: Fn; revision: number; close: (done: boolean) => void}) {
  const {state, again} = useLoad(`${f.id} ${revision}`, (signal) => codeAt(f, revision, signal));
  const {value, error} = state.value;
  const roll = (to: number, version: number) =>
    call(rollbackFunction({path: {id: f.id}, body: {revision: to}, headers: {'If-Match': `"${version}"`}}));
  const after = () => {
    changed('functions');
    close(true);
  };
  return (
    <FormDialog
      wide
      title={t('rollbackTitle', {name: f.name, n: revision})}
      yes={t('rollbackDo')}
      disabled={!value}
      submit={() => roll(revision, f.version)}
      done={(now) => {
        toast(t('rolledBack', {name: f.name, n: revision}), () =>
          undone(() => roll(f.revision, now.version)).then(after),
        );
        after();
      }}
      close={() => close(false)}
    >
      {() => (
        <>
          {error && <Failed error={error} again={again} />}
          <p class="muted">{t('rollbackText', {n: f.revision + 1})}</p>
          <Late busy={!value && !error} lines={6}>
            {value && <Between a={f} b={value} />}
          </Late>
        </>
      )}
    </FormDialog>
  );
}
