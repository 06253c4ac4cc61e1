// Settings: the session, this browser, the tenant's users, and what an administrator of the platform sees of it.
import '../../ui/kit';
import type {JSX} from 'preact';
import {go, href, place} from '../../lib/router';
import {may} from '../../lib/session';
import {Tabs} from '../../ui/basics';
import {Browser} from './browser';
import {Keys} from './keys';
import {LetterPanel, Letters} from './letters';
import {Platform} from './platform';
import {Session} from './session';
import {Tenants} from './tenants';
import {t} from './text';
import {Users} from './users';

const parts = {session: Session, browser: Browser, platform: Platform, users: Users} as const;
const adminParts = {keys: Keys, tenants: Tenants, letters: Letters} as const;

export default function Settings() {
  const {users, ...open} = parts;
  const all: Record<string, () => JSX.Element> = {
    ...open,
    ...(may('users:read') && {users}),
    ...(may('platform:admin') && adminParts),
  };
  const asked = place.value.rest[0] ?? '';
  const name = Object.hasOwn(all, asked) ? asked : 'session';
  const Part = all[name]!;
  return (
    <>
      <div class="settings-screen">
        <header class="screen-head">
          <h1>{t('settings')}</h1>
        </header>
        <Tabs
          tabs={Object.keys(all).map((n) => ({name: n, label: t(n as keyof typeof parts)}))}
          current={name}
          label={t('settings')}
          choose={(n) => void go(href('settings', n === 'session' ? [] : [n]))}
        />
        <Part key={name} />
      </div>
      {name === 'letters' && <LetterPanel />}
    </>
  );
}
