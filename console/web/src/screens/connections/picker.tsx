// The connections that a method uses.
import {listConnections, type AuthMethod, type Connection} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {compare} from '../../lib/format';
import {useLoad} from '../../lib/load';
import {Avatar, Failed, Late} from '../../ui/basics';
import {Icon} from '../../ui/icon';
import {connectionName as nameOf} from '../../ui/providers';
import {State, picture} from './shared';
import {t} from './text';

// Which connections a kind of method is usually about: these come first.
const usual: Record<AuthMethod['type'], (c: Connection) => boolean> = {
  password: (c) => c.type === 'database' || ['ldap', 'active_directory'].includes(c.provider_code),
  sms: (c) => c.provider_code === 'mfa_sms',
  mail: (c) => c.provider_code === 'mfa_mail',
  otp: (c) => c.provider_code === 'mfa_otp',
  webauthn: (c) => c.provider_code === 'mfa_webauthn',
  social: (c) => c.type === 'social',
  enterprise: (c) => c.type === 'enterprise',
};

interface Props {
  type: AuthMethod['type'];
  chosen: string[];
  set: (ids: string[]) => void;
  readOnly?: boolean;
  error?: string;
  changed?: boolean;
}

export function ConnectionPicker({type, chosen, set, readOnly, error, changed}: Props) {
  const {state, again} = useLoad('connections of methods', (signal) => call(listConnections({signal})));
  const {value, error: failed, busy} = state.value;
  const rank = (c: Connection) => (usual[type](c) ? 0 : 1);
  const all = [...(value ?? [])].sort((a, b) => rank(a) - rank(b) || compare(nameOf(a), nameOf(b)));
  const gone = value ? chosen.filter((id) => !value.some((c) => c.id === id)) : [];
  const toggle = (id: string) => set(chosen.includes(id) ? chosen.filter((x) => x !== id) : [...chosen, id]);
  return (
    <fieldset class={`field ${changed ? 'changed' : ''}`}>
      <legend class="label">{t('connections')}</legend>
      <span class="help">{t('connectionsHelp')}</span>
      {failed ? (
        <Failed error={failed} again={again} />
      ) : (
        <div class="connections-picker">
          <Late busy={busy && !value} lines={3}>
            {all.map((c) => (
              <label key={c.id}>
                <input
                  type="checkbox"
                  disabled={readOnly}
                  aria-invalid={error && chosen.includes(c.id) ? true : undefined}
                  checked={chosen.includes(c.id)}
                  onChange={() => toggle(c.id)}
                />
                <Avatar icon="plug" name={nameOf(c)} src={picture(c.logo)} />
                <span class="clip grow">{nameOf(c)}</span>
                <State status={c.status} />
              </label>
            ))}
            {gone.map((id) => (
              <label key={id}>
                <input type="checkbox" checked disabled={readOnly} onChange={() => toggle(id)} />
                <span class="mono grow">{id}</span>
                <span class="faint">{t('gone')}</span>
              </label>
            ))}
          </Late>
        </div>
      )}
      {error && (
        <span class="error" lang="en">
          <Icon name="alert" size={12} />
          {error}
        </span>
      )}
    </fieldset>
  );
}
