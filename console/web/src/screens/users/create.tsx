import {useSignal} from '@preact/signals';
import {createUser, type NewUserWritable} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {changed} from '../../lib/load';
import {may} from '../../lib/session';
import {toast} from '../../ui/dialog';
import {FormDialog, faultOf, TextField} from '../../ui/record';
import {t} from './text';

type Member = 'username' | 'display_name' | 'email' | 'mobile' | 'employee_number' | 'password';

/** Create makes a user. */
export function Create({close}: {close: (id?: string) => void}) {
  const body = useSignal<Partial<Record<Member, string>>>({});
  const send = (key: string) => {
    const filled = Object.fromEntries(Object.entries(body.value).filter(([, v]) => v !== ''));
    return call(createUser({body: {username: '', ...filled} as NewUserWritable, headers: {'Idempotency-Key': key}}));
  };
  return (
    <FormDialog
      title={t('createTitle')}
      yes={t('createDo')}
      submit={send}
      close={() => close()}
      done={(user) => {
        changed('users');
        toast(t('createdDone', {name: user.display_name || user.username}));
        close(user.id);
      }}
    >
      {(error) => {
        const field = (name: Member, label: string, help?: string, type = 'text') => (
          <TextField
            label={label}
            help={help}
            error={faultOf(error, name)}
            type={type as 'text'}
            required={name === 'username'}
            autocomplete={type === 'password' ? 'new-password' : 'off'}
            value={body.value[name] ?? ''}
            set={(v) => {
              body.value = {...body.value, [name]: v};
            }}
          />
        );
        return (
          <div class="grid-2">
            {field('username', t('username'), t('usernameHelp'))}
            {field('display_name', t('display'))}
            {field('email', t('email'), undefined, 'email')}
            {field('mobile', t('mobile'), undefined, 'tel')}
            {field('employee_number', t('number'))}
            {may('users:secrets') && field('password', t('password'), t('passwordHelp'), 'password')}
          </div>
        );
      }}
    </FormDialog>
  );
}
