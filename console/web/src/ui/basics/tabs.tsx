import {useEffect, useRef} from 'preact/hooks';

export interface Tab {
  name: string;
  label: string;
}

/** Tabs follows the ARIA pattern: arrows move, the tab shown is the one in the URL. */
export function Tabs({
  tabs,
  current,
  choose,
  label,
}: {
  tabs: Tab[];
  current: string;
  choose: (name: string) => void;
  label: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // of many tabs on a narrow screen, the one that is shown may be out of sight
    const list = box.current!,
      tab = list.querySelector<HTMLElement>('[aria-selected="true"]');
    if (tab && list.scrollWidth > list.clientWidth) list.scrollLeft = tab.offsetLeft - list.clientWidth / 3;
  }, [current]);
  return (
    <div
      ref={box}
      class="tabs"
      role="tablist"
      aria-label={label}
      onKeyDown={(e) => {
        const at = tabs.findIndex((x) => x.name === current);
        const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1}[e.key];
        if (to === undefined) return;
        e.preventDefault();
        const next = tabs[(to + tabs.length) % tabs.length]!;
        choose(next.name);
        (e.currentTarget as HTMLElement).querySelector<HTMLElement>(`[data-tab="${next.name}"]`)?.focus();
      }}
    >
      {tabs.map((x) => (
        <button
          key={x.name}
          type="button"
          role="tab"
          data-tab={x.name}
          aria-selected={x.name === current}
          tabIndex={x.name === current ? 0 : -1}
          onClick={() => choose(x.name)}
        >
          {x.label}
        </button>
      ))}
    </div>
  );
}
