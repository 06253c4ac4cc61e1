// What keeps a user out: to disable the account for a while, or to end it when the person leaves.
import {useSignal} from '@preact/signals';
import {reinstateUser, resignUser, updateUser, type User} from '@idplatform/sdk';
import {call, full} from '../../lib/api';
import {dateTime} from '../../lib/format';
import {toast} from '../../ui/dialog';
import {Field, FormDialog, SelectField, TextField, faultOf} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {undone} from '../../ui/undo';
import {UserPicker} from '../../ui/userpicker';
import {Effects, everything, signedIn} from './effects';
import {userName} from './index';
import {t} from './text';

export interface ActionDialog {
  user: User;
  close: () => void;
  after: () => void;
}

/** setStatus switches a user on or off, if the record still has the ETag. */
export function setStatus(id: string, status: '1' | '0', etag: string) {
  return full(updateUser({path: {id}, body: {status}, headers: {'If-Match': etag}}));
}

export function Disable({user, close, after}: ActionDialog) {
  const name = userName(user);
  return (
    <FormDialog
      title={t('disableTitle', {name})}
      yes={t('disable')}
      scope="users:write"
      close={close}
      submit={() => setStatus(user.id, '0', `"${user.version}"`)}
      done={({etag}) => {
        toast(t('disabledDone', {name}), () =>
          undone(() => setStatus(user.id, '1', etag), ui('stayEnded')).then(after),
        );
        close();
        after();
      }}
    >
      {() => (
        <>
          <p class="muted">{t('disableText')}</p>
          <Effects user={user} ends={signedIn} />
        </>
      )}
    </FormDialog>
  );
}

/** Offboard ends the account now or at a time, and names who takes over. */
export function Offboard({user, close, after}: ActionDialog) {
  const when = useSignal<'now' | 'time'>('now');
  const time = useSignal('');
  const successor = useSignal('');
  const reason = useSignal('');
  const name = userName(user);
  const later = when.value === 'time';
  const send = (key: string) => {
    const body = {
      effective_time: later ? new Date(time.value).toISOString() : undefined,
      successor_id: successor.value || undefined,
      reason: reason.value,
    };
    return call(resignUser({path: {id: user.id}, body, headers: {'Idempotency-Key': key}}));
  };
  return (
    <FormDialog
      danger
      title={t('offboardTitle', {name})}
      yes={t('offboardDo')}
      scope="users:write"
      disabled={later && !time.value}
      close={close}
      submit={send}
      done={(now) => {
        const gone = now.status === 'resigned';
        const said = gone ? t('offboarded', {name}) : t('leavesAt', {name, time: dateTime(now.time_resigned)});
        const back = () => call(reinstateUser({path: {id: user.id}}));
        toast(said, () => undone(back, gone ? t('notBack') : undefined).then(after));
        close();
        after();
      }}
    >
      {(error) => (
        <>
          <p class="muted">{t('offboardText')}</p>
          <SelectField
            label={t('when')}
            error={later ? undefined : faultOf(error, 'effective_time')}
            value={when.value}
            set={(v) => {
              when.value = v as 'now' | 'time';
            }}
          >
            <option value="now">{t('now')}</option>
            <option value="time">{t('atTime')}</option>
          </SelectField>
          {later && (
            <TextField
              label={t('lastMoment')}
              help={ui('yourZone', {zone: Intl.DateTimeFormat().resolvedOptions().timeZone})}
              error={faultOf(error, 'effective_time')}
              type="datetime-local"
              value={time.value}
              set={(v) => {
                time.value = v;
              }}
            />
          )}
          <Field label={t('successor')} help={t('successorHelp')} error={faultOf(error, 'successor_id')}>
            {(props) => (
              <UserPicker
                props={props}
                choose={(u) => {
                  successor.value = u?.id ?? '';
                }}
              />
            )}
          </Field>
          <TextField
            label={t('reason')}
            error={faultOf(error, 'reason')}
            value={reason.value}
            set={(v) => {
              reason.value = v;
            }}
          />
          <Effects user={user} ends={everything} />
        </>
      )}
    </FormDialog>
  );
}
