// Audit: who changed what, and what was refused; new entries appear as they are written.
import '../../ui/kit';
import {useEffect, useMemo} from 'preact/hooks';
import {exportAuditLogs, getAuditLog, listEventTypes, type AuditEntry} from '@idplatform/sdk';
import {call, asProblem} from '../../lib/api';
import {saveFile} from '../../lib/csv';
import {compare, dateTime} from '../../lib/format';
import {changes, useLate, useLoad} from '../../lib/load';
import {href, param, setQuery} from '../../lib/router';
import {Blank, Button, Failed, Status, problemTitle} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {actionWord, kindWord, reasonOf, whatWords} from '../../ui/kinds';
import {Chips, type Column, type FilterOption} from '../../ui/list';
import {memberWord} from '../../ui/members';
import {Connection, TimeChip} from '../../ui/live';
import {LiveTable} from '../../ui/live-table';
import {Actor, clock, originWords} from '../../ui/origin';
import {PanelLoad} from '../../ui/record';
import {Named, askNames, tellsAll, toldBy, type Told} from '../about';
import {actorFilter, recordFilter} from '../finding';
import {Log, inParts, type Filters} from './log';
import {EntryPanel} from './panel';
import {t} from './text';

const names = ['actor', 'entity', 'record', 'action', 'outcome', 'from', 'to'] as const;

function filters(): Filters {
  return {
    actor: param('actor') || undefined,
    entity: param('entity') || undefined,
    record: param('record') || undefined,
    action: param('action') || undefined,
    outcome: (param('outcome') || undefined) as 'done' | undefined,
    time_from: param('from') || undefined,
    time_to: param('to') || undefined,
  };
}

/** choices are the words of the API, by what people read. */
function choices(values: string[], word: (value: string) => string): FilterOption[] {
  const all = [...new Set(values)].map((value) => ({value, label: word(value)}));
  return all.sort((a, b) => compare(a.label, b.label));
}

/** members that a change has changed, in words; a record that comes or goes changes all of them. */
function members(e: AuditEntry): string[] {
  return tellsAll(e) ? [] : (e.changes ?? []).map((c) => memberWord(e.entity, c.member));
}

export function Outcome({entry: e}: {entry: AuditEntry}) {
  return e.outcome === 'denied' ? (
    <Status tone="bad">
      {t('denied')}
      {e.count > 1 && <span class="num faint">{t('times', {n: e.count})}</span>}
    </Status>
  ) : (
    <Status tone="good">{t('done')}</Status>
  );
}

function columns(told: Told): Column<AuditEntry>[] {
  return [
    {key: 'what', header: t('what'), cell: (e) => <span class="clip">{whatWords(e)}</span>},
    {key: 'record', header: t('record'), cell: (e) => <Named entry={e} told={told} inRow />},
    {
      key: 'changed',
      header: t('changed'),
      priority: 3,
      cell: (e) => <span class="muted">{e.outcome === 'denied' ? reasonOf(e) : members(e).join(', ')}</span>,
    },
    {key: 'actor', header: t('actor'), priority: 2, width: '108px', cell: (e) => <Actor actor={e.actor} inRow />},
    {key: 'from', header: t('origin'), priority: 3, width: '140px', cell: (e) => <From entry={e} />},
    {key: 'outcome', header: t('outcome'), priority: 2, width: '92px', cell: (e) => <Outcome entry={e} />},
    {
      key: 'time',
      header: t('time'),
      width: '124px',
      cell: (e) => (
        <time class="num muted" dateTime={e.time} title={dateTime(e.time)}>
          {clock(e.time)}
        </time>
      ),
    },
  ];
}

function From({entry: e}: {entry: AuditEntry}) {
  if (e.outcome === 'denied' || (e.address && !e.origin)) return <span class="mono muted">{e.address}</span>;
  const words = originWords(e.origin);
  return (
    <span class={words === e.origin ? 'mono muted' : 'muted'} title={e.origin}>
      {words}
    </span>
  );
}

