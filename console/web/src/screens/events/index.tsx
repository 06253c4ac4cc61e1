// Events: a live tail of what happens in the tenant.
import '../../ui/kit';
import {useSignal} from '@preact/signals';
import {useEffect, useMemo} from 'preact/hooks';
import {listEventTypes, type Event} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {dateTime} from '../../lib/format';
import {useKey} from '../../lib/keys';
import {useLate, useLoad} from '../../lib/load';
import {href, param, setQuery} from '../../lib/router';
import {Blank, Button, Failed} from '../../ui/basics';
import {Icon} from '../../ui/icon';
import {typeWords, whatWords} from '../../ui/kinds';
import {Chips, type Column} from '../../ui/list';
import {memberWord} from '../../ui/members';
import {Connection} from '../../ui/live';
import {LiveTable} from '../../ui/live-table';
import {Actor, clock} from '../../ui/origin';
import {Named, type Entry, type Told} from '../about';
import {recordFilter} from '../finding';
import {EventPanel} from './panel';
import {Tail, isGap, most, type Row} from './tail';
import {t} from './text';

/** typeOf is an event's type as filters take it: user.created. */
export const typeOf = (e: Event) => e.type.replace(/^idp\./, '');

/** kindOf is the kind of records that patterns of types select; '' if they select several. */
const kindOf = (types: string): string => {
  const kinds = new Set(types.split(',').map((pattern) => pattern.trim().split('.')[0]!));
  return kinds.size === 1 && !kinds.has('*') ? [...kinds][0]! : '';
};

/**
 * typesOf are the patterns that select the events of one kind of record among those of other patterns: of *.deleted,
 * user.deleted. If nothing of the kind is left, they select all of it.
 */
function typesOf(kind: string, types: string, known: string[]): string {
  const left = types.split(',').flatMap((pattern) => {
    const [of, action = '*'] = pattern.trim().split('.');
    return of === kind || of === '*' ? [`${kind}.${action}`] : [];
  });
  const all = `${kind}.*`;
  const are = left.filter((pattern) => pattern === all || !known.length || known.includes(pattern));
  return are.length && !are.includes(all) ? [...new Set(are)].join(',') : all;
}

/** wordsOf says what happened: User created. */
export const wordsOf = (e: Event) => {
  const [entity = '', action = ''] = typeOf(e).split('.');
  return whatWords({entity, action});
};

/** entryOf is an event as an entry of the audit log tells it: the record is in it as a whole. */
export function entryOf(e: Event): Entry {
  const [entity = '', action = ''] = typeOf(e).split('.');
  const changes = Object.entries(e.data?.record ?? {}).map(([member, after]) => ({member, before: null, after}));
  return {entity, record: e.subject, action: action === 'deleted' ? action : 'created', changes};
}

export const none: Told = new Map();

const changedWords = (e: Event) =>
  changedMembers(e)
    .map((member) => memberWord(typeOf(e).split('.')[0]!, member))
    .join(', ');

/** changedMembers of an event: those that had another value. */
export function changedMembers(e: Event): string[] {
  return Object.keys(e.data?.previous ?? {}).filter((m) => !['version', 'time_modified'].includes(m));
}

function columns(): Column<Row>[] {
  const of =
    <T,>(f: (e: Event) => T) =>
    (r: Row) =>
      isGap(r) ? null : f(r);
  return [
    {key: 'type', header: t('what'), cell: of((e) => <span class="clip">{wordsOf(e)}</span>)},
    {key: 'record', header: t('record'), cell: of((e) => <Named entry={entryOf(e)} told={none} inRow />)},
    {key: 'changed', header: t('changed'), priority: 3, cell: of((e) => <span class="muted">{changedWords(e)}</span>)},
    {key: 'actor', header: t('actor'), priority: 2, cell: of((e) => <Actor actor={e.actor ?? ''} inRow />)},
    {
      key: 'time',
      header: t('time'),
      width: '124px',
      cell: of((e) => (
        <time class="num muted" dateTime={e.time} title={dateTime(e.time)}>
          {clock(e.time)}
        </time>
      )),
    },
  ];
}

