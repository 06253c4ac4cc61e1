// One user: overview and form, audit, JSON; and what can be done with the user.
import type {ComponentChildren} from 'preact';
import {useSignal} from '@preact/signals';
import {deleteUser, getUser, lockUser, resetPassword, unlockUser, updateUser, type User} from '@idplatform/sdk';
import {call, full, type Answer} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {changed} from '../../lib/load';
import {Avatar, Button, Id} from '../../ui/basics';
import {toast} from '../../ui/dialog';
import {
  Facts,
  FormDialog,
  FormFields,
  PanelLoad,
  RecordMenu,
  RecordPanel,
  labelsOf,
  useDraft,
  type FieldSpec,
  TextField,
} from '../../ui/record';
import {SecretDialog} from '../../ui/secret';
import {t as ui} from '../../ui/text';
import {carryOut, undone} from '../../ui/undo';
import {OfUser} from '../members/panel';
import {UserStatus, userName} from './index';
import {t} from './text';

export function UserPanel({id}: {id: string}) {
  return (
    <PanelLoad id={id} load={(signal) => full(getUser({path: {id}, signal}))}>
      {(answer, again) => <Loaded answer={answer} again={again} />}
    </PanelLoad>
  );
}

const identity = (): FieldSpec<User>[] => [
  {field: 'username', label: t('username'), help: t('usernameHelp')},
  {field: 'display_name', label: t('display')},
  {field: 'employee_number', label: t('number')},
  {
    field: 'status',
    label: t('status'),
    kind: 'select',
    options: [
      {value: '1', label: t('active')},
      {value: '0', label: t('disabled')},
      {value: 'resigned', label: t('resigned')},
    ],
  },
];

const contact = (): FieldSpec<User>[] => [
  {field: 'email', label: t('email'), kind: 'email'},
  {field: 'mobile', label: t('mobile'), kind: 'tel'},
  {field: 'locale', label: t('locale')},
  {field: 'zoneinfo', label: t('zone')},
];

const props = (): FieldSpec<User>[] => [{field: 'free_ext_props', label: t('freeProps'), kind: 'json'}];

function Loaded({answer, again}: {answer: Answer<User>; again: () => void}) {
  const id = answer.data.id;
  const draft = useDraft<User>(answer, {
    scope: 'users:write',
    kind: 'users',
    load: () => full(getUser({path: {id}})),
    save: (patch, etag) => full(updateUser({path: {id}, body: patch, headers: {'If-Match': etag}})),
    saved: (now) => t('savedDone', {name: userName(now)}),
    again,
  });
  const user = draft.base.value;
  const name = userName(user);
  return (
    <RecordPanel
      title={name}
      lead={<Avatar large name={name} src={user.avatar_url} />}
      subtitle={
        <span class="row">
          <span class="mono clip">{user.username}</span>
          <UserStatus user={user} />
        </span>
      }
      actions={<Actions user={user} again={again} />}
      record={user}
      entity="user"
      draft={draft}
      labels={labelsOf([...identity(), ...contact(), ...props()])}
      overview={() => (
        <>
          <section class="section">
            <h3>{t('identity')}</h3>
            <FormFields draft={draft} fields={identity()} />
          </section>
          <section class="section">
            <h3>{t('contact')}</h3>
            <FormFields draft={draft} fields={contact()} />
          </section>
          <section class="section">
            <h3>{t('account')}</h3>
            <Facts facts={facts(user)} />
          </section>
          <section class="section">
            <h3>{t('props')}</h3>
            <FormFields draft={draft} fields={props()} />
          </section>
        </>
      )}
      tabs={[{name: 'memberships', label: t('memberships'), content: () => <OfUser id={id} />}]}
    />
  );
}

