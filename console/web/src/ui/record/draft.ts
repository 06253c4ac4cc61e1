// The form of a record: a draft of what the record has, of which only the changes are sent.
import {useComputed, useSignal, type Signal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import {ApiError, asProblem, type Answer} from '../../lib/api';
import {conflicts, diff, pick, same, type Conflict, type Fields} from '../../lib/patch';
import {guard, underWay} from '../../lib/router';
import {changed} from '../../lib/load';
import {may} from '../../lib/session';
import {toast} from '../dialog';
import {plainFault} from '../text';
import {undone} from '../undo';

export interface Draft<T> {
  base: Signal<T>;
  draft: Signal<T>;
  etag: Signal<string>;
  changes: {value: Fields | undefined}; // the merge patch of what was changed
  count: {value: number};
  error: Signal<ApiError | undefined>;
  saving: Signal<boolean>;
  conflict: Signal<{theirs: Answer<T>; list: Conflict[]} | undefined>;
  get: (field: keyof T & string) => unknown;
  set: (field: keyof T & string, value: unknown) => void;
  save: () => Promise<void>;
  send: () => Promise<Answer<T>>; // what save sends, for those who only show it
  failed: (error: unknown) => void;
  discard: () => void;
  resolve: (fields: Fields) => void;
  fault: (field: string) => string | undefined;
  readOnly: boolean;
}

export interface RecordSource<T> {
  load: () => Promise<Answer<T>>; // anew, when somebody else has changed it
  save: (patch: Partial<T>, etag: string, whole: T) => Promise<Answer<T>>; // PATCH or PUT with If-Match
  scope?: string; // without it the form is read only
  kind?: string; // of the lists that show the record
  saved?: (now: T, before: T) => string | void; // what is told after a save, with undo
  undoable?: (now: T, before: T) => boolean; // absent: every save can be undone
  again?: () => void; // loads the panel anew, after a save and its undo
}

/** useDraft is the state of a record's form. */
export function useDraft<T extends object>(answer: Answer<T>, source: RecordSource<T>): Draft<T> {
  const base = useSignal(answer.data),
    draft = useSignal(answer.data),
    etag = useSignal(answer.etag);
  const error = useSignal<ApiError | undefined>(undefined);
  const saving = useSignal(false);
  const conflict = useSignal<{theirs: Answer<T>; list: Conflict[]} | undefined>(undefined);
  const changes = useComputed(() => diff(base.value as Fields, draft.value as Fields));
  const count = useComputed(() => Object.keys(changes.value ?? {}).length);
  // mine has the changed members as a whole: a patch lacks what an object keeps.
  const mine = () => pick(draft.value as Fields, Object.keys(changes.value ?? {}));
  useEffect(() => guard(() => changes.value !== undefined), []);
  useEffect(() => {
    // loaded anew, for example after an action: what was typed stays, and meets what others have changed
    if (answer.etag === etag.value) return;
    const list = conflicts(base.value as Fields, answer.data as Fields, draft.value as Fields);
    if (list.length) {
      conflict.value = {theirs: answer, list};
      return;
    }
    const kept = mine();
    base.value = answer.data;
    draft.value = {...answer.data, ...kept};
    etag.value = answer.etag;
  }, [answer]);
  const take = (a: Answer<T>, kept: Fields = {}) => {
    base.value = a.data;
    draft.value = {...a.data, ...kept};
    etag.value = a.etag;
    error.value = undefined;
  };
  const meet = async () => {
    const theirs = await source.load();
    const list = conflicts(base.value as Fields, theirs.data as Fields, draft.value as Fields);
    conflict.value = {theirs, list};
  };
  // since has the members that were typed after those that a save has sent.
  const since = (sent: Fields) =>
    pick(
      draft.value as Fields,
      Object.keys(draft.value).filter((member) => !same((draft.value as Fields)[member], sent[member])),
    );
  // lookAgain finds out whether a change was made whose answer is lost: a PATCH is not repeated blindly.
  const lookAgain = async (lost: ApiError, sent: Fields, patch: Fields) => {
    const now = await source.load().catch(() => undefined);
    if (!now) error.value = lost;
    else if (now.etag === etag.value) error.value = new ApiError({...lost.problem, code: 'not_made', detail: ''});
    else if (Object.keys(patch).every((member) => same(sent[member], (now.data as Fields)[member]))) {
      const before = base.value;
      take(now, since(sent));
      tell(source, now, before, patch);
    } else await meet();
  };
  const save = async () => {
    const patch = changes.value,
      sent = draft.value as Fields;
    if (!patch || saving.value) return;
    saving.value = true;
    error.value = undefined;
    try {
      const before = base.value;
      const now = await source.save(patch as Partial<T>, etag.value, draft.value);
      take(now, since(sent));
      tell(source, now, before, patch);
    } catch (e) {
      const problem = asProblem(e);
      try {
        if (problem.problem.status === 412) await meet();
        else if ([0, 502].includes(problem.problem.status)) await lookAgain(problem, sent, patch);
        else error.value = problem;
      } catch (e2) {
        error.value = asProblem(e2);
      }
    } finally {
      saving.value = false;
    }
  };
  return {
    base,
    draft,
    etag,
    changes,
    count,
    error,
    saving,
    conflict,
    readOnly: source.scope !== undefined && !may(source.scope),
    get: (f) => draft.value[f],
    set: (f, value) => {
      draft.value = {...draft.value, [f]: value};
    },
    fault: (f) => faultOf(error.value, f),
    discard: () => {
      draft.value = base.value;
      error.value = undefined;
    },
    send: () => source.save((changes.value ?? {}) as Partial<T>, etag.value, draft.value),
    failed: (e) => {
      error.value = asProblem(e);
    },
    save: () => underWay(save()),
    resolve: (chosen) => {
      const c = conflict.value!;
      const kept = mine();
      conflict.value = undefined;
      take(c.theirs, {...kept, ...chosen});
    },
  };
}

// tell says that a record is saved, and offers to write back the members that the save has changed.
function tell<T extends object>(source: RecordSource<T>, now: Answer<T>, before: T, patch: Fields): void {
  const refresh = () => {
    if (source.kind) changed(source.kind);
    source.again?.();
  };
  refresh();
  const said = source.saved?.(now.data, before);
  if (!said) return;
  const back = diff(now.data as Fields, before as Fields) ?? {};
  const own = Object.fromEntries(Object.entries(back).filter(([member]) => Object.hasOwn(patch, member)));
  const undo = () => undone(() => source.save(own as Partial<T>, now.etag, before)).then(refresh);
  toast(said, source.undoable?.(now.data, before) === false ? undefined : undo);
}

const asked = new WeakSet<object>(); // faults that inputs have asked for

/** isAtInput reports whether an input has asked for a fault, which it then shows. */
export const isAtInput = (fault: object): boolean => asked.has(fault);

/** findFault finds what a problem says about some location. */
export function findFault(error: ApiError | undefined, is: (location: string) => boolean): string | undefined {
  const fault = error?.problem.errors?.find((e) => is(e.location));
  if (fault) asked.add(fault);
  return fault && plainFault(fault.message);
}

/** faultOf finds what a problem says about a member: its location is body.email, or body.addresses[2].city. */
export const faultOf = (error: ApiError | undefined, field: string): string | undefined =>
  findFault(error, (location) => {
    const at = location.replace(/^body\.?/, '');
    return at === field || at.startsWith(field + '.') || at.startsWith(field + '[');
  });
