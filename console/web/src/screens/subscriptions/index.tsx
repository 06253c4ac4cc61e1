// Subscriptions: who is told of events, and how that goes.
import '../../ui/kit';
import {useSignal} from '@preact/signals';
import {listEventSubscriptions, type EventSubscription} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {number} from '../../lib/format';
import {own} from '../../lib/own';
import {param, setQuery} from '../../lib/router';
import {Button, Status, Tag, type Tone} from '../../ui/basics';
import {typeWords} from '../../ui/kinds';
import {List, type Column, type Query, modifiedColumn, createdColumn} from '../../ui/list';
import {Create, FreshSecret, type Fresh} from './create';
import {SubscriptionPanel} from './panel';
import {t} from './text';

export type State = EventSubscription['state'];

const tones: Record<State, Tone> = {active: 'good', paused: 'off', failing: 'bad', disabled: 'bad'};

export function SubscriptionState({state}: {state: State}) {
  return <Status tone={own(tones, state) ?? 'off'}>{t.word('', state)}</Status>;
}

function load(query: Query, pageToken: string | undefined, signal: AbortSignal) {
  return call(
    listEventSubscriptions({
      signal,
      query: {
        keyword: query.q || undefined,
        state: (query.filters.state || undefined) as State | undefined,
        page_sort: query.sort || undefined,
        page_size: 100,
        page_token: pageToken,
        count: pageToken ? 'false' : undefined,
      },
    }),
  );
}

function columns(): Column<EventSubscription>[] {
  const count = (n: number, bad?: boolean) => (
    <span class={n && bad ? 'num subscriptions-bad' : n ? 'num' : 'num faint'}>{number(n)}</span>
  );
  return [
    {key: 'name', header: t('name'), sort: 'name', cell: (s) => s.name},
    {key: 'state', header: t('state'), width: '112px', cell: (s) => <SubscriptionState state={s.state} />},
    {
      key: 'delivery',
      header: t('delivery'),
      priority: 2,
      cell: (s) => (
        <span class="row">
          <Tag>{t(s.delivery.type)}</Tag>
          <span class="clip muted">{s.delivery.url ?? s.delivery.subject}</span>
        </span>
      ),
    },
    {
      key: 'types',
      header: t('types'),
      priority: 3,
      cell: (s) => <span class="muted">{s.event_types.map(typeWords).join(', ')}</span>,
    },
    {key: 'delivered', header: t('delivered'), priority: 3, width: '100px', cell: (s) => count(s.counters.delivered)},
    {key: 'failed', header: t('failed'), priority: 3, width: '130px', cell: (s) => count(s.counters.failed, true)},
    {key: 'pending', header: t('pending'), priority: 2, width: '90px', cell: (s) => count(s.counters.pending)},
    modifiedColumn({sort: 'time_modified', priority: 3, optional: true}),
    createdColumn({sort: 'time_created'}),
  ];
}

export default function Subscriptions() {
  const fresh = useSignal<Fresh | undefined>(undefined);
  const open = param('open');
  const create = (
    <Button kind="primary" icon="plus" scope="events:write" onClick={() => void setQuery({create: 1})}>
      {t('create')}
    </Button>
  );
  return (
    <>
      <List<EventSubscription>
        name="subscriptions"
        title={t('subscriptions')}
        kind="subscriptions"
        rowId={(s) => s.id}
        rowName={(s) => s.name}
        columns={columns()}
        load={load}
        search={t('search')}
        sort="name[asc]"
        filters={[
          {
            param: 'state',
            label: t('state'),
            options: (['active', 'paused', 'failing', 'disabled'] as const).map((value) => ({value, label: t(value)})),
          },
        ]}
        empty={{icon: 'bell', title: t('emptyTitle'), text: t('emptyText'), action: create}}
        actions={create}
      />
      {open && <SubscriptionPanel key={open} id={open} />}
      {param('create') && (
        <Create
          close={(made) => {
            fresh.value = made;
            void setQuery({create: null});
          }}
        />
      )}
      {fresh.value && (
        <FreshSecret
          fresh={fresh.value}
          close={() => {
            const {id} = fresh.value!;
            fresh.value = undefined;
            void setQuery({open: id});
          }}
        />
      )}
    </>
  );
}
