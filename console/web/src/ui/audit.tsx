// The audit log of one record, as a timeline of differences.
import {useEffect} from 'preact/hooks';
import {listAuditLogs, type AuditEntry} from '@idplatform/sdk';
import {call} from '../lib/api';
import {ago, dateTime} from '../lib/format';
import {texts} from '../lib/i18n';
import {useLoad} from '../lib/load';
import {isObject} from '../lib/patch';
import {Blank, Failed, Late} from './basics';
import {actionWord} from './kinds';
import {Member, Value} from './members';
import {Actor, originWords} from './origin';

const t = texts({
  none: ['Nothing recorded yet', '还没有记录'],
  noneText: ['Changes of this record appear here within seconds.', '此记录的更改会在几秒内显示在这里。'],
  denied: ['refused', '被拒绝'],
  before: ['Before', '之前'],
  after: ['After', '之后'],
  empty: ['empty', '空'],
  times: ['{n} times', '{n} 次'],
  parts: [
    {one: '{n} part', other: '{n} parts'},
    {one: '{n} 项', other: '{n} 项'},
  ],
});

/** AuditTab lists what happened to a record; another version loads it anew. */
export function AuditTab({entity, record, version}: {entity: string; record: string; version?: number}) {
  const {state, again} = useLoad(`${entity} ${record} ${version}`, (signal) =>
    call(listAuditLogs({query: {entity, record, page_size: 50, page_sort: 'time[desc]'}, signal})),
  );
  useEffect(() => {
    // the log follows the changes: what was just done is there a moment later
    const timers = [700, 1500, 3000, 6000, 12_000, 20_000].map((after) => setTimeout(again, after));
    return () => timers.forEach(clearTimeout);
  }, [version]);
  const {value, error, busy} = state.value;
  if (error) return <Failed error={error} again={again} />;
  return (
    <Late busy={busy && !value} lines={6}>
      {value?.items?.length ? (
        <ol class="timeline">
          {value.items.map((e) => (
            <AuditItem key={e.id} entry={e} />
          ))}
        </ol>
      ) : (
        <Blank icon="audit" title={t('none')}>
          {t('noneText')}
        </Blank>
      )}
    </Late>
  );
}

export function AuditItem({entry: e}: {entry: AuditEntry}) {
  return (
    <li class={e.outcome === 'denied' ? 'denied' : ''}>
      <div class="stack" style={{gap: '4px'}}>
        <div class="row wrap">
          <strong>{actionWord(e.action)}</strong>
          {e.outcome === 'denied' && <span class="tag">{t('denied')}</span>}
          <span class="faint num" title={dateTime(e.time)}>
            {ago(e.time)}
          </span>
        </div>
        <div class="row wrap faint">
          <Actor actor={e.actor} />
          {e.origin && <span>{originWords(e.origin)}</span>}
          {e.count > 1 && <span>{t('times', {n: e.count})}</span>}
        </div>
        <Changes entity={e.entity} changes={e.changes} />
      </div>
    </li>
  );
}

/** Changes is a table of members: what they were, what they are. */
export function Changes({entity, changes}: {entity: string; changes: AuditEntry['changes']}) {
  const shown = (changes ?? []).filter(
    (c) =>
      !['version', 'time_modified', 'sequence'].includes(c.member) &&
      JSON.stringify(c.before ?? '') !== JSON.stringify(c.after ?? '') &&
      !(c.before === null && c.after === false),
  ); // of a new record, what is not set says nothing
  if (!shown.length) return null;
  // a new record was nothing before, a deleted one is nothing afterwards
  const was = shown.some((c) => (c.before ?? null) !== null),
    is = shown.some((c) => (c.after ?? null) !== null);
  return (
    <table class="diff">
      <thead class="visually-hidden">
        <tr>
          <th scope="col">·</th>
          {was && <th scope="col">{t('before')}</th>}
          {is && <th scope="col">{t('after')}</th>}
        </tr>
      </thead>
      <tbody>
        {shown.map((c) => (
          <tr key={c.member}>
            <Member entity={entity} member={c.member} />
            {was && (
              <td>
                <Cell entity={entity} member={c.member} v={c.before} del />
              </td>
            )}
            {is && (
              <td>
                <Cell entity={entity} member={c.member} v={c.after} />
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Cell({entity, member, v, del}: {entity: string; member: string; v: unknown; del?: boolean}) {
  if (v === null || v === undefined || v === '') return <span class="faint">{t('empty')}</span>;
  if (isObject(v) || (Array.isArray(v) && v.some((x) => typeof x === 'object')))
    return (
      <details>
        <summary>{t('parts', {n: Object.keys(v).length})}</summary>
        <pre class="mono">{JSON.stringify(v, null, 2)}</pre>
      </details>
    );
  const all = Array.isArray(v) ? v : [v];
  const text = all.length
    ? all.map((x, i) => [i > 0 && ', ', <Value key={i} entity={entity} member={member} v={x} />])
    : t('empty');
  return del ? <del>{text}</del> : <ins>{text}</ins>;
}
