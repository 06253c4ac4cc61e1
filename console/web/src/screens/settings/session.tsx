// Who is signed in, until when, and what the scopes allow.
import {whoAmI} from '@idplatform/sdk';
import {call} from '../../lib/api';
import {ago, dateTime} from '../../lib/format';
import {useLoad} from '../../lib/load';
import {place} from '../../lib/router';
import {session} from '../../lib/session';
import {Button, Failed, Id, Late, Status} from '../../ui/basics';
import {Actor} from '../../ui/origin';
import {Facts} from '../../ui/record';
import {leave} from '../../ui/shell/state';
import {knownScopes, scopeInWords} from './scopes';
import {t} from './text';

const Time = ({of}: {of: string}) => (
  <span>
    {dateTime(of)} <span class="faint">({ago(of)})</span>
  </span>
);

// Without an issuer the session and its token end together, but for the moment that signing in took.
function laterThan(session: string | undefined, token: string): boolean {
  return !!session && new Date(session).getTime() - new Date(token).getTime() > 60_000;
}

export function Session() {
  const {state, again} = useLoad('whoami', (signal) => call(whoAmI({signal})));
  const {value, error, busy} = state.value;
  const s = session.value;
  return (
    <div class="scroll">
      <div class="page settings-page">
        {error && <Failed error={error} again={again} />}
        <Late busy={busy && !value} lines={8}>
          {value && (
            <>
              <section class="section">
                <Facts
                  facts={[
                    [t('who'), s.name || <Actor actor={value.actor} copy />],
                    [t('client'), value.client_id ? <Id>{value.client_id}</Id> : ''],
                    [t('ownTenant'), <span class="mono">{value.tenant_id}</span>],
                    [
                      t('shownTenant'),
                      place.value.tenant !== value.tenant_id ? <span class="mono">{place.value.tenant}</span> : '',
                    ],
                    [t('signedIn'), s.time_signed_in ? <Time of={s.time_signed_in} /> : ''],
                    [t('tokenEnds'), <Time of={value.time_expires} />],
                    [
                      t('sessionEnds'),
                      laterThan(s.time_expires, value.time_expires) ? <Time of={s.time_expires!} /> : '',
                    ],
                  ]}
                />
                <p class="muted">{t('endsText')}</p>
                <div>
                  <Button icon="out" onClick={() => void leave()}>
                    {t('signOut')}
                  </Button>
                </div>
              </section>
              <Scopes held={value.scopes} />
            </>
          )}
        </Late>
      </div>
    </div>
  );
}

function Scopes({held}: {held: string[]}) {
  const admin = held.includes('platform:admin');
  const has = (scope: string) => admin || held.includes(scope);
  const known = [...knownScopes, ...held.filter((s) => !(knownScopes as readonly string[]).includes(s))];
  const all = [...known.filter(has), ...known.filter((s) => !has(s))];
  return (
    <section class="section">
      <h2>{t('scopes')}</h2>
      <p class="muted">
        {t('scopesText')} {admin && t('holdsAll')}
      </p>
      <ul class="settings-scopes">
        {all.map((scope) => {
          const is = has(scope);
          return (
            <li key={scope} class={is ? '' : 'lacking'}>
              <Status tone={is ? 'good' : 'off'}>{t(is ? 'held' : 'notHeld')}</Status>
              <span class="mono">{scope}</span>
              <span class="words">{scopeInWords(scope)}</span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
