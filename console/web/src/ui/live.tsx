// Parts of screens that follow a stream: what its connection is doing, and which time it is about.
import {useSignal} from '@preact/signals';
import {useEffect, useId} from 'preact/hooks';
import {texts} from '../lib/i18n';
import {param, setQuery} from '../lib/router';
import type {StreamState} from '../lib/stream';
import {Button, Popup} from './basics';
import {Icon} from './icon';

const t = texts({
  live: ['Live', '实时'],
  connecting: ['Connecting…', '正在连接…'],
  waiting: ['Connection lost, trying again in {s} s', '连接已断开，{s} 秒后重试'],
  paused: ['Paused', '已暂停'],
  failed: ['Stopped', '已停止'],
  now: ['Try now', '立即重试'],
  apply: ['Apply', '应用'],
  remove: ['Remove', '移除'],
  from: ['From', '从'],
  to: ['Until', '至'],
  today: ['Today', '今天'],
  lastHour: ['Last hour', '最近一小时'],
  days7: ['Last 7 days', '最近 7 天'],
  anyTime: ['Any time', '任何时间'],
});

/** Connection says whether new rows arrive. */
export function Connection({state, paused, retry}: {state: StreamState; paused?: boolean; retry: () => void}) {
  const now = useSignal(Date.now());
  useEffect(() => {
    if (state.is !== 'waiting') return;
    now.value = Date.now();
    const timer = setInterval(() => {
      now.value = Date.now();
    }, 1000);
    return () => clearInterval(timer);
  }, [state]);
  if (state.is === 'waiting') {
    const s = Math.max(0, Math.ceil((state.until - now.value) / 1000));
    return (
      <span class="row">
        <span class="status warn" role="status">
          {t('waiting', {s})}
        </span>
        <Button kind="ghost" small onClick={retry}>
          {t('now')}
        </Button>
      </span>
    );
  }
  if (state.is === 'failed')
    return (
      <span class="status bad" role="status">
        {t('failed')}
      </span>
    );
  if (paused)
    return (
      <span class="status off" role="status">
        {t('paused')}
      </span>
    );
  if (state.is === 'live')
    return (
      <span class="status good live" role="status">
        {t('live')}
      </span>
    );
  return (
    <span class="status off" role="status">
      {t('connecting')}
    </span>
  );
}

/** Choice is a value of a filter, and what people read for it. */
export interface Choice {
  value: string;
  label: string;
}

/** labelOf is what people read for a value, and valueOf the way back; what is no choice stays as it is. */
export const labelOf = (value: string, choices?: Choice[]) => choices?.find((c) => c.value === value)?.label ?? value;

export function valueOf(text: string, choices?: Choice[]): string {
  return choices?.find((c) => c.label.toLowerCase() === text.toLowerCase())?.value ?? text;
}

function Remove({label, clear}: {label: string; clear: () => void}) {
  return (
    <button type="button" class="chip-x" aria-label={`${t('remove')}: ${label}`} onClick={clear}>
      <Icon name="x" size={12} />
    </button>
  );
}

const zoned = (local: string) => (local ? new Date(local).toISOString() : null);

/** A time as an input of type datetime-local wants it: in the zone of the browser. */
export function localTime(text: string): string {
  const d = new Date(text);
  if (!text || Number.isNaN(d.getTime())) return '';
  return new Date(d.getTime() - d.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** TimeChip chooses a span of time: the parameters from and to. */
export function TimeChip({label}: {label: string}) {
  const from = param('from'),
    to = param('to');
  const show = (text: string) => localTime(text).replace('T', ' ');
  const text = [from && show(from), to && show(to)].filter(Boolean);
  return (
    <span class={text.length ? 'chip on' : 'chip'}>
      <Popup
        role="dialog"
        title={label}
        trigger={(toggle, open) => (
          <button type="button" class="chip-text" aria-haspopup="dialog" aria-expanded={open} onClick={toggle}>
            {label}
            {text.length > 0 && (
              <>
                :{' '}
                <strong class="num">
                  {from ? show(from) : '…'} – {to ? show(to) : '…'}
                </strong>
              </>
            )}
            {!text.length && <Icon name="down" size={12} />}
          </button>
        )}
      >
        {(close) => <TimeForm close={close} />}
      </Popup>
      {text.length > 0 && <Remove label={label} clear={() => void setQuery({from: null, to: null}, {replace: true})} />}
    </span>
  );
}

function TimeForm({close}: {close: () => void}) {
  const from = useSignal(localTime(param('from'))),
    to = useSignal(localTime(param('to')));
  const ids = [useId(), useId()];
  const set = (a: string | null, b: string | null) => {
    close();
    void setQuery({from: a, to: b}, {replace: true});
  };
  const back = (ms: number) => new Date(Date.now() - ms).toISOString();
  const midnight = () => new Date(new Date().setHours(0, 0, 0, 0)).toISOString();
  return (
    <form
      class="chip-form tall"
      onSubmit={(e) => {
        e.preventDefault();
        set(zoned(from.value), zoned(to.value));
      }}
    >
      <div class="row wrap">
        <Button small onClick={() => set(back(3_600_000), null)}>
          {t('lastHour')}
        </Button>
        <Button small onClick={() => set(midnight(), null)}>
          {t('today')}
        </Button>
        <Button small onClick={() => set(back(7 * 86_400_000), null)}>
          {t('days7')}
        </Button>
      </div>
      {(
        [
          [from, 'from'],
          [to, 'to'],
        ] as const
      ).map(([s, name], i) => (
        <div class="field" key={name}>
          <label for={ids[i]}>{t(name)}</label>
          <input
            id={ids[i]}
            class="input"
            type="datetime-local"
            value={s.value}
            onInput={(e) => {
              s.value = e.currentTarget.value;
            }}
          />
        </div>
      ))}
      <div class="row spread">
        <Button kind="ghost" onClick={() => set(null, null)}>
          {t('anyTime')}
        </Button>
        <Button type="submit" kind="primary">
          {t('apply')}
        </Button>
      </div>
    </form>
  );
}