function facts(u: User): [string, ComponentChildren][] {
  return [
    [t('id'), <Id>{u.id}</Id>],
    [
      t('locked'),
      u.locked
        ? [u.lock_reason, u.locked_until && t('lockedUntil', {time: dateTime(u.locked_until)})]
            .filter(Boolean)
            .join(' · ') || ui('yes')
        : '',
    ],
    [
      t('password'),
      u.password_set
        ? [t('passwordSet'), u.must_change_password && t('mustChange')].filter(Boolean).join(' · ')
        : t('passwordNone'),
    ],
    [
      t('lastLogin'),
      u.time_last_login ? <span title={dateTime(u.time_last_login)}>{ago(u.time_last_login)}</span> : '',
    ],
    [t('created'), dateTime(u.time_created)],
    [t('modified'), <span title={dateTime(u.time_modified)}>{ago(u.time_modified)}</span>],
    [t('version'), <span class="num">{u.version}</span>],
  ];
}

function Actions({user, again}: {user: User; again: () => void}) {
  const dialog = useSignal<'' | 'lock' | 'reset'>('');
  const name = userName(user);
  const path = {id: user.id};
  const after = () => {
    changed('users');
    again();
  };
  const close = () => {
    dialog.value = '';
  };
  const unlock = () => carryOut({send: () => call(unlockUser({path})), said: t('unlockedDone', {name}), after});
  return (
    <>
      {user.locked && (
        <Button icon="unlock" scope="users:write" onClick={() => void unlock()}>
          {t('unlock')}
        </Button>
      )}
      <RecordMenu
        record={user}
        file={user.username}
        scope="users:write"
        items={[
          ...(user.locked
            ? []
            : [
                {
                  label: t('lock'),
                  icon: 'lock' as const,
                  scope: 'users:write',
                  onClick: () => {
                    dialog.value = 'lock';
                  },
                },
              ]),
          {
            label: t('resetPassword'),
            icon: 'key',
            scope: 'users:secrets',
            onClick: () => {
              dialog.value = 'reset';
            },
          },
        ]}
        removal={{
          title: t('deleteTitle', {name}),
          text: t('deleteText'),
          typed: user.username,
          record: user,
          send: () => call(deleteUser({path})),
          said: t('deletedDone', {name}),
          kinds: ['users'],
        }}
      />
      {dialog.value === 'lock' && <Lock user={user} close={close} after={after} />}
      {dialog.value === 'reset' && <Reset user={user} close={close} after={after} />}
    </>
  );
}

interface ActionDialog {
  user: User;
  close: () => void;
  after: () => void;
}

function Lock({user, close, after}: ActionDialog) {
  const reason = useSignal('');
  const name = userName(user);
  return (
    <FormDialog
      title={t('lockTitle', {name})}
      yes={t('lock')}
      close={close}
      submit={() => call(lockUser({path: {id: user.id}, body: {reason: reason.value}}))}
      done={() => {
        toast(t('lockedDone', {name}), () => undone(() => call(unlockUser({path: {id: user.id}}))).then(after));
        close();
        after();
      }}
    >
      {() => (
        <>
          <p class="muted">{t('lockText')}</p>
          <TextField
            label={t('reason')}
            value={reason.value}
            set={(v) => {
              reason.value = v;
            }}
          />
        </>
      )}
    </FormDialog>
  );
}

function Reset({user, close, after}: ActionDialog) {
  const fresh = useSignal('');
  if (fresh.value) {
    return (
      <SecretDialog
        title={t('newPassword')}
        text={t('newPasswordText', {name: userName(user)})}
        values={[[t('password'), fresh.value]]}
        file={{name: `${user.username}.txt`, text: fresh.value + '\n'}}
        close={() => {
          close();
          after();
        }}
      />
    );
  }
  return (
    <FormDialog
      title={t('resetTitle', {name: userName(user)})}
      yes={t('resetDo')}
      danger
      close={close}
      submit={(key) => call(resetPassword({path: {id: user.id}, body: {}, headers: {'Idempotency-Key': key}}))}
      done={({password = ''}) => {
        fresh.value = password;
      }}
    >
      {() => <p class="muted">{t('resetText')}</p>}
    </FormDialog>
  );
}
