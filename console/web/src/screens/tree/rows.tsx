// The rows of a tree: those on the screen alone are drawn. The keyboard is that of the ARIA tree pattern.
import {useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useEffect, useId, useMemo, useRef} from 'preact/hooks';
import type {TreeNode} from '@idplatform/sdk';
import {number} from '../../lib/format';
import {changes, useLate} from '../../lib/load';
import {Button, Failed, Tag, problemTitle} from '../../ui/basics';
import {Icon} from '../../ui/icon';
import {t as ui} from '../../ui/text';
import {Forest, Layout, pageSize, type Opened, type Row} from './forest';
import {toggled} from './opened';
import {t} from './text';

const rowHeight = 34;

export interface TreeProps {
  root: string;
  label: string;
  opened: Opened;
  setOpened: (o: Opened) => void;
  current?: string;
  choose: (node: TreeNode) => void;
  onKey?: (event: KeyboardEvent, node: TreeNode) => boolean | void;
  drop?: (moved: string, to: TreeNode) => void; // without it nothing can be dragged
  cut?: string; // a node that is about to be moved
  end?: (node: TreeNode) => ComponentChildren; // at the end of a row
}

export function Tree(p: TreeProps) {
  const forest = useMemo(() => new Forest(p.root), [p.root]);
  const box = useRef<HTMLDivElement>(null);
  const view = useSignal<[number, number]>([0, 40]);
  const active = useSignal(p.current ?? '');
  const over = useSignal('');
  const typed = useRef({text: '', time: 0});
  const place = useRef(0);
  const prefix = useId();
  const change = changes.value.nodes ?? 0;
  useEffect(() => {
    void forest.load(p.root);
  }, [forest]);
  useEffect(() => {
    if (!change) return;
    forest.refresh();
    if (p.opened.way) void forest.load(p.opened.way); // it may be somewhere else now
  }, [change]);
  const known = p.opened.way === '' || forest.nodes.has(p.opened.way);
  useEffect(() => {
    if (p.opened.way) void forest.load(p.opened.way);
  }, [forest, p.opened.way]);
  void forest.version.value;
  const layout = new Layout(forest, p.opened);
  const [first, last] = view.value;
  const rows: {i: number; row: Row}[] = [];
  for (let i = first; i < Math.min(last, layout.length); i++) {
    const row = layout.at(i);
    if (row) rows.push({i, row});
  }
  useEffect(() => {
    // the pages on the screen
    for (const {row} of rows)
      if (row.kind === 'node' && row.branch) forest.want(row.branch.id, Math.floor(row.index / pageSize));
  });
  const measure = () => {
    if (!box.current) return; // gone already
    const el = box.current!;
    const from = Math.max(0, Math.floor(el.scrollTop / rowHeight) - 8),
      to = Math.ceil((el.scrollTop + el.clientHeight) / rowHeight) + 8;
    if (from !== view.value[0] || to !== view.value[1]) view.value = [from, to];
  };
  useEffect(() => {
    const watch = new ResizeObserver(measure);
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  const show = (i: number) => {
    const el = box.current,
      top = i * rowHeight;
    if (!el) return;
    if (top < el.scrollTop) el.scrollTop = top;
    else if (top + rowHeight > el.scrollTop + el.clientHeight) el.scrollTop = top + rowHeight - el.clientHeight;
  };
  useEffect(() => {
    // the end of the way comes into view once it is there
    const at = p.opened.way && known ? layout.indexOf(p.opened.way) : -1;
    if (at < 0) return;
    active.value = p.opened.way;
    show(at);
  }, [p.opened.way, known]);
  useEffect(() => {
    if (p.current) active.value = p.current;
  }, [p.current]);

  const toggle = (node: TreeNode, open: boolean) =>
    p.setOpened(toggled(p.opened, node.id, open, forest.nodes.get(p.opened.way)?.path ?? []));
  const idOf = (row: Row | undefined): string =>
    row?.kind === 'node'
      ? (row.node?.id ?? `#${row.branch?.id}/${row.index}`)
      : row?.kind === 'others'
        ? `+${row.node.id}`
        : '';
  const indexOf = (id: string): number => {
    const [branch, index] = id.startsWith('#') ? id.slice(1).split('/') : [];
    const came = branch && forest.child(forest.branch(branch), Number(index)); // it was loading
    if (came) return layout.indexOf(came.id);
    if (id.startsWith('+') || id.startsWith('#')) {
      for (let i = first; i < Math.min(last, layout.length); i++) if (idOf(layout.at(i)) === id) return i;
      return -1;
    }
    return layout.indexOf(id);
  };
  const found = indexOf(active.value);
  if (found >= 0) place.current = found;
  const at = place.current; // where it was, if its page is dropped
  const go = (i: number) => {
    const to = Math.max(0, Math.min(layout.length - 1, i));
    show(to);
    active.value = idOf(layout.at(to));
  };
  const search = (key: string) => {
    const now = Date.now();
    typed.current = {text: now - typed.current.time < 700 ? typed.current.text + key : key, time: now};
    for (let k = 1; k <= Math.min(layout.length, 400); k++) {
      const i = (at + k - (typed.current.text.length > 1 ? 1 : 0)) % layout.length,
        row = layout.at(i);
      if (row?.kind === 'node' && row.node?.name.toLowerCase().startsWith(typed.current.text.toLowerCase()))
        return go(i);
    }
  };
  const key = (e: KeyboardEvent) => {
    const row = layout.at(at);
    if (e.target !== box.current || !row) return;
    const node = row.kind === 'node' || row.kind === 'others' ? row.node : undefined;
    if (node && row.kind === 'node' && p.onKey?.(e, node)) return e.preventDefault();
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const page = Math.max(1, Math.floor(box.current!.clientHeight / rowHeight) - 1);
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: layout.length - 1,
      PageDown: at + page,
      PageUp: at - page,
    };
    if (e.key in steps) go(steps[e.key]!);
    else if (e.key === 'ArrowRight' && row.kind === 'node' && node?.child_count)
      row.open ? go(at + 1) : toggle(node, true);
    else if (e.key === 'ArrowLeft' && row.kind === 'node' && node) {
      if (row.open) toggle(node, false);
      else if (node.parent_id && layout.indexOf(node.parent_id) >= 0) go(layout.indexOf(node.parent_id));
    } else if ((e.key === 'Enter' || e.key === ' ') && node)
      row.kind === 'others' ? toggle(node, true) : p.choose(node);
    else if (e.key.length === 1 && !'/?'.includes(e.key)) search(e.key);
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const busy = layout.length === 0 && !forest.failed.value;
  const late = useLate(busy);
  return (
    <div
      class="tree"
      ref={box}
      role="tree"
      aria-label={p.label}
      tabIndex={0}
      aria-busy={busy}
      onScroll={measure}
      onKeyDown={key}
      aria-activedescendant={layout.length ? prefix + idOf(layout.at(at)) : undefined}
    >
      {forest.failed.value && layout.length === 0 && (
        <div class="tree-note">
          <Failed error={forest.failed.value} again={() => void forest.load(p.root)} />
        </div>
      )}
      {late &&
        Array.from({length: 8}, (_, i) => (
          <div key={i} class="tree-row" role="presentation">
            <span class="skeleton" style={{width: `${40 - ((i * 7) % 22)}%`, marginInlineStart: `${i ? 40 : 16}px`}} />
          </div>
        ))}
      <div role="presentation" style={{height: `${layout.length * rowHeight}px`, position: 'relative'}}>
        <div role="presentation" style={{transform: `translateY(${first * rowHeight}px)`}}>
          {rows.map(({i, row}) => (
            <RowView
              key={idOf(row) || row.kind}
              row={row}
              id={prefix + idOf(row)}
              p={p}
              forest={forest}
              active={active.value !== '' && i === at}
              over={over}
              toggle={toggle}
              pick={(node) => {
                active.value = node.id;
                p.choose(node);
              }}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

interface RowProps {
  row: Row;
  id: string;
  p: TreeProps;
  forest: Forest;
  active: boolean;
  over: {value: string};
  toggle: (node: TreeNode, open: boolean) => void;
  pick: (node: TreeNode) => void;
}

function RowView({row, id, p, forest, active, over, toggle, pick}: RowProps) {
  const pad = {paddingInlineStart: `calc(${(row.level - 1) * 20}px + var(--tree-start))`};
  if (row.kind === 'failed') {
    return (
      <div class="tree-row" role="presentation" style={pad}>
        <Icon name="alert" />
        <span class="clip">{problemTitle(row.branch.error!)}</span>
        <Button small onClick={() => forest.retry(row.branch.id)}>
          {ui('retry')}
        </Button>
      </div>
    );
  }
  if (row.kind === 'others') {
    return (
      <div
        id={id}
        class={`tree-row others ${active ? 'active' : ''}`}
        role="treeitem"
        aria-level={row.level}
        style={pad}
        onClick={() => toggle(row.node, true)}
      >
        <Icon name="more" />
        <span class="clip">{t('showOthers', {n: row.count})}</span>
      </div>
    );
  }
  if (row.kind === 'loading' || !row.node) {
    return (
      <div
        id={id}
        class={`tree-row ${active ? 'active' : ''}`}
        role="treeitem"
        aria-level={row.level}
        aria-label={ui('loading')}
        style={pad}
      >
        <span class="skeleton" style={{width: '180px', marginInlineStart: '26px'}} />
      </div>
    );
  }
  const node = row.node;
  const classes = [
    'tree-row',
    active && 'active',
    node.id === p.current && 'current',
    node.id === p.cut && 'cut',
    over.value === node.id && 'over',
    node.status === '0' && 'off',
  ];
  return (
    <div
      id={id}
      class={classes.filter(Boolean).join(' ')}
      role="treeitem"
      style={pad}
      aria-level={row.level}
      aria-posinset={row.pos}
      aria-setsize={row.size}
      aria-expanded={node.child_count > 0 ? row.open : undefined}
      aria-selected={node.id === p.current}
      draggable={p.drop !== undefined && node.parent_id !== ''}
      onDragStart={(e) => e.dataTransfer?.setData('text/x-node', node.id)}
      onDragOver={(e) => {
        if (p.drop && e.dataTransfer?.types.includes('text/x-node')) {
          e.preventDefault();
          over.value = node.id;
        }
      }}
      onDragLeave={() => {
        if (over.value === node.id) over.value = '';
      }}
      onDrop={(e) => {
        e.preventDefault();
        over.value = '';
        const moved = e.dataTransfer?.getData('text/x-node');
        if (moved && moved !== node.id) p.drop?.(moved, node);
      }}
      onClick={(e) => {
        if (!(e.target as Element).closest('a, button')) pick(node);
      }}
    >
      {node.child_count > 0 ? (
        <button
          type="button"
          class="twist"
          tabIndex={-1}
          aria-hidden="true"
          data-open={row.open}
          onClick={() => toggle(node, !row.open)}
        >
          <Icon name="right" size={14} />
        </button>
      ) : (
        <span class="twist" />
      )}
      <Icon
        name={node.is_pointer === '1' ? 'link' : node.is_dynamic === '1' ? 'pulse' : node.parent_id ? 'box' : 'tree'}
      />
      <span class="clip name">{node.name}</span>
      <Marks node={node} />
      {node.child_count > 0 && (
        <>
          <span class="count num faint" aria-hidden="true" title={t('children', {n: node.child_count})}>
            {number(node.child_count)}
          </span>
          <span class="visually-hidden">{t('children', {n: node.child_count})}</span>
        </>
      )}
      <span class="grow" />
      {p.end?.(node)}
    </div>
  );
}

/** Marks say what is special about a node. */
export function Marks({node}: {node: TreeNode}) {
  return (
    <>
      {node.is_pointer === '1' && <Tag>{t('pointer')}</Tag>}
      {node.is_dynamic === '1' && <Tag accent>{t('dynamic')}</Tag>}
      {node.status === '0' && <Tag>{t('disabled')}</Tag>}
    </>
  );
}
