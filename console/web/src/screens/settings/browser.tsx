// What a person has chosen in this browser.
import {useSignal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import {lang, locale, setLang, type Lang} from '../../lib/i18n';
import {setSingleKeys, singleKeys} from '../../lib/keys';
import {setTheme, theme, type Theme} from '../../lib/theme';
import {Facts, SelectField} from '../../ui/record';
import {t as ui} from '../../ui/text';
import {t} from './text';

export function Browser() {
  return (
    <div class="scroll">
      <div class="page settings-page">
        <section class="section">
          <h2>{t('looks')}</h2>
          <div class="grid-2">
            <SelectField label={ui('theme')} value={theme.value} set={(v) => setTheme(v as Theme)}>
              {(['system', 'light', 'dark'] as const).map((v) => (
                <option key={v} value={v}>
                  {ui(v)}
                </option>
              ))}
            </SelectField>
            <SelectField label={ui('language')} value={lang.value} set={(v) => setLang(v as Lang)}>
              <option value="en" lang="en">
                English
              </option>
              <option value="zh" lang="zh-Hans">
                简体中文
              </option>
            </SelectField>
          </div>
        </section>
        <section class="section">
          <h2>{t('keyboard')}</h2>
          <label class="check">
            <input
              type="checkbox"
              checked={singleKeys.value}
              onChange={(e) => setSingleKeys(e.currentTarget.checked)}
            />
            <span>
              <strong>{ui('singleKeys')}</strong>
              <br />
              <span class="muted">{ui('singleKeysHint')}</span>
            </span>
          </label>
        </section>
        <section class="section">
          <h2>{t('time')}</h2>
          <p class="muted">{t('zoneText')}</p>
          <Clocks />
        </section>
        <p class="faint">{t('keptText')}</p>
      </div>
    </div>
  );
}

/** Clocks shows the present minute here and in UTC. */
function Clocks() {
  const now = useSignal(new Date());
  useEffect(() => {
    const timer = setInterval(() => {
      now.value = new Date();
    }, 1000);
    return () => clearInterval(timer);
  }, []);
  const at = (timeZone?: string) =>
    new Intl.DateTimeFormat(locale(), {
      year: 'numeric',
      month: 'short',
      day: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      timeZone,
      timeZoneName: 'short',
    }).format(now.value);
  return (
    <Facts
      facts={[
        [t('zone'), Intl.DateTimeFormat().resolvedOptions().timeZone],
        [t('here'), <span class="num">{at()}</span>],
        [t('inUtc'), <span class="num">{at('UTC')}</span>],
      ]}
    />
  );
}
