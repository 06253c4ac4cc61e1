// The navigation: tenant, screens, looks, who is signed in.
import {useSignal} from '@preact/signals';
import {lang, setLang, texts, type Lang} from '../../lib/i18n';
import type {Group} from '../../lib/registry';
import {go, href, place} from '../../lib/router';
import {may, session} from '../../lib/session';
import {setTheme, theme, type Theme} from '../../lib/theme';
import {Button, Menu} from '../basics';
import {Dialog} from '../dialog';
import {Icon, Mark} from '../icon';
import {t} from '../text';
import {helpOpen, leave, offered, paletteOpen, railOpen, title} from './state';

const groups = texts({
  home: ['', ''],
  people: ['People', '人员'],
  access: ['Access', '访问'],
  activity: ['Activity', '活动'],
  automation: ['Automation', '自动化'],
  setup: ['Setup', '配置'],
});

export function Rail() {
  const present = [...new Set(offered.value.map((s) => s.group))];
  return (
    <div class={railOpen.value ? 'rail open' : 'rail'}>
      <TenantMenu />
      <button
        type="button"
        class="find"
        onClick={() => {
          paletteOpen.value = true;
        }}
      >
        <Icon name="search" />
        <span class="grow clip" style={{textAlign: 'start'}}>
          {t('palette')}
        </span>
        <kbd>Ctrl K</kbd>
      </button>
      <nav aria-label={t('navigation')}>
        {present.map((g: Group) => (
          <div key={g}>
            {groups(g) && (
              <div class="caps" id={`nav-${g}`}>
                {groups(g)}
              </div>
            )}
            <ul aria-labelledby={groups(g) ? `nav-${g}` : undefined}>
              {offered.value
                .filter((s) => s.group === g)
                .map((s) => (
                  <li key={s.name}>
                    <a
                      class="item"
                      href={href(s.name)}
                      aria-current={s.name === place.value.screen ? 'page' : undefined}
                    >
                      <Icon name={s.icon} />
                      <span class="clip">{title(s)}</span>
                    </a>
                  </li>
                ))}
            </ul>
          </div>
        ))}
      </nav>
      <div class="rail-foot">
        <Looks />
        <span class="grow" />
        <Button
          kind="ghost"
          icon="help"
          label={t('help')}
          onClick={() => {
            helpOpen.value = true;
          }}
        />
        <Menu
          kind="ghost"
          icon="member"
          label={t('signedInAs')}
          title={session.value.name ?? session.value.client_id}
          items={[
            {label: t('settings'), icon: 'gear', href: href('settings')},
            {label: t('signOut'), icon: 'out', line: true, onClick: () => void leave()},
          ]}
        />
      </div>
    </div>
  );
}

function TenantMenu() {
  const asking = useSignal(false);
  return (
    <>
      <button
        type="button"
        class="brand"
        aria-haspopup={may('platform:admin') ? 'dialog' : undefined}
        onClick={() => {
          if (may('platform:admin')) asking.value = true;
        }}
      >
        <Mark />
        <span class="grow">
          <span class="name" style={{display: 'block'}}>
            idplatform
          </span>
          <span class="tenant clip" style={{display: 'block'}}>
            {place.value.tenant}
          </span>
        </span>
      </button>
      {asking.value && (
        <TenantDialog
          close={() => {
            asking.value = false;
          }}
        />
      )}
    </>
  );
}

function TenantDialog({close}: {close: () => void}) {
  const name = useSignal(place.value.tenant);
  const ok = () => /^[a-z0-9_-]{1,63}$/.test(name.value);
  const open = () => {
    if (!ok()) return;
    close();
    void go(href(place.value.screen || 'start', [], {}, name.value));
  };
  return (
    <Dialog
      title={t('otherTenant')}
      onClose={close}
      foot={
        <Button kind="primary" disabled={!ok()} onClick={open}>
          {t('open')}
        </Button>
      }
    >
      <div class="field">
        <label for="tenant-name">{t('tenantName')}</label>
        <input
          id="tenant-name"
          class="input mono"
          autocomplete="off"
          spellcheck={false}
          value={name.value}
          onInput={(e) => {
            name.value = e.currentTarget.value.toLowerCase();
          }}
          onKeyDown={(e) => {
            if (e.key === 'Enter') open();
          }}
        />
      </div>
    </Dialog>
  );
}

/** Looks chooses theme and language; it is also on the page of the sign-in. */
export function Looks() {
  const themes: [Theme, string][] = [
    ['system', t('system')],
    ['light', t('light')],
    ['dark', t('dark')],
  ];
  const languages: [Lang, string][] = [
    ['en', 'English'],
    ['zh', '简体中文'],
  ];
  return (
    <>
      <Menu
        kind="ghost"
        icon={theme.value === 'dark' ? 'moon' : theme.value === 'light' ? 'sun' : 'screen'}
        label={t('theme')}
        title={t('theme')}
        items={themes.map(([v, label]) => ({label, ticked: theme.value === v, onClick: () => setTheme(v)}))}
      />
      <Menu
        kind="ghost"
        icon="globe"
        label={t('language')}
        title={t('language')}
        items={languages.map(([v, label]) => ({label, ticked: lang.value === v, onClick: () => setLang(v)}))}
      />
    </>
  );
}
