// One event: who, when, and the difference that it made.
import type {Event} from '@idplatform/sdk';
import {ago, dateTime} from '../../lib/format';
import {own} from '../../lib/own';
import {href, hrefQuery} from '../../lib/router';
import {Changes} from '../../ui/audit';
import {Blank, Id, JsonView, Late} from '../../ui/basics';
import {Actor, nameOf, originWords, recordHref} from '../../ui/origin';
import {Value, memberWord} from '../../ui/members';
import {Details, Facts, Panel} from '../../ui/record';
import {Named} from '../about';
import {changedMembers, entryOf, none, typeOf, wordsOf} from './index';
import {t} from './text';

export function EventPanel({event: e, loading}: {event: Event | undefined; loading: boolean}) {
  if (!e) {
    return (
      <Panel
        title={t('overview')}
        tabs={[
          {
            name: 'change',
            label: t('change'),
            content: () => (
              <Late busy={loading} lines={6}>
                <Blank
                  icon="pulse"
                  title={t('goneTitle')}
                  action={
                    <a class="btn" href={href('audit')}>
                      {t('openAudit')}
                    </a>
                  }
                >
                  {t('goneText')}
                </Blank>
              </Late>
            ),
          },
        ]}
      />
    );
  }
  const name = nameOf(e.data?.record);
  return (
    <Panel
      title={wordsOf(e)}
      subtitle={
        <span title={dateTime(e.time)}>
          {name ? `${name} · ` : ''}
          {ago(e.time)}
        </span>
      }
      tabs={[
        {name: 'change', label: t('change'), content: () => <Change event={e} />},
        {name: 'json', label: t('json'), content: () => <JsonView value={e} />},
      ]}
    />
  );
}

function Change({event: e}: {event: Event}) {
  const record = (e.data?.record ?? {}) as Record<string, unknown>,
    previous = e.data?.previous ?? {};
  const members = changedMembers(e),
    entity = typeOf(e).split('.')[0]!;
  const link = recordHref(entity, e.subject);
  return (
    <>
      <div class="row wrap">
        {link && (
          <a class="btn small" href={link}>
            {t('openRecord')}
          </a>
        )}
        <a class="btn small" href={href('audit', [], {entity, record: e.subject})}>
          {t('audit')}
        </a>
        <a class="btn small" href={hrefQuery({subject: e.subject, types: `${entity}.*`})}>
          {t('onlyRecord')}
        </a>
        <a class="btn small" href={hrefQuery({types: typeOf(e)})}>
          {t('onlyType')}
        </a>
      </div>
      <section class="section">
        <h3>{members.length ? t('change') : t('recordNow')}</h3>
        {members.length ? (
          <Changes
            entity={entity}
            changes={members.map((member) => ({member, before: previous[member], after: own(record, member)}))}
          />
        ) : (
          <Facts
            facts={Object.entries(record)
              .filter(([, v]) => !empty(v))
              .map(([k, v]) => [
                memberWord(entity, k),
                <span class={typeof v === 'object' ? 'mono' : undefined}>
                  <Value entity={entity} member={k} v={v} />
                </span>,
              ])}
          />
        )}
      </section>
      <section class="section">
        <h3>{t('overview')}</h3>
        <Facts
          facts={[
            [t('time'), <span class="num">{dateTime(e.time)}</span>],
            [t('record'), <Named entry={entryOf(e)} told={none} />],
            [t('actor'), <Actor actor={e.actor ?? ''} copy />],
            [t('origin'), originWords(e.payloadorigin ?? '')],
          ]}
        />
        <Details
          facts={[
            [t('type'), <span class="mono">{typeOf(e)}</span>],
            [t('subject'), <Id>{e.subject}</Id>],
            [t('request'), e.requestid ? <Id>{e.requestid}</Id> : ''],
            [t('source'), <span class="mono">{e.source}</span>],
            [t('sequence'), <span class="num">{e.sequence}</span>],
            [t('id'), <Id>{e.id}</Id>],
          ]}
        />
      </section>
    </>
  );
}

function empty(v: unknown): boolean {
  return v === null || v === '' || (typeof v === 'object' && Object.keys(v as object).length === 0);
}
