// The difference of two texts by lines (Myers, "An O(ND) Difference Algorithm"): the shortest script of lines that go
// and lines that come.
export interface DiffLine {
  kind: 'same' | 'gone' | 'new';
  text: string;
}

const mostEdits = 600; // beyond, the texts have little in common: everything between what they share goes and comes

export function lineDiff(from: string, to: string): DiffLine[] {
  const a = from.split('\n'),
    b = to.split('\n');
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const lines = (kind: DiffLine['kind'], texts: string[]) => texts.map((text): DiffLine => ({kind, text}));
  return [
    ...lines('same', a.slice(0, head)),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...lines('same', a.slice(a.length - tail)),
  ];
}

function middle(a: string[], b: string[]): DiffLine[] {
  const trail = furthest(a, b);
  const all = (kind: DiffLine['kind'], texts: string[]) => texts.map((text): DiffLine => ({kind, text}));
  if (!trail) return [...all('gone', a), ...all('new', b)];
  // Back along the trail, from the end of both texts to their start.
  const lines: DiffLine[] = [];
  let x = a.length,
    y = b.length;
  for (let d = trail.length - 1; d >= 0; d--) {
    const reach = trail[d]!,
      k = x - y;
    const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const fromX = d === 0 ? 0 : reach.get(down ? k + 1 : k - 1)!,
      fromY = d === 0 ? 0 : fromX - (down ? k + 1 : k - 1);
    while (x > fromX && y > fromY && a[x - 1] === b[y - 1]) {
      lines.push({kind: 'same', text: a[x - 1]!});
      x--;
      y--;
    }
    if (d === 0) break;
    if (down) lines.push({kind: 'new', text: b[--y]!});
    else lines.push({kind: 'gone', text: a[--x]!});
  }
  return lines.reverse();
}

/** furthest returns, before each number of edits, how far into a one gets on each diagonal; undefined if too many. */
function furthest(a: string[], b: string[]): Map<number, number>[] | undefined {
  const trail: Map<number, number>[] = [];
  const reach = new Map<number, number>([[1, 0]]);
  for (let d = 0; d <= Math.min(a.length + b.length, mostEdits); d++) {
    trail.push(new Map(reach));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) return trail;
    }
  }
  return undefined;
}
