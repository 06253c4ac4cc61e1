// Which nodes of a tree are open, as it stands in the URL: `nodes` are those that show all their children, `way` is a
// node to which the tree shows the way alone. Without either the root is open.
import {param, setQuery} from '../../lib/router';
import type {Opened} from './forest';

const most = 300; // an address has its limits
const none = '-';

export function openedFromUrl(root: string): Opened {
  const way = param('way'),
    nodes = param('nodes');
  if (!nodes && !way) return {all: new Set([root]), way: ''};
  return {all: new Set(nodes === none ? [] : nodes.split('.').filter(Boolean)), way};
}

export function openedQuery(o: Opened): Record<string, string | null> {
  const nodes = [...o.all].slice(-most).join('.');
  return {nodes: nodes || (o.way ? null : none), way: o.way || null};
}

export function setOpened(o: Opened): Promise<void> {
  return setQuery(openedQuery(o), {replace: true, force: true});
}

/** toggled opens a node, or closes it; a node on the way to another becomes the end of the way. */
export function toggled(o: Opened, id: string, open: boolean, way: string[]): Opened {
  const all = new Set(o.all);
  if (open) {
    all.add(id);
    return {all, way: o.way};
  }
  all.delete(id);
  const on = way.includes(id) && id !== o.way;
  return {all, way: on ? (id === way[0] ? '' : id) : o.way};
}

/** reveal is the query that shows the way to a node alone, with its panel. */
export function reveal(id: string): Record<string, string | null> {
  return {q: null, nodes: null, way: id, open: id, tab: null};
}
