// A text area for code, with line numbers. Tab leaves it, as in every other field; Ctrl ] and Ctrl [ indent lines, and
// Enter keeps the indentation.
import {useSignal} from '@preact/signals';
import {useEffect, useMemo, useRef} from 'preact/hooks';
import type {ApiError} from '../../lib/api';
import {Field, faultOf, type InputProps} from '../../ui/record';
import {t} from './text';

export interface Place {
  line: number; // both from 1
  column: number;
}

const lineHeight = 18; // as in functions.css
const indent = '  ';

/** placeIn finds where a fault of the compiler is: "line 2, column 10: Unexpected token ]". */
function placeIn(message: string | undefined): Place | undefined {
  const at = /^line (\d+), column (\d+)/.exec(message ?? '');
  return at ? {line: Number(at[1]), column: Number(at[2])} : undefined;
}

/** SourceField is the source of a function, with what the compiler says of it. */
export function SourceField({
  value,
  set,
  error,
  readOnly,
  changed,
  jump,
}: {
  value: string;
  set: (value: string) => void;
  error: ApiError | undefined; // of the last attempt to save
  readOnly?: boolean;
  changed?: boolean;
  jump?: Place; // a line that somebody wants to see
}) {
  const fault = faultOf(error, 'source');
  const mark = useMemo(() => placeIn(fault) ?? jump, [error, jump]); // each attempt puts the caret there again
  return (
    <Field label={t('source')} help={readOnly ? undefined : t('editorHelp')} error={fault} changed={changed}>
      {(p) => <CodeEditor value={value} set={set} readOnly={readOnly} mark={mark} props={p} />}
    </Field>
  );
}

function CodeEditor({
  value,
  set,
  readOnly,
  mark,
  props,
}: {
  value: string;
  set: (value: string) => void;
  readOnly?: boolean;
  mark?: Place; // a fault: its line is marked, and the caret goes there
  props: InputProps;
}) {
  const area = useRef<HTMLTextAreaElement>(null);
  const top = useSignal(0);
  const lines = value.split('\n').length;
  const marked = useSignal(value);
  useEffect(() => {
    marked.value = value;
    if (mark && area.current) goTo(area.current, mark);
  }, [mark]);
  const bad = value === marked.value ? mark?.line : undefined; // lines move as somebody types
  return (
    <div class="function-editor" style={{'--digits': String(lines).length}}>
      <div class="gutter" aria-hidden="true">
        <div style={{transform: `translateY(${-top.value}px)`}}>
          {Array.from({length: lines}, (_, i) => (
            <div key={i} class={bad === i + 1 ? 'bad' : ''}>
              {i + 1}
            </div>
          ))}
        </div>
      </div>
      {bad && <div class="function-mark" style={{top: `${8 + (bad - 1) * lineHeight - top.value}px`}} />}
      <textarea
        ref={area}
        {...props}
        wrap="off"
        spellcheck={false}
        autocapitalize="off"
        autocomplete="off"
        rows={Math.min(26, Math.max(10, lines + 1))}
        readOnly={readOnly}
        value={value}
        onScroll={(e) => {
          top.value = e.currentTarget.scrollTop;
        }}
        onInput={(e) => set(e.currentTarget.value)}
        onBeforeInput={(e) => {
          if (e.inputType !== 'insertLineBreak') return;
          e.preventDefault();
          breakLine(e.currentTarget);
        }}
        onKeyDown={(e) => {
          if (readOnly || !e.ctrlKey || (e.key !== ']' && e.key !== '[')) return;
          e.preventDefault();
          indentLines(e.currentTarget, e.key === ']');
        }}
      />
    </div>
  );
}

function goTo(area: HTMLTextAreaElement, {line, column}: Place): void {
  const before = area.value.split('\n').slice(0, line - 1);
  const at = before.reduce((n, l) => n + l.length + 1, 0) + column - 1;
  area.focus();
  area.setSelectionRange(at, at);
  area.scrollTop = Math.max(0, (line - 4) * lineHeight);
}

/** breakLine begins a line as the one before, deeper after an opening bracket. */
function breakLine(area: HTMLTextAreaElement): void {
  const {value, selectionStart: start} = area;
  const line = value.slice(value.lastIndexOf('\n', start - 1) + 1, start);
  insert('\n' + /^[ \t]*/.exec(line)![0] + (/[{[(]\s*$/.test(line) ? indent : ''));
}

/** indentLines moves the lines of the selection by two spaces. */
function indentLines(area: HTMLTextAreaElement, deeper: boolean): void {
  const {value, selectionStart: start, selectionEnd: end} = area;
  const first = value.lastIndexOf('\n', start - 1) + 1;
  const next = value.indexOf('\n', Math.max(start, end - 1));
  const last = next < 0 ? value.length : next;
  const before = value.slice(first, last).split('\n');
  const after = before.map((l) => (deeper ? (l ? indent + l : l) : l.replace(/^( {1,2}|\t)/, '')));
  area.setSelectionRange(first, last);
  insert(after.join('\n'));
  const caret = Math.max(first, start + after[0]!.length - before[0]!.length);
  if (start === end) area.setSelectionRange(caret, caret);
  else area.setSelectionRange(first, first + after.join('\n').length);
}

/** insert types a text, so that the browser's own undo knows it: no other way does. */
function insert(text: string): void {
  if (text) document.execCommand('insertText', false, text);
  else document.execCommand('delete');
}
