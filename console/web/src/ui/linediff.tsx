// What has changed between two texts, line by line; long parts without a change are folded.
import {useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {texts} from '../lib/i18n';
import {lineDiff, type DiffLine} from '../lib/linediff';

const t = texts({
  none: ['No differences', '没有差异'],
  fold: [
    {one: '{n} line without a change', other: '{n} lines without a change'},
    {one: '{n} 行未更改', other: '{n} 行未更改'},
  ],
  sum: ['{plus} new, {minus} gone', '新增 {plus} 行，移除 {minus} 行'],
  label: ['Differences', '差异'],
  gone: ['Gone:', '移除：'],
  added: ['New:', '新增：'],
});

const around = 3; // lines without a change that are shown beside one

/** LineDiff shows what of `from` is gone and what of `to` is new. */
export function LineDiff({from, to}: {from: string; to: string}) {
  if (from === to) return <p class="muted">{t('none')}</p>;
  const lines = lineDiff(from, to);
  const count = (kind: DiffLine['kind']) => lines.filter((l) => l.kind === kind).length;
  return (
    <div class="linediff">
      <p class="faint num">{t('sum', {plus: count('new'), minus: count('gone')})}</p>
      <div class="lines mono" role="region" aria-label={t('label')} tabIndex={0}>
        {folded(lines)}
      </div>
    </div>
  );
}

function folded(lines: DiffLine[]): ComponentChildren[] {
  const near = new Set<number>();
  lines.forEach((l, i) => {
    if (l.kind !== 'same') for (let k = i - around; k <= i + around; k++) near.add(k);
  });
  const out: ComponentChildren[] = [];
  for (let i = 0; i < lines.length; i++) {
    let end = i;
    while (end < lines.length && !near.has(end)) end++;
    if (end - i > 1) {
      out.push(<Fold key={i} lines={lines.slice(i, end)} />);
      i = end - 1;
    } else out.push(<Line key={i} line={lines[i]!} />);
  }
  return out;
}

function Fold({lines}: {lines: DiffLine[]}) {
  const open = useSignal(false);
  if (open.value)
    return (
      <>
        {lines.map((l, i) => (
          <Line key={i} line={l} />
        ))}
      </>
    );
  return (
    <button
      type="button"
      class="fold"
      onClick={() => {
        open.value = true;
      }}
    >
      {t('fold', {n: lines.length})}
    </button>
  );
}

function Line({line: {kind, text}}: {line: DiffLine}) {
  const shown = text || ' ';
  if (kind === 'same') return <div>{shown}</div>;
  const Tag = kind === 'new' ? 'ins' : 'del';
  return (
    <Tag>
      <span class="visually-hidden">{t(kind === 'new' ? 'added' : 'gone')} </span>
      {shown}
    </Tag>
  );
}
