// What belongs to a record, in a list: a name and facts in each line, and what can be done with it.
import type {ComponentChildren} from 'preact';
import {Icon, type IconName} from './icon';

export function Entries({children}: {children: ComponentChildren}) {
  return <ul class="entries">{children}</ul>;
}

export function Entry({
  icon,
  title,
  href,
  facts,
  clip,
  current,
  children,
}: {
  icon?: IconName;
  title: ComponentChildren;
  href?: string; // where the title leads
  facts: (string | false)[];
  clip?: boolean; // the facts stay in one line
  current?: boolean;
  children?: ComponentChildren; // tags and buttons, at the end
}) {
  return (
    <li aria-current={current || undefined}>
      {icon && <Icon name={icon} />}
      <div class="grow">
        {href ? (
          <a class="clip" href={href}>
            <strong>{title}</strong>
          </a>
        ) : (
          <strong class="clip">{title}</strong>
        )}
        <span class={clip ? 'faint clip' : 'faint'}>{facts.filter(Boolean).join(' · ')}</span>
      </div>
      {children}
    </li>
  );
}
