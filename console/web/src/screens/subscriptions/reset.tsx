// Where a subscription goes on, and a new secret.
import {useSignal} from '@preact/signals';
import {resetEventSubscription, type EventSubscription} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {toast} from '../../ui/dialog';
import {localTime} from '../../ui/live';
import {FormDialog, faultOf, TextField} from '../../ui/record';
import {Choices} from './create';
import {t} from './text';

export function Reset({s, close, event = ''}: {s: EventSubscription; close: () => void; event?: string}) {
  const to = useSignal<string>(event ? 'event' : 'now');
  const time = useSignal(localTime(new Date(Date.now() - 3_600_000).toISOString()));
  const id = useSignal(event);
  const value = () =>
    to.value === 'now'
      ? 'now'
      : to.value === 'event'
        ? id.value.trim()
        : time.value && new Date(time.value).toISOString();
  return (
    <FormDialog
      title={t('resetTitle', {name: s.name})}
      yes={t('resetDo')}
      disabled={!value()}
      submit={(key) =>
        call(resetEventSubscription({path: {id: s.id}, body: {to: value()}, headers: {'Idempotency-Key': key}}))
      }
      done={() => {
        toast(t('resetDone', {name: s.name}));
        close();
      }}
      close={close}
    >
      {(error) => (
        <Choices
          legend={t('resetText')}
          name="to"
          value={to.value}
          choose={(v) => {
            to.value = v;
          }}
          options={[
            {value: 'now', label: t('toNow'), help: t('toNowHelp')},
            {
              value: 'time',
              label: t('toTime'),
              more: (
                <TextField
                  label={t('time')}
                  error={faultOf(error, 'to')}
                  type="datetime-local"
                  value={time.value}
                  set={(v) => {
                    time.value = v;
                  }}
                />
              ),
            },
            {
              value: 'event',
              label: t('toEvent'),
              help: t('toEventHelp'),
              more: (
                <TextField
                  label={t('eventId')}
                  error={faultOf(error, 'to')}
                  mono
                  value={id.value}
                  set={(v) => {
                    id.value = v;
                  }}
                />
              ),
            },
          ]}
        />
      )}
    </FormDialog>
  );
}

export function Rotate({s, close}: {s: EventSubscription; close: (now?: EventSubscription) => void}) {
  return (
    <FormDialog
      danger
      title={t('rotateTitle', {name: s.name})}
      yes={t('rotateDo')}
      submit={(key) =>
        call(resetEventSubscription({path: {id: s.id}, body: {rotate_secret: true}, headers: {'Idempotency-Key': key}}))
      }
      done={close}
      close={() => close()}
    >
      {() => <p class="muted">{t(s.delivery.type === 'nats' ? 'rotateTextNats' : 'rotateText')}</p>}
    </FormDialog>
  );
}
