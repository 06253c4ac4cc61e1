// A button, which is off and says why where the session lacks the scope.
import type {ComponentChildren} from 'preact';
import {may} from '../../lib/session';
import {Icon, type IconName} from '../icon';
import {t} from '../text';

export interface ButtonProps {
  children?: ComponentChildren;
  icon?: IconName;
  label?: string; // for a button that is only an icon
  kind?: 'primary' | 'ghost' | 'danger' | 'danger primary';
  small?: boolean;
  busy?: boolean;
  disabled?: boolean;
  scope?: string; // without it the button is off, and says which scope it needs
  type?: 'button' | 'submit';
  onClick?: (event: MouseEvent) => void;
  class?: string;
  id?: string;
  popovertarget?: string;
  expanded?: boolean;
}

export function Button(p: ButtonProps) {
  const lacking = p.scope !== undefined && !may(p.scope);
  const off = p.disabled || lacking;
  return (
    <button
      id={p.id}
      type={p.type ?? 'button'}
      aria-label={p.label}
      aria-busy={p.busy || undefined}
      aria-expanded={p.expanded}
      title={lacking ? t('needsScope', {scope: p.scope!}) : p.label}
      class={['btn', p.kind, p.small && 'small', !p.children && 'icon', p.class].filter(Boolean).join(' ')}
      aria-disabled={off || undefined}
      onClick={(e) => {
        if (off || p.busy) e.preventDefault();
        else p.onClick?.(e);
      }}
    >
      {p.busy ? <span class="spin" aria-hidden="true" /> : p.icon && <Icon name={p.icon} />}
      {p.children}
    </button>
  );
}
