import type {ComponentChildren} from 'preact';
import {Copy} from './marks';

/** JsonView shows a value as indented JSON. */
export function JsonView({value}: {value: unknown}) {
  const text = JSON.stringify(value, null, 2) ?? '';
  return (
    <div class="stack">
      <div class="row spread">
        <span class="caps">JSON</span>
        <Copy text={text} />
      </div>
      <pre class="json" tabIndex={0}>
        {text.length > mostColored ? text : colored(text)}
      </pre>
    </div>
  );
}

const mostColored = 100_000; // characters; a span for each token of more takes seconds

function colored(text: string): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let at = 0;
  for (const m of text.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g)) {
    parts.push(text.slice(at, m.index));
    if (m[2]) parts.push(<span class="k">{m[1]}</span>, m[2]);
    else parts.push(<span class={m[1] ? 's' : 'n'}>{m[0]}</span>);
    at = m.index + m[0].length;
  }
  parts.push(text.slice(at));
  return parts;
}
