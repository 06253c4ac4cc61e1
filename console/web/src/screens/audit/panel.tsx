// One entry: the difference, who made it, and the way back.
import {useSignal} from '@preact/signals';
import type {AuditEntry} from '@idplatform/sdk';
import {asProblem, type ApiError} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {changed, useLoad} from '../../lib/load';
import {href, hrefQuery} from '../../lib/router';
import {AuditTab, Changes} from '../../ui/audit';
import {Button, Failed, Id, JsonView, Late, Status, type Tone} from '../../ui/basics';
import {Dialog, toast} from '../../ui/dialog';
import {reasonOf, whatWords} from '../../ui/kinds';
import {Member, Value} from '../../ui/members';
import {Actor, originWords, recordHref} from '../../ui/origin';
import {Details, Facts, Panel} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {Named, aboutOf, type Told} from '../about';
import {Outcome} from './index';
import {t} from './text';
import {carryOut, plan, undoable, type Fate, type Line, type Plan} from './undo';

export function EntryPanel({entry: e, told}: {entry: AuditEntry; told: Told}) {
  const undoing = useSignal(false);
  const target = undoable(e);
  return (
    <>
      <Panel
        title={whatWords(e)}
        subtitle={
          <span class="row">
            <Outcome entry={e} />
            <span title={dateTime(e.time)}>{ago(e.time)}</span>
          </span>
        }
        actions={
          target && (
            <Button
              scope={target.scope}
              onClick={() => {
                undoing.value = true;
              }}
            >
              {t('undo')}
            </Button>
          )
        }
        tabs={[
          {name: 'change', label: t('change'), content: () => <Change entry={e} told={told} />},
          ...(e.record
            ? [{name: 'history', label: t('history'), content: () => <AuditTab entity={e.entity} record={e.record} />}]
            : []),
          {name: 'json', label: t('json'), content: () => <JsonView value={e} />},
        ]}
      />
      {undoing.value && (
        <Undo
          entry={e}
          close={() => {
            undoing.value = false;
          }}
        />
      )}
    </>
  );
}

function Change({entry: e, told}: {entry: AuditEntry; told: Told}) {
  const link = recordHref(e.entity, e.record),
    denied = e.outcome === 'denied';
  return (
    <>
      <div class="row wrap">
        {link && e.action !== 'deleted' && (
          <a class="btn small" href={link}>
            {t('openRecord')}
          </a>
        )}
        {e.record && (
          <a class="btn small" href={hrefQuery({entity: e.entity, record: e.record})}>
            {t('sameRecord')}
          </a>
        )}
        {e.actor && (
          <a class="btn small" href={hrefQuery({actor: e.actor})}>
            {t('sameActor')}
          </a>
        )}
      </div>
      {denied && (
        <div class="note bad">
          <span class="grow stack">
            <span>
              <span class="title">{t('denied')}</span>
              {reasonOf(e) && (
                <>
                  {' '}
                  · <span lang="en">{e.reason}</span>
                </>
              )}
            </span>
            <span class="faint">
              {t('attempts', {n: e.count})}
              {e.address && (
                <>
                  {' '}
                  · <span class="mono">{e.address}</span>
                </>
              )}
            </span>
          </span>
        </div>
      )}
      <section class="section">
        <h3>{t('changed')}</h3>
        {e.changes?.length ? (
          <Changes entity={e.entity} changes={e.changes} />
        ) : (
          <p class="muted">{t(denied ? 'noChangesDenied' : 'noChanges')}</p>
        )}
      </section>
      <section class="section">
        <h3>{t('entry')}</h3>
        <Facts
          facts={[
            [t('time'), <span class="num">{dateTime(e.time)}</span>],
            [t('record'), aboutOf(e, told).name && <Named entry={e} told={told} />],
            [t('actor'), <Actor actor={e.actor} copy />],
            [t('requestOrigin'), originWords(e.origin)],
            [t('address'), e.address ? <span class="mono">{e.address}</span> : ''],
            [t('reason'), denied ? '' : e.reason],
            [t('count'), e.count > 1 ? <span class="num">{e.count}</span> : ''],
          ]}
        />
        <Details
          facts={[
            [t('recordId'), e.record && <Id>{e.record}</Id>],
            [t('request'), e.request_id && <Id>{e.request_id}</Id>],
            [
              t('event'),
              e.event_id && (
                <a class="mono" href={href('events', [], {open: e.event_id})}>
                  {e.event_id}
                </a>
              ),
            ],
            [t('id'), <Id>{e.id}</Id>],
          ]}
        />
      </section>
    </>
  );
}

const tones: Record<Fate, Tone> = {back: 'good', already: 'off', since: 'warn', masked: 'off'};

/** Undo compares the entry with the record as it is, and writes back what is still as this change left it. */
function Undo({entry, close}: {entry: AuditEntry; close: () => void}) {
  const target = undoable(entry)!;
  const {state, again} = useLoad(entry.id, (signal) => plan(entry, target, signal));
  const {value: p, error, busy} = state.value;
  const failed = useSignal<ApiError | undefined>(undefined);
  const stale = useSignal(false);
  const working = useSignal(false);
  const n = Object.keys(p?.patch ?? {}).length;
  const act = async () => {
    working.value = true;
    failed.value = undefined;
    try {
      await carryOut(entry, target, p!);
      if (target.kind) changed(target.kind);
      toast(t('undone'));
      close();
    } catch (e) {
      const problem = asProblem(e);
      if (problem.problem.status === 412) {
        stale.value = true;
        again();
      } else failed.value = problem;
    } finally {
      working.value = false;
    }
  };
  const gone = error?.problem.status === 404;
  return (
    <Dialog
      wide
      title={t('undoTitle')}
      onClose={close}
      foot={
        <>
          <Button onClick={close}>{ui('cancel')}</Button>
          <Button kind="primary" disabled={!p || n === 0 || busy} busy={working.value} onClick={() => void act()}>
            {n ? t('undoDo', {n}) : t('undoNone')}
          </Button>
        </>
      }
    >
      {gone ? <p class="muted">{t('undoGone')}</p> : error && <Failed error={error} again={again} />}
      {!error && <p class="muted">{t('undoText')}</p>}
      {stale.value && <div class="note warn">{t('changedSince')}</div>}
      {!error && (
        <Late busy={!p} lines={4}>
          {p && <Comparison entity={entry.entity} plan={p} />}
        </Late>
      )}
      {failed.value && <Failed error={failed.value} />}
    </Dialog>
  );
}

function Comparison({entity, plan: p}: {entity: string; plan: Plan}) {
  const words: Record<Fate, string> = {
    back: t('willBack'),
    already: t('already'),
    since: t('since'),
    masked: t('masked'),
  };
  const text = ({member}: Line, v: unknown) =>
    v === undefined || v === null || v === '' ? (
      <span class="faint">{t('empty')}</span>
    ) : (
      <Value entity={entity} member={member} v={v} />
    );
  return (
    <table class="diff">
      <thead>
        <tr>
          <th scope="col">{t('member')}</th>
          <th scope="col">{t('now')}</th>
          <th scope="col">{t('back')}</th>
          <th scope="col">
            <span class="visually-hidden">{t('outcome')}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {p.lines.map((l) => (
          <tr key={l.member}>
            <Member entity={entity} member={l.member} />
            <td>{l.fate === 'back' ? <del>{text(l, l.now)}</del> : text(l, l.now)}</td>
            <td>{l.fate === 'back' ? <ins>{text(l, l.before)}</ins> : <span class="faint">—</span>}</td>
            <td>
              <Status tone={tones[l.fate]}>{words[l.fate]}</Status>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
