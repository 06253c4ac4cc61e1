// The tenant's settings of users.
import {useId} from 'preact/hooks';
import {getUserSettings, updateUserSettings} from '@idplatform/sdk';
import {full} from '../../lib/api';
import {useLoad} from '../../lib/load';
import {place} from '../../lib/router';
import {may} from '../../lib/session';
import {Failed, Late} from '../../ui/basics';
import {carryOut} from '../../ui/undo';
import {t as ui} from '../../ui/text';
import {t} from './text';

const scope = 'users:write';

const set = (shared_contacts: boolean, etag: string) =>
  full(updateUserSettings({body: {shared_contacts}, headers: {'If-Match': etag}}));

export function Users() {
  const {state, again} = useLoad(`users settings ${place.value.tenant}`, (signal) => full(getUserSettings({signal})));
  const {value, error, busy} = state.value;
  const help = useId();
  const on = !!value?.data.shared_contacts;
  const change = async () => {
    if (!value) return;
    let etag = value.etag;
    const words = on
      ? {title: t('unshareTitle'), text: <p>{t('unshareText')}</p>, yes: t('unshareDo')}
      : {title: t('shareTitle'), text: <p>{t('shareText')}</p>, yes: t('shareDo'), danger: true};
    await carryOut({
      ask: {...words, action: () => set(!on, etag)},
      send: async () => {
        etag = (await set(!on, etag)).etag;
      },
      back: () => set(on, etag),
      said: t(on ? 'unshareDone' : 'shareDone'),
      after: again,
    });
  };
  return (
    <div class="scroll">
      <div class="page settings-page">
        {error && <Failed error={error} again={again} />}
        <Late busy={busy && !value} lines={4}>
          {value && (
            <section class="section">
              <h2>{t('contacts')}</h2>
              <label class="check" title={may(scope) ? undefined : ui('needsScope', {scope})}>
                <input
                  type="checkbox"
                  aria-describedby={help}
                  checked={on}
                  disabled={!may(scope)}
                  onClick={(e) => {
                    e.preventDefault(); // it is switched when the platform has said so
                    void change();
                  }}
                />
                <strong>{t('share')}</strong>
              </label>
              <p class="muted" id={help}>
                {t('shareOff')} {t('shareText')}
              </p>
            </section>
          )}
        </Late>
      </div>
    </div>
  );
}
