// The head of the screen: what signs people in, the ways that use it, and the steps that they make up.
import type {ComponentChildren} from 'preact';
import {go, href} from '../../lib/router';
import {Tabs} from '../../ui/basics';
import {t as ui} from '../../ui/text';
import {t} from './text';

export type Part = 'connections' | 'methods' | 'templates';

export const partHref = (part: Part, query: Record<string, string> = {}) =>
  href('connections', part === 'connections' ? [] : [part], query);

export function Frame({
  part,
  total,
  actions,
  children,
}: {
  part: Part;
  total: number | undefined;
  actions: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <div class="connections-screen">
      <header class="screen-head">
        <h1>
          {t('title')}
          {total !== undefined && (
            <span class="count num" role="status">
              {ui('showing', {n: total})}
            </span>
          )}
        </h1>
        <div class="actions">{actions}</div>
      </header>
      <Tabs
        tabs={(['connections', 'methods', 'templates'] as const).map((name) => ({name, label: t(name)}))}
        current={part}
        label={t('title')}
        choose={(name) => void go(partHref(name as Part))}
      />
      <p class="note connections-note">{t('whatSignsIn')}</p>
      {children}
    </div>
  );
}
