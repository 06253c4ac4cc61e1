// Values of objects: any JSON, of which a text may be shown as it is, and base64 as the bytes that it stands for.
import type {KvObject} from '@idplatform/sdk';
import {NotJson, jsonText, parseJson} from '../../lib/notjson';

export type Kind = 'json' | 'text' | 'binary';

/** kinds are the ways in which a value can be shown. */
export function kinds(value: unknown): Kind[] {
  if (typeof value !== 'string') return ['json'];
  return isBase64(value) ? ['json', 'text', 'binary'] : ['json', 'text'];
}

/** kindOf is the way in which a value is shown unless a person chooses another. */
export function kindOf(value: unknown, contentType: string): Kind {
  if (typeof value !== 'string' || /\bjson\b/.test(contentType)) return 'json';
  if (/^text\/|[+/](xml|yaml|javascript)\b/.test(contentType)) return 'text';
  return isBase64(value) ? 'binary' : 'text';
}

/** written is the text that a person edits. */
export function written(value: unknown, kind: Kind): string {
  return kind === 'json' || value instanceof NotJson ? jsonText(value) : String(value);
}

/** read is the value of what a person has typed. */
export function read(text: string, kind: Kind): unknown {
  return kind === 'json' ? parseJson(text) : text;
}

/** sizeOf counts the bytes of a value as compact JSON, as the platform does. */
export function sizeOf(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value) ?? '').length;
}

function isBase64(text: string): boolean {
  return text.length >= 4 && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
}

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

/** picture is a data URI of a value that is an image. */
export function picture(value: unknown, contentType: string): string | undefined {
  const known = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/.test(contentType);
  return known && typeof value === 'string' && isBase64(value) ? `data:${contentType};base64,${value}` : undefined;
}

/** readFile returns a file as base64, with its type. */
export function readFile(file: File): Promise<{value: string; contentType: string}> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => {
      const uri = String(reader.result);
      resolve({value: uri.slice(uri.indexOf(',') + 1), contentType: file.type || 'application/octet-stream'});
    };
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** saveValue offers a value as a file: JSON, a text, or the bytes of base64. */
export function saveValue(o: Pick<KvObject, 'key' | 'content_type' | 'value'>): void {
  const kind = kindOf(o.value, o.content_type);
  const name = o.key.split('/').pop()!;
  const a = document.createElement('a');
  const part = kind === 'binary' ? bytesOf(o.value as string) : written(o.value, kind);
  a.href = URL.createObjectURL(new Blob([part], {type: o.content_type}));
  a.download = kind === 'json' && !/\.\w+$/.test(name) ? `${name}.json` : name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}
