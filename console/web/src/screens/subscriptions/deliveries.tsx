// The delivery log of a webhook: every event, the receiver's answer, and the next try.
import {useSignal} from '@preact/signals';
import {listSubscribedEvents, redeliverEvent, type EventDelivery, type EventSubscription} from '@idplatform/sdk';
import {asProblem, call} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {own} from '../../lib/own';
import {usePoll} from '../../lib/poll';
import {useLoad} from '../../lib/load';
import {href, param, setQuery} from '../../lib/router';
import {Blank, Button, Copy, Failed, Late, Status, type Tone} from '../../ui/basics';
import {typeWords} from '../../ui/kinds';
import {toast} from '../../ui/dialog';
import {t} from './text';

type DeliveryStatus = EventDelivery['status'];

const looks: Record<DeliveryStatus, {tone: Tone; text: 'sDelivered' | 'sRetrying' | 'sHeld' | 'sFailed'}> = {
  delivered: {tone: 'good', text: 'sDelivered'},
  retrying: {tone: 'warn', text: 'sRetrying'},
  held: {tone: 'off', text: 'sHeld'},
  failed: {tone: 'bad', text: 'sFailed'},
};

export function Deliveries({s, again: reload}: {s: EventSubscription; again: () => void}) {
  const status = (param('delivery') || undefined) as DeliveryStatus | undefined;
  const size = useSignal(50);
  const {state, again} = useLoad(`${s.id} ${status} ${size.value} ${s.version}`, (signal) =>
    call(listSubscribedEvents({path: {id: s.id}, query: {status, page_size: size.value}, signal})),
  );
  const {value, error, busy} = state.value;
  const items = value?.items ?? [];
  // An event that is delivered again is there twice.
  const keyOf = ({event_id}: EventDelivery, i: number) =>
    `${event_id} ${items.slice(i + 1).filter((d) => d.event_id === event_id).length}`;
  const waits = items.some((d) => d.status === 'retrying' || d.status === 'held') || s.state === 'active';
  usePoll(waits ? 5000 : 0, again); // answers arrive at the pace of the receiver
  if (s.delivery.type === 'nats')
    return (
      <Blank icon="bell" title={t('nats')}>
        {t('dNatsText')}
      </Blank>
    );
  return (
    <>
      <div class="row wrap">
        <div class="chips" role="group" aria-label={t('state')}>
          {([undefined, 'delivered', 'retrying', 'held', 'failed'] as const).map((x) => (
            <button
              key={x ?? ''}
              type="button"
              class={x === status ? 'chip on' : 'chip'}
              aria-pressed={x === status}
              onClick={() => void setQuery({delivery: x}, {replace: true, force: true})}
            >
              {x ? t(looks[x].text) : t('allStates')}
            </button>
          ))}
        </div>
        <span class="grow" />
        <Button
          kind="ghost"
          small
          icon="refresh"
          label={t('refresh')}
          busy={busy && !!value}
          onClick={() => {
            again();
            reload();
          }}
        />
      </div>
      {error && <Failed error={error} again={again} />}
      <Late busy={busy && !value} lines={8}>
        {items.length > 0 ? (
          <ol class="subscriptions-deliveries">
            {items.map((d, i) => (
              <Delivery
                key={keyOf(d, i)}
                s={s}
                d={d}
                again={() => {
                  again();
                  reload();
                }}
              />
            ))}
          </ol>
        ) : (
          !error &&
          (status ? (
            <Blank icon="search" title={t('noneWith')} />
          ) : (
            <Blank icon="bell" title={t('dEmptyTitle')}>
              {t('dEmptyText')}
            </Blank>
          ))
        )}
        {value?.next_page_token && size.value < 500 && (
          <div class="row">
            <Button
              busy={busy}
              onClick={() => {
                size.value += 150;
              }}
            >
              {t('more')}
            </Button>
          </div>
        )}
      </Late>
    </>
  );
}

function Delivery({s, d, again}: {s: EventSubscription; d: EventDelivery; again: () => void}) {
  const busy = useSignal(false);
  const look = own(looks, d.status);
  const redeliver = async () => {
    busy.value = true;
    try {
      await call(redeliverEvent({path: {id: s.id, event_id: d.event_id}}));
      toast(t('redelivered'));
      again();
    } catch (e) {
      toast(asProblem(e).message);
    } finally {
      busy.value = false;
    }
  };
  const answer = [
    d.response_code ? t('answer', {code: String(d.response_code)}) : '',
    d.tries > 0 && d.duration_ms > 0 ? t('took', {ms: d.duration_ms}) : '',
    d.tries > 0 ? t('tries', {n: d.tries}) : '',
    d.status === 'held' ? t('held') : '',
  ]
    .filter(Boolean)
    .join(' · ');
  return (
    <li>
      <div class="row">
        <Status tone={look?.tone ?? 'off'}>{look ? t(look.text) : d.status}</Status>
        <a class="clip" title={d.event_type} href={href('events', [], {open: d.event_id})}>
          {typeWords(d.event_type)}
        </a>
        <Copy text={d.event_id} label={t('eventId')} />
      </div>
      <div class="row">
        <span class="faint num nowrap" title={dateTime(d.time)}>
          {ago(d.time)}
        </span>
        <Button
          kind="ghost"
          small
          icon="refresh"
          scope="events:write"
          label={t('redeliver')}
          busy={busy.value}
          onClick={() => void redeliver()}
        />
      </div>
      <div class="reply muted num">
        {answer}
        {d.next_try && (
          <>
            {' '}
            · <strong>{Date.parse(d.next_try) > Date.now() ? t('next', {time: ago(d.next_try)}) : t('due')}</strong>
          </>
        )}
        {d.error && (
          <div class="faint" lang="en">
            {d.error}
          </div>
        )}
      </div>
    </li>
  );
}
