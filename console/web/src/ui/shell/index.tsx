// The frame around every screen.
import {signal, useSignal} from '@preact/signals';
import type {ComponentType} from 'preact';
import {useEffect} from 'preact/hooks';
import {asProblem} from '../../lib/api';
import {lang} from '../../lib/i18n';
import {useKey} from '../../lib/keys';
import {useLate} from '../../lib/load';
import {href, place} from '../../lib/router';
import {session} from '../../lib/session';
import {screens, type Screen} from '../../lib/registry';
import {Blank, Button, Failed, Skeleton} from '../basics';
import {Mark} from '../icon';
import {t} from '../text';
import {Help} from './help';
import {Palette} from './palette';
import {Rail} from './rail';
import {helpOpen, paletteOpen, railOpen, title} from './state';

export function Shell() {
  useKey('Ctrl+k', () => {
    paletteOpen.value = !paletteOpen.value;
  });
  useKey('?', () => {
    helpOpen.value = true;
  });
  useEffect(() => {
    railOpen.value = false;
  }, [place.value]);
  const screen = screens.find((s) => s.name === place.value.screen);
  useEffect(() => {
    document.title = [screen && title(screen), place.value.tenant, 'idplatform'].filter(Boolean).join(' · ');
  }, [screen, lang.value, place.value.tenant]);
  return (
    <div class="shell">
      <a
        class="btn skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        {t('skip')}
      </a>
      {session.value.banner && (
        <div class="banner" role="note">
          {session.value.banner}
        </div>
      )}
      <div class="topbar">
        <Button
          kind="ghost"
          icon="menu"
          label={t('menu')}
          expanded={railOpen.value}
          onClick={() => {
            railOpen.value = true;
          }}
        />
        <Mark size={18} />
        <span class="name grow clip">{screen ? title(screen) : 'idplatform'}</span>
        <Button
          kind="ghost"
          icon="search"
          label={t('palette')}
          onClick={() => {
            paletteOpen.value = true;
          }}
        />
      </div>
      {railOpen.value && (
        <button
          type="button"
          class="rail-veil"
          aria-label={t('close')}
          onClick={() => {
            railOpen.value = false;
          }}
        />
      )}
      <Rail />
      <main class="main" id="main" tabIndex={-1}>
        <Loaded screen={screen} />
      </main>
      {paletteOpen.value && (
        <Palette
          close={() => {
            paletteOpen.value = false;
          }}
        />
      )}
      {helpOpen.value && (
        <Help
          close={() => {
            helpOpen.value = false;
          }}
        />
      )}
    </div>
  );
}

const parts = signal<Record<string, ComponentType>>({});

/** Loaded shows a screen as soon as its code is there. */
function Loaded({screen}: {screen: Screen | undefined}) {
  const failed = useSignal<unknown>(undefined);
  const part = screen && parts.value[screen.name];
  const late = useLate(!!screen && !part && !failed.value);
  useEffect(() => {
    failed.value = undefined;
    if (!screen || part) return;
    screen.load().then(
      (m) => {
        parts.value = {...parts.value, [screen.name]: m.default};
      },
      (e) => {
        failed.value = e;
      },
    );
  }, [screen]);
  if (!screen) {
    return (
      <Blank
        icon="compass"
        title={t('noScreen')}
        action={
          <a class="btn" href={href('start')}>
            {t('toStart')}
          </a>
        }
      >
        {t('noScreenHint')}
      </Blank>
    );
  }
  if (failed.value)
    return (
      <div class="screen">
        <div class="page">
          <h1>{t('screenFailed')}</h1>
          {/* A browser may keep the failure of a script for as long as its page, so the page is loaded anew. */}
          <Failed error={asProblem(failed.value)} again={() => location.reload()} />
        </div>
      </div>
    );
  const Part = part;
  // Another tenant's records are others: nothing of the screen is kept.
  if (Part) return <Part key={`${screen.name} ${place.value.tenant}`} />;
  return late ? (
    <div class="screen">
      <div class="page">
        <Skeleton lines={6} />
      </div>
    </div>
  ) : null;
}
