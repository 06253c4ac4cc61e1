import {effect, signal} from '@preact/signals';
import {store, stored} from './storage';

export type Theme = 'system' | 'light' | 'dark';

const first = stored('theme');
export const theme = signal<Theme>(first === 'light' || first === 'dark' ? first : 'system');

effect(() => {
  const root = document.documentElement;
  if (theme.value === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme.value;
});

export function setTheme(t: Theme): void {
  store('theme', t);
  theme.value = t;
}