export default function Events() {
  const types = param('types'),
    subject = param('subject'),
    open = param('open');
  const turn = useSignal(0);
  const tail = useMemo(() => new Tail(types, subject), [types, subject, turn.value]);
  useEffect(() => () => tail.stop(), [tail]);
  const opened = useSignal<Event | undefined>(undefined); // stays when its row has gone
  const rows = tail.rows.value,
    state = tail.state.value,
    paused = tail.paused.value;
  const late = useLate(rows.length === 0 && (state.is === 'connecting' || state.is === 'waiting'));
  const quiet = useLate(rows.length === 0 && state.is === 'live', 500); // those of the last minutes may be on their way
  const found = rows.find((r) => r.id === open);
  if (found && !isGap(found)) opened.value = found;
  const event = opened.value?.id === open ? opened.value : undefined;
  const toggle = () => (paused ? tail.resume() : tail.pause());
  useKey('p', toggle);
  const known = useLoad('types', (signal) => call(listEventTypes({signal}))).state.value.value ?? [];
  const names = known.map((k) => k.type);
  const patterns = [...new Set([...names.map((name) => name.split('.')[0] + '.*'), ...names])].sort();
  const filtered = types !== '' || subject !== '';
  const clear = () => void setQuery({types: null, subject: null}, {replace: true});
  const count = rows.filter((r) => !isGap(r)).length;
  return (
    <>
      <section class="screen" aria-label={t('events')}>
        <header class="screen-head">
          <h1>
            {t('events')}
            {count > 0 && <span class="count num">{t('rows', {n: count})}</span>}
          </h1>
          <Connection state={state} paused={paused} retry={() => tail.retry()} />
          <div class="actions">
            <Button kind="ghost" disabled={!rows.length} onClick={() => tail.clear()}>
              {t('clear')}
            </Button>
            <Button icon={paused ? 'play' : 'pause'} onClick={toggle}>
              {paused ? t('resume') : t('pause')}
            </Button>
          </div>
        </header>
        <div class="tools">
          <Chips
            filters={[
              {
                param: 'types',
                label: t('type'),
                options: patterns.map((value) => ({value, label: typeWords(value)})),
                typed: (words) => /^[\w*]+\.[\w*]+/.test(words),
                shown: (value) => value.split(',').map(typeWords).join(', '),
              },
              recordFilter({entity: kindOf(types), id: subject}, (entity, id) => {
                const of = entity && {types: typesOf(entity, types, names)};
                void setQuery({subject: id, ...of}, {replace: true});
              }),
            ]}
          />
          {filtered && rows.length > 0 && (
            <Button kind="ghost" small onClick={clear}>
              {t('clearFilters')}
            </Button>
          )}
        </div>
        {state.is === 'failed' && (
          <div class="tools">
            <div class="grow">
              <Failed
                error={state.error}
                again={() => {
                  turn.value++;
                }}
              />
            </div>
          </div>
        )}
        {paused && tail.fresh.value > 0 && (
          <button type="button" class="events-fresh" onClick={() => tail.resume()}>
            <Icon name="up" size={14} />
            <span class="num">{t('fresh', {n: tail.fresh.value})}</span>
          </button>
        )}
        <LiveTable<Row>
          label={t('events')}
          columns={columns()}
          rows={rows}
          rowId={(r) => r.id}
          note={(r) =>
            isGap(r) ? (
              <span class="row">
                <Icon name="alert" size={14} />
                {r.gap}
              </span>
            ) : undefined
          }
          foot={
            rows.length > 0 && (
              <>
                {tail.dropped.value ? t('kept', {n: most}) : t('tail')} <a href={href('audit')}>{t('toAudit')}</a>
              </>
            )
          }
          skeleton={late}
          blank={
            quiet &&
            (filtered ? (
              <Blank
                icon="pulse"
                title={t('noMatch')}
                action={
                  <>
                    <Button onClick={clear}>{t('clearFilters')}</Button>
                    <a class="btn" href={href('audit')}>
                      {t('openAudit')}
                    </a>
                  </>
                }
              >
                {t('noMatchText')}
              </Blank>
            ) : (
              <Blank
                icon="pulse"
                title={t('emptyTitle')}
                action={
                  <a class="btn" href={href('audit')}>
                    {t('toAudit')}
                  </a>
                }
              >
                {t('emptyText')}
              </Blank>
            ))
          }
        />
      </section>
      {open && <EventPanel key={open} event={event} loading={!event && rows.length === 0 && state.is !== 'failed'} />}
    </>
  );
}
