// Asking again and again, for what has no stream: only while somebody sees it.
import {useEffect, useRef} from 'preact/hooks';
import {asking} from './session';

/** usePoll calls act every `ms` milliseconds, not while the page is hidden or asks for a sign-in; at 0 it stops. */
export function usePoll(ms: number, act: () => void): void {
  const current = useRef(act);
  current.current = act;
  useEffect(() => {
    if (!ms) return;
    const turn = () => {
      if (!document.hidden && !asking.value) current.current();
    };
    const timer = setInterval(turn, ms);
    document.addEventListener('visibilitychange', turn);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', turn);
    };
  }, [ms]);
}
