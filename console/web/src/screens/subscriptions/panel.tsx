// One subscription: how it goes, its form, its deliveries; and what can be done with it.
import {useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {
  deleteEventSubscription,
  getEventSubscription,
  pauseEventSubscription,
  resumeEventSubscription,
  testEventSubscription,
  updateEventSubscription,
  type EventSubscription,
} from '@idplatform/sdk';
import {asProblem, call, full, type Answer} from '../../lib/api';
import {ago, dateTime, number} from '../../lib/format';
import {changed} from '../../lib/load';
import {same} from '../../lib/patch';
import {Button, Id} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {Icon} from '../../ui/icon';
import {Facts, FormFields, PanelLoad, RecordMenu, RecordPanel, useDraft, type Draft} from '../../ui/record';
import {carryOut} from '../../ui/undo';
import {FreshSecret, freshOf, type Fresh} from './create';
import {Deliveries} from './deliveries';
import {DeliveryFields, TypesField} from './fields';
import {SubscriptionState} from './index';
import {Reset, Rotate} from './reset';
import {t} from './text';

export function SubscriptionPanel({id}: {id: string}) {
  return (
    <PanelLoad id={id} load={(signal) => full(getEventSubscription({path: {id}, signal}))}>
      {(answer, again) => <Loaded answer={answer} again={again} />}
    </PanelLoad>
  );
}

function Loaded({answer, again}: {answer: Answer<EventSubscription>; again: () => void}) {
  const id = answer.data.id;
  const draft = useDraft<EventSubscription>(answer, {
    scope: 'events:write',
    kind: 'subscriptions',
    load: () => full(getEventSubscription({path: {id}})),
    save: (patch, etag) =>
      full(updateEventSubscription({path: {id}, body: patch as never, headers: {'If-Match': etag}})),
    saved: (now) => t('savedDone', {name: now.name}),
    // A change of the receiver cannot be undone: the secrets of the former one are not shown.
    undoable: (now, before) => same(now.delivery, before.delivery),
    again,
  });
  const s = draft.base.value;
  return (
    <RecordPanel
      title={s.name}
      subtitle={
        <span class="row">
          <SubscriptionState state={s.state} />
          <span class="clip">{s.delivery.url ?? s.delivery.subject}</span>
        </span>
      }
      actions={<Actions s={s} again={again} />}
      record={s}
      entity="event_subscription"
      draft={draft}
      labels={{name: t('name'), event_types: t('types'), filter: t('filter'), delivery: t('delivery')}}
      overview={() => <Overview draft={draft} />}
      tabs={[{name: 'deliveries', label: t('deliveries'), content: () => <Deliveries s={s} again={again} />}]}
    />
  );
}

function Overview({draft}: {draft: Draft<EventSubscription>}) {
  const s = draft.base.value;
  const why = {active: '', paused: t('pausedText'), failing: t('failingText'), disabled: t('disabledText')}[s.state];
  return (
    <>
      {(why || s.last_error) && (
        <div class={s.state === 'paused' ? 'note' : s.state === 'active' ? 'note warn' : 'note bad'}>
          {s.state !== 'paused' && <Icon name="alert" />}
          <div class="grow">
            {why && <div>{why}</div>}
            {s.last_error && (
              <div class="muted">
                {t('lastError')}: <span lang="en">{s.last_error}</span>
              </div>
            )}
          </div>
        </div>
      )}
      <dl class="subscriptions-counters" aria-label={t('counters')}>
        {counter(t('delivered'), s.counters.delivered)}
        {counter(t('pending'), s.counters.pending)}
        {counter(t('failed'), s.counters.failed)}
        {s.delivery.type === 'nats' && counter(t('dropped'), s.counters.dropped)}
      </dl>
      <section class="section">
        <h3>{t('settings')}</h3>
        <FormFields draft={draft} fields={[{field: 'name', label: t('name'), wide: true}]} />
        <TypesField draft={draft} />
        <FormFields
          draft={draft}
          fields={[{field: 'filter', label: t('filter'), kind: 'textarea', help: t('filterHelp')}]}
        />
      </section>
      <section class="section">
        <h3>{t('where')}</h3>
        <DeliveryFields draft={draft} />
      </section>
      <section class="section">
        <h3>{t('about')}</h3>
        <Facts
          facts={[
            [t('id'), <Id>{s.id}</Id>],
            [t('cursor'), <span class="mono">{s.cursor}</span>],
            [t('created'), dateTime(s.time_created)],
            [t('modified'), <span title={dateTime(s.time_modified)}>{ago(s.time_modified)}</span>],
            [t('version'), <span class="num">{s.version}</span>],
          ]}
        />
      </section>
    </>
  );
}

function counter(label: string, n: number): ComponentChildren {
  return (
    <div>
      <dt>{label}</dt>
      <dd class="num">{number(n)}</dd>
    </div>
  );
}

function Actions({s, again}: {s: EventSubscription; again: () => void}) {
  const dialog = useSignal<'' | 'reset' | 'rotate'>('');
  const fresh = useSignal<Fresh | undefined>(undefined);
  const testing = useSignal(false);
  const {id, name} = s,
    runs = s.state === 'active';
  const done = () => {
    changed('subscriptions');
    again();
  };
  const turn = (on: boolean) => call(on ? resumeEventSubscription({path: {id}}) : pauseEventSubscription({path: {id}}));
  const toggle = () =>
    void carryOut({
      send: () => turn(!runs),
      back: s.state === 'active' || s.state === 'paused' ? () => turn(runs) : undefined,
      said: t(runs ? 'pausedDone' : 'resumedDone', {name}),
      after: done,
    });
  const test = async () => {
    testing.value = true;
    try {
      const r = await call(testEventSubscription({path: {id}}));
      const answer = r.response_code ? t('answer', {code: String(r.response_code)}) : r.error || t('noAnswer');
      toast(
        !r.delivered
          ? `${t('testBad')}: ${answer}`
          : s.delivery.type === 'nats'
            ? t('testOkNats', {ms: r.duration_ms})
            : t('testOk', {code: String(r.response_code), ms: r.duration_ms}),
      );
    } catch (e) {
      toast(asProblem(e).message);
    } finally {
      testing.value = false;
    }
    done();
  };
  return (
    <>
      <Button scope="events:write" busy={testing.value} onClick={() => void test()}>
        {t('test')}
      </Button>
      <RecordMenu
        record={s}
        file={`subscription-${id}`}
        scope="events:write"
        items={[
          {label: t(runs ? 'pause' : 'resume'), icon: runs ? 'pause' : 'play', scope: 'events:write', onClick: toggle},
          {
            label: t('reset'),
            icon: 'refresh',
            scope: 'events:write',
            onClick: () => {
              dialog.value = 'reset';
            },
          },
          {
            label: t('rotate'),
            icon: 'key',
            scope: 'events:write',
            onClick: () => {
              dialog.value = 'rotate';
            },
          },
        ]}
        removal={{
          title: t('deleteTitle', {name}),
          text: t('deleteText'),
          typed: name,
          record: s,
          file: `subscription-${id}`,
          send: () => call(deleteEventSubscription({path: {id}, headers: {'If-Match': `"${s.version}"`}})),
          said: t('deletedDone', {name}),
          kinds: ['subscriptions'],
        }}
      />
      {dialog.value === 'reset' && (
        <Reset
          s={s}
          close={() => {
            dialog.value = '';
            done();
          }}
        />
      )}
      {dialog.value === 'rotate' && (
        <Rotate
          s={s}
          close={(now) => {
            dialog.value = '';
            if (now) fresh.value = freshOf(now, true);
            else done();
          }}
        />
      )}
      {fresh.value && (
        <FreshSecret
          fresh={fresh.value}
          close={() => {
            fresh.value = undefined;
            done();
          }}
        />
      )}
    </>
  );
}