export default function Audit() {
  const query = filters(),
    key = JSON.stringify(query),
    open = param('open');
  const log = useMemo(() => new Log(query), [key]);
  useEffect(() => () => log.stop(), [log]);
  const rows = log.rows.value,
    error = log.error.value,
    busy = log.busy.value;
  const told = useMemo(() => toldBy(rows), [rows]);
  useMemo(() => askNames(rows, told), [rows, changes.value]);
  const late = useLate(busy && rows.length === 0);
  const filtered = names.some((n) => param(n));
  const clear = () => void setQuery(Object.fromEntries(names.map((n) => [n, null])), {replace: true});
  const types = useLoad('types', (signal) => call(listEventTypes({signal}))).state.value.value ?? [];
  const parts = types.filter(({type}) => type !== 'access.denied').map(({type}) => type.split('.') as [string, string]);
  const entities = choices(['access', ...parts.map(([entity]) => entity)], kindWord);
  const actions = choices(
    parts.filter(([entity]) => !query.entity || entity === query.entity).map(([, action]) => action),
    actionWord,
  );
  const total = log.total.value;
  const found = rows.find((r) => r.id === open);
  return (
    <>
      <section class="screen" aria-label={t('audit')}>
        <header class="screen-head">
          <h1>
            {t('audit')}
            {total !== undefined && total > 0 && (
              <span class="count num" role="status">
                {t(log.more.value ? 'atLeast' : 'total', {n: total})}
              </span>
            )}
          </h1>
          {log.state.value.is !== 'off' && !error && <Connection state={log.state.value} retry={() => log.retry()} />}
          <div class="actions">
            <Button icon="download" disabled={!rows.length} onClick={() => void save(query)}>
              {t('export')}
            </Button>
          </div>
        </header>
        <div class="tools">
          <Chips
            filters={[
              {
                param: 'outcome',
                label: t('outcome'),
                options: [
                  {value: 'done', label: t('done')},
                  {value: 'denied', label: t('denied')},
                ],
              },
              {param: 'entity', label: t('entity'), options: entities, shown: kindWord},
              {param: 'action', label: t('action'), options: actions, shown: actionWord},
              recordFilter(
                {entity: param('entity'), id: param('record')},
                (entity, record) => void setQuery({record, ...(entity && {entity})}, {replace: true}),
              ),
              actorFilter(),
            ]}
          >
            <TimeChip label={t('time')} />
          </Chips>
          {filtered && rows.length > 0 && (
            <Button kind="ghost" small onClick={clear}>
              {t('clearFilters')}
            </Button>
          )}
        </div>
        {error && (
          <div class="tools">
            <div class="grow">
              <Failed error={error} again={() => log.again()} />
            </div>
          </div>
        )}
        <LiveTable<AuditEntry>
          label={t('audit')}
          columns={columns(told)}
          rows={rows}
          rowId={(e) => e.id}
          total={total}
          tone={(e) => (e.outcome === 'denied' ? 'denied' : undefined)}
          skeleton={late}
          onEnd={() => {
            if (rows.length && !error) void log.load();
          }}
          foot={
            rows.length > 0 &&
            (log.done.value
              ? t('end')
              : !error && (
                  <>
                    <span class="spin" aria-hidden="true" />
                    {t('loadingMore')}
                  </>
                ))
          }
          blank={
            !busy &&
            !error &&
            (filtered ? (
              <Blank icon="search" title={t('noMatch')} action={<Button onClick={clear}>{t('clearFilters')}</Button>}>
                {t('noMatchText')}
              </Blank>
            ) : (
              <Blank
                icon="audit"
                title={t('emptyTitle')}
                action={
                  <a class="btn" href={href('start')}>
                    {t('toStart')}
                  </a>
                }
              >
                {t('emptyText')}
              </Blank>
            ))
          }
        />
      </section>
      {open &&
        (found ? (
          <EntryPanel key={open} entry={found} told={told} />
        ) : (
          <PanelLoad key={open} id={open} load={(signal) => call(getAuditLog({path: {id: open}, signal}))}>
            {(entry) => <EntryPanel entry={entry} told={told} />}
          </PanelLoad>
        ))}
    </>
  );
}

/** merged has the lines of several exports, the oldest first. */
function merged(texts: string[]): string {
  const lines = texts.flatMap((text) => text.split('\n').filter(Boolean));
  const entries = lines.map((line) => ({line, time: (JSON.parse(line) as AuditEntry).time}));
  entries.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  return entries.map(({line}) => line + '\n').join('');
}

/** save downloads the selected entries as they are exported: a line of JSON for each. */
async function save(query: Filters): Promise<void> {
  try {
    const parts = await inParts(query);
    const texts = await Promise.all(parts.map((part) => call(exportAuditLogs({query: part, parseAs: 'text'}))));
    saveFile('audit.ndjson', 'application/x-ndjson', texts.length > 1 ? merged(texts.map(String)) : String(texts[0]));
  } catch (e) {
    toast(problemTitle(asProblem(e)));
  }
}
