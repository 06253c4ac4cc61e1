// What calls of a function logged, latest first; asked for again and again while somebody looks.
import {useSignal} from '@preact/signals';
import {listFunctionLogs, type Function as Fn, type FunctionLog} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {ago, dateTime, took} from '../../lib/format';
import {useLoad} from '../../lib/load';
import {usePoll} from '../../lib/poll';
import {href} from '../../lib/router';
import {Blank, Button, Failed, Late, Tag} from '../../ui/basics';
import type {Place} from './editor';
import {Fault, Lines, OutcomeStatus} from './invoke';
import {t} from './text';

export function Logs({f, show}: {f: Fn; show: (place: Place) => void}) {
  const paused = useSignal(false);
  const {state, again} = useLoad(f.id, (signal) =>
    call(
      listFunctionLogs({
        path: {id: f.id},
        query: {page_size: 100, page_sort: 'time_created[desc]', count: 'false'},
        signal,
      }),
    ),
  );
  usePoll(paused.value ? 0 : 3000, again);
  const {value, error, busy} = state.value;
  const items = value?.items ?? [];
  return (
    <>
      {error && <Failed error={error} again={again} />}
      <Late busy={busy && !value} lines={8}>
        {items.length > 0 ? (
          <>
            <div class="row">
              <span class={paused.value ? 'status off' : 'status good live'}>
                {t(paused.value ? 'paused' : 'following')}
              </span>
              <Button
                kind="ghost"
                small
                icon={paused.value ? 'play' : 'pause'}
                onClick={() => {
                  paused.value = !paused.value;
                }}
              >
                {t(paused.value ? 'follow' : 'pause')}
              </Button>
              <span class="grow" />
              <span class="faint num">{t('calls', {n: items.length})}</span>
            </div>
            <ol class="function-calls">
              {items.map((l) => (
                <Entry key={l.id} l={l} show={show} />
              ))}
            </ol>
          </>
        ) : (
          value && (
            <Blank icon="code" title={t('noCalls')}>
              {t('noCallsText')}
            </Blank>
          )
        )}
      </Late>
    </>
  );
}

const shown = 5; // lines of a call before the others are folded

function Entry({l, show}: {l: FunctionLog; show: (place: Place) => void}) {
  return (
    <li>
      <div class="row wrap">
        <OutcomeStatus outcome={l.outcome} />
        <Tag>{t.word('by_', l.cause)}</Tag>
        {l.attempt > 1 && <span class="muted num">{t('attempt', {n: l.attempt})}</span>}
        <span class="muted num">{took(l.duration_ms)}</span>
        <span class="faint num">{t('ofRevision', {n: l.revision})}</span>
        <span class="grow" />
        {l.event_id && <a href={href('events', [], {open: l.event_id})}>{t('event')}</a>}
        <span class="faint num nowrap" title={dateTime(l.time_created)}>
          {ago(l.time_created)}
        </span>
      </div>
      {l.error && <Fault fault={l.error} show={show} />}
      {l.logs.length > 0 && <Lines lines={l.logs.slice(0, shown)} />}
      {l.logs.length > shown && (
        <details class="fold-out">
          <summary>{t('moreLines', {n: l.logs.length - shown})}</summary>
          <Lines lines={l.logs.slice(shown)} />
        </details>
      )}
    </li>
  );
}
