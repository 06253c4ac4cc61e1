// Menus, and the layer beside a button that they open.
import type {ComponentChildren} from 'preact';
import {useId, useLayoutEffect, useRef} from 'preact/hooks';
import {useSignal} from '@preact/signals';
import {may} from '../../lib/session';
import {Icon, type IconName} from '../icon';
import {t} from '../text';
import {Button, type ButtonProps} from './button';

export interface MenuItem {
  label: string;
  icon?: IconName;
  href?: string;
  danger?: boolean;
  ticked?: boolean; // a choice among several
  scope?: string;
  disabled?: boolean;
  keepOpen?: boolean;
  line?: boolean; // a line above
  onClick?: () => void;
}

/** Menu is a button that opens a list of actions. */
export function Menu({
  items,
  title,
  children,
  ...button
}: {items: MenuItem[]; title?: string; children?: ComponentChildren} & Omit<
  ButtonProps,
  'onClick' | 'popovertarget' | 'expanded'
>) {
  return (
    <Popup
      title={title}
      trigger={(toggle, open) => (
        <Button {...button} expanded={open} onClick={toggle}>
          {children}
        </Button>
      )}
    >
      {(close) => {
        const icons = items.some((item) => item.icon);
        return items.map((item) => <MenuRow key={item.label} item={item} icons={icons} close={close} />);
      }}
    </Popup>
  );
}

function MenuRow({item, icons, close}: {item: MenuItem; icons: boolean; close: () => void}) {
  const lacking = item.scope !== undefined && !may(item.scope);
  const off = item.disabled || lacking;
  const role = item.ticked === undefined ? 'menuitem' : 'menuitemradio';
  const inner = (
    <>
      {item.ticked !== undefined && <span class="tick">{item.ticked && <Icon name="check" size={14} />}</span>}
      {item.icon ? <Icon name={item.icon} /> : icons && <span class="no-icon" />}
      <span class="grow">{item.label}</span>
    </>
  );
  const props = {
    role,
    class: item.danger ? 'danger' : undefined,
    tabIndex: -1,
    'aria-disabled': off || undefined,
    'aria-checked': item.ticked,
    title: lacking ? t('needsScope', {scope: item.scope!}) : undefined,
  } as const;
  const act = (e: Event) => {
    if (off) return e.preventDefault();
    if (!item.keepOpen) close();
    item.onClick?.();
  };
  return (
    <>
      {item.line && <hr />}
      {item.href ? (
        <a {...props} href={item.href} onClick={act}>
          {inner}
        </a>
      ) : (
        <button type="button" {...props} onClick={act}>
          {inner}
        </button>
      )}
    </>
  );
}

/** Popup is what Menu and filters open: a layer beside a button, closed by Esc or a click elsewhere. */
export function Popup({
  trigger,
  children,
  title,
  role = 'menu',
}: {
  trigger: (toggle: () => void, open: boolean) => ComponentChildren;
  children: (close: () => void) => ComponentChildren;
  title?: string;
  role?: 'menu' | 'dialog';
}) {
  const open = useSignal(false);
  const anchor = useRef<HTMLSpanElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const id = useId();
  const close = () => layer.current?.hidePopover();
  const place = () => {
    const a = anchor.current!.getBoundingClientRect(),
      l = layer.current!;
    const width = l.offsetWidth,
      height = l.offsetHeight;
    const left = a.left + width > innerWidth - 8 ? Math.max(8, a.right - width) : a.left;
    const below = a.bottom + 4 + height <= innerHeight - 8;
    l.style.left = `${left}px`;
    l.style.top = `${below ? a.bottom + 4 : Math.max(8, a.top - height - 4)}px`;
  };
  const items = () => [...layer.current!.querySelectorAll<HTMLElement>('[role^="menuitem"], input, button')];
  useLayoutEffect(() => {
    // what it has is there now: it has a size, and something that can have the focus
    if (!open.value) return;
    place();
    const all = items();
    // a search goes first: the list below it may be long
    (all.find((i) => i.matches('[autofocus]')) ?? all.find((i) => i.ariaChecked === 'true') ?? all[0])?.focus();
  }, [open.value]);
  return (
    <span style={{display: 'contents'}}>
      <span
        ref={(el) => {
          if (el) anchor.current = el;
        }}
        style={{display: 'inline-flex', minWidth: 0, maxWidth: '100%'}}
      >
        {trigger(() => (open.value ? close() : layer.current?.showPopover()), open.value)}
      </span>
      <div
        ref={layer}
        id={id}
        popover="auto"
        class="menu"
        role={role}
        aria-label={title}
        onToggle={(e) => {
          open.value = (e as ToggleEvent).newState === 'open';
        }}
        onKeyDown={(e) => {
          const all = items(),
            at = all.indexOf(document.activeElement as HTMLElement);
          const to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1}[e.key];
          if (
            to === undefined ||
            ((e.target as HTMLElement).tagName === 'INPUT' && (e.key === 'Home' || e.key === 'End'))
          )
            return;
          e.preventDefault();
          all[(to + all.length) % all.length]?.focus();
        }}
      >
        {open.value && (
          <>
            {title && <div class="caps">{title}</div>}
            {children(close)}
          </>
        )}
      </div>
    </span>
  );
}
