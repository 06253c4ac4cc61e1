// The authentication sources of an application: connections of the tenant by which its users may sign in.
import {useSignal} from '@preact/signals';
import {attachSource, detachSource, listConnections, type Application, type Connection} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {changed, useLoad} from '../../lib/load';
import {Avatar, Blank, Button, Failed, Late, Status} from '../../ui/basics';
import {connectionName, providerName} from '../../ui/providers';
import {Field} from '../../ui/record';
import {carryOut} from '../../ui/undo';
import {logo} from './index';
import {t} from './text';

const scope = 'applications:write';

export function SourcesTab({app, again}: {app: Application; again: () => void}) {
  const {state, again: reload} = useLoad(
    'connections',
    async (signal) => (await call(listConnections({signal}))) as Connection[],
  );
  const {value, error, busy} = state.value;
  const chosen = useSignal('');
  const done = () => {
    changed('apps');
    again();
  };
  const attach = (id: string) => call(attachSource({path: {id: app.id}, body: {config_id: id}}));
  const detach = (id: string) => call(detachSource({path: {app_id: app.id, config_id: id}}));
  // A connection that cannot be read is called like its provider.
  const nameOf = (id: string) => {
    const c = value?.find((x) => x.id === id),
      source = app.idps.find((s) => s.config_id === id);
    return c ? connectionName(c) : source ? providerName(source) : id;
  };
  const add = async (id: string) => {
    const said = t('attached', {name: nameOf(id)});
    if (await carryOut({send: () => attach(id), back: () => detach(id), said, after: done})) chosen.value = '';
  };
  const remove = (id: string) =>
    carryOut({send: () => detach(id), back: () => attach(id), said: t('detached', {name: nameOf(id)}), after: done});
  const free = (value ?? []).filter((c) => !app.idps.some((s) => s.config_id === c.id));
  return (
    <>
      <p class="muted">{t('sourcesText')}</p>
      {error && <Failed error={error} again={reload} />}
      <Late busy={busy && !value} lines={4}>
        {app.idps.length === 0 && (
          <Blank icon="plug" title={t('noSources')}>
            {value && !value.length ? t('noConnections') : t('noSourcesText')}
          </Blank>
        )}
        {app.idps.length > 0 && (
          <ul class="cards">
            {app.idps.map((s) => {
              const c = value?.find((x) => x.id === s.config_id);
              return (
                <li key={s.config_id} class="card row">
                  <Avatar icon="plug" name={nameOf(s.config_id)} src={c && logo(c.logo)} />
                  <span class="grow">
                    <span class="clip">{nameOf(s.config_id)}</span>
                    <span class="faint mono clip">{s.provider_code}</span>
                  </span>
                  {c && (
                    <Status tone={c.status === '1' ? 'good' : 'off'}>
                      {t(c.status === '1' ? 'enabled' : 'disabled')}
                    </Status>
                  )}
                  <Button
                    small
                    kind="ghost"
                    icon="x"
                    scope={scope}
                    label={t('detach')}
                    onClick={() => void remove(s.config_id)}
                  />
                </li>
              );
            })}
          </ul>
        )}
        {free.length > 0 && (
          <Field label={t('attachLabel')}>
            {(p) => (
              <div class="row">
                <select
                  class="select grow"
                  {...p}
                  value={chosen.value}
                  onChange={(e) => {
                    chosen.value = e.currentTarget.value;
                  }}
                >
                  <option value="">—</option>
                  {free.map((c) => (
                    <option key={c.id} value={c.id}>
                      {connectionName(c)} ({c.provider_code})
                    </option>
                  ))}
                </select>
                <Button icon="plus" scope={scope} disabled={!chosen.value} onClick={() => void add(chosen.value)}>
                  {t('attach')}
                </Button>
              </div>
            )}
          </Field>
        )}
      </Late>
    </>
  );
}
