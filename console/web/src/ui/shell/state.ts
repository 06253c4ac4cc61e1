// What the frame of the console shows.
import {computed, signal} from '@preact/signals';
import {lang} from '../../lib/i18n';
import {go} from '../../lib/router';
import {may, signOut} from '../../lib/session';
import {screens, type Screen} from '../../lib/registry';

export const title = (s: Screen) => (lang.value === 'zh' ? s.title.zh : s.title.en);

export const offered = computed(() => screens.filter((s) => !s.scope || may(s.scope)));

export const paletteOpen = signal(false);
export const helpOpen = signal(false);
export const railOpen = signal(false);

export async function leave(): Promise<void> {
  const out = await signOut().catch(() => undefined);
  if (out?.sign_out_url)
    location.assign(out.sign_out_url); // the issuer's
  else await go('/console', {force: true});
}
