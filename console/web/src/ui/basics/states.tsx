// The states of a part of a screen: loading, empty, failed.
import type {ComponentChildren} from 'preact';
import {useEffect} from 'preact/hooks';
import {useSignal} from '@preact/signals';
import type {ApiError} from '../../lib/api';
import {useLate} from '../../lib/load';
import {Icon, type IconName} from '../icon';
import {problemSentence, t} from '../text';
import {Button} from './button';
import {Copy} from './marks';

export function Skeleton({lines = 3}: {lines?: number}) {
  return (
    <div class="stack" role="status" aria-label={t('loading')}>
      {Array.from({length: lines}, (_, i) => (
        <span key={i} class="skeleton" style={{width: `${90 - ((i * 23) % 45)}%`}} />
      ))}
    </div>
  );
}

/** Blank says what belongs where nothing is. */
export function Blank({
  icon,
  title,
  children,
  action,
}: {
  icon?: IconName;
  title: string;
  children?: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class="blank">
      {icon && (
        <span class="glyph">
          <Icon name={icon} size={28} />
        </span>
      )}
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action && <div class="row wrap">{action}</div>}
    </div>
  );
}

/** problemTitle is a sentence for a problem's code. */
export function problemTitle(error: ApiError): string {
  return problemSentence(error.problem.code);
}

/** useCountdown is how many seconds are left until another attempt makes sense, as the platform said; then it acts. */
export function useCountdown(error: ApiError | undefined, act?: () => void): number {
  const left = useSignal(error?.retryAfter ?? 0);
  useEffect(() => {
    left.value = error?.retryAfter ?? 0;
    if (!left.value) return;
    const timer = setInterval(() => {
      left.value--;
      if (left.value > 0) return;
      clearInterval(timer);
      act?.();
    }, 1000);
    return () => clearInterval(timer);
  }, [error]);
  return left.value;
}

/**
 * Failed shows why something did not work, and tries again: by itself when the platform said when. Only the part of the
 * screen that failed shows it.
 */
export function Failed({error, again}: {error: ApiError; again?: () => void}) {
  const left = useCountdown(error, again);
  useEffect(() => {
    // try again by itself when the network is back
    if (!again || error.problem.status !== 0) return;
    addEventListener('online', again);
    return () => removeEventListener('online', again);
  }, [error]);
  return (
    <div class="note bad" role="alert">
      <Icon name="alert" />
      <div class="grow stack">
        <div>
          <div class="title">{problemTitle(error)}</div>
          <ProblemText error={error} />
        </div>
        {again && (
          <div class="row">
            <Button small icon="refresh" onClick={again}>
              {t('retry')}
            </Button>
            {left > 0 && (
              <span class="muted num" role="timer">
                {t('retryIn', {s: left})}
              </span>
            )}
          </div>
        )}
      </div>
    </div>
  );
}

/**
 * ProblemText is what the service said, in its own language, with the request's id. A brief one has the id alone; so
 * has that of a record that is not there: its title has said that.
 */
export function ProblemText({error, brief}: {error: ApiError; brief?: boolean}) {
  const {detail, request_id: id} = error.problem;
  return (
    <>
      {detail && !brief && !/^no such /.test(detail) && <div lang="en">{detail}</div>}
      {id && (
        <div class="row faint">
          <span class="mono">
            {t('requestId')} {id}
          </span>
          <Copy text={id} label={t('copyRequestId')} />
        </div>
      )}
    </>
  );
}

/** Later shows its children, or a skeleton where they take longer than a moment. */
export function Late({busy, children, lines}: {busy: boolean; children: ComponentChildren; lines?: number}) {
  const late = useLate(busy);
  if (!busy) return <>{children}</>;
  return late ? <Skeleton lines={lines} /> : null;
}
