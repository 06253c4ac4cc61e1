// Log lines that follow: the newest are asked for again and again, and stay in view unless somebody scrolls up.
import {useSignal} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import type {JobLine, JobLineList} from '@idplatform/sdk';
import {aborted, asProblem, type ApiError} from '../../lib/api';
import {compare, dateTime} from '../../lib/format';
import {usePoll} from '../../lib/poll';
import {Button, Failed, Late} from '../../ui/basics';
import {clock} from '../../ui/origin';
import {t} from './text';

export const linesPerPage = 200;
const most = 2000; // lines that are kept of a log that is followed

export interface LogSource {
  /** A page of lines, newest first. */
  load: (pageToken: string | undefined, signal: AbortSignal) => Promise<JobLineList>;
  live: boolean; // whether lines can still be added
  showRun?: (line: JobLine) => preact.ComponentChildren;
}

export function LogView({load, live, showRun}: LogSource) {
  const lines = useSignal<JobLine[]>([]);
  const earlier = useSignal<string | undefined>(undefined); // the token of lines before those shown
  const state = useSignal<{loaded: boolean; busy: boolean; error?: ApiError}>({loaded: false, busy: false});
  const abort = useRef(new AbortController());
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useSignal(true);
  const merge = (more: JobLine[]) => {
    const all = new Map([...lines.value, ...more].map((l) => [l.id, l]));
    lines.value = [...all.values()].sort((a, b) =>
      a.time === b.time ? compare(a.id, b.id) : a.time < b.time ? -1 : 1,
    );
  };
  const run = async (what: (signal: AbortSignal) => Promise<void>) => {
    if (state.value.busy) return;
    state.value = {...state.value, busy: true};
    const {signal} = abort.current;
    try {
      await what(signal);
      state.value = {loaded: true, busy: false};
    } catch (e) {
      if (!aborted(e) && !signal.aborted) state.value = {...state.value, busy: false, error: asProblem(e)};
    }
  };
  // The newest lines, back to those that are known. A log that has grown too long begins anew with them.
  const newest = () =>
    run(async (signal) => {
      const first = lines.value.length === 0;
      let token: string | undefined;
      do {
        const page = await load(token, signal);
        if (signal.aborted) return;
        const items = page.items ?? [],
          known = new Set(lines.value.map((l) => l.id)),
          anew = first || (!token && atEnd.value && lines.value.length > most);
        if (anew) lines.value = [];
        merge(items);
        token = page.next_page_token;
        if (anew) earlier.value = token;
        if (anew || items.some((l) => known.has(l.id))) return;
      } while (token);
    });
  useEffect(() => {
    void newest(); // also once more when the last line has been written
  }, [live]);
  useEffect(() => {
    abort.current = new AbortController();
    return () => abort.current.abort();
  }, []);
  const n = lines.value.length;
  const {loaded, busy, error} = state.value;
  usePoll(live && (atEnd.value || n < most) ? 2000 : 0, () => void newest());
  useEffect(() => {
    if (atEnd.value && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [n, loaded]);
  return (
    <div class="stack log-view">
      {error && <Failed error={error} again={() => void newest()} />}
      <Late busy={!loaded && busy && !error} lines={5}>
        {n === 0 ? (
          loaded && <p class="muted">{t(live ? 'noLinesYet' : 'noLinesText')}</p>
        ) : (
          <>
            <div
              class="log"
              ref={box}
              role="log"
              aria-live="off"
              aria-label={t('logs')}
              tabIndex={0}
              onScroll={(e) => {
                const el = e.currentTarget;
                atEnd.value = el.scrollHeight - el.scrollTop - el.clientHeight < 24;
              }}
            >
              {earlier.value && (
                <Button
                  small
                  kind="ghost"
                  busy={busy}
                  onClick={() =>
                    void run(async (signal) => {
                      const page = await load(earlier.value, signal);
                      merge(page.items ?? []);
                      earlier.value = page.next_page_token;
                    })
                  }
                >
                  {t('earlierLines')}
                </Button>
              )}
              {lines.value.map((l) => (
                <div key={l.id} class={`log-line ${l.level}`}>
                  <time class="faint num" dateTime={l.time} title={dateTime(l.time)}>
                    {clock(l.time)}
                  </time>
                  <span class="log-level">{t.word('level_', l.level)}</span>
                  <span class="log-text">
                    {showRun?.(l)}
                    {l.message}
                  </span>
                </div>
              ))}
            </div>
            <div class="row">
              {live && (
                <span class={atEnd.value ? 'status good live' : 'status off'}>
                  {t(atEnd.value ? 'following' : 'notFollowing')}
                </span>
              )}
              {!atEnd.value && (
                <Button
                  small
                  kind="ghost"
                  icon="down"
                  onClick={() => {
                    box.current?.scrollTo({top: box.current.scrollHeight});
                  }}
                >
                  {t('toNewest')}
                </Button>
              )}
              <span class="grow" />
              <span class="faint num">{t('lines', {n})}</span>
            </div>
          </>
        )}
      </Late>
    </div>
  );
}
