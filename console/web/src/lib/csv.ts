// CSV as spreadsheets write it (RFC 4180), with commas, semicolons or tabs.

/** parseCsv returns rows of cells; the separator is the one that the first line has most of. */
export function parseCsv(text: string): string[][] {
  const body = text.replace(/^\ufeff/, '');
  const first = body.slice(0, (body.indexOf('\n') + 1 || body.length + 1) - 1);
  const separator = [',', ';', '\t'].sort((a, b) => first.split(b).length - first.split(a).length)[0]!;
  const rows: string[][] = [];
  let row: string[] = [],
    cell = '',
    quoted = false;
  const endRow = () => {
    row.push(cell);
    if (row.some((c) => c !== '')) rows.push(row);
    row = [];
    cell = '';
  };
  for (let i = 0; i < body.length; i++) {
    const c = body[i]!;
    if (quoted) {
      if (c !== '"') cell += c;
      else if (body[i + 1] === '"') {
        cell += '"';
        i++;
      } else quoted = false;
    } else if (c === '"' && cell === '') quoted = true;
    else if (c === separator) {
      row.push(cell);
      cell = '';
    } else if (c === '\n') endRow();
    else if (c !== '\r') cell += c;
  }
  endRow();
  return rows;
}

/** toCsv writes rows so that parseCsv and spreadsheets read them; no cell can be taken for a formula. */
export function toCsv(rows: string[][]): string {
  return (
    rows
      .map((r) =>
        r
          .map((c) => {
            const safe = /^[=+\-@\t]/.test(c) && !/^[+-]?\d[\d ]*$/.test(c) ? `'${c}` : c;
            return /[",;\n\r\t]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
          })
          .join(','),
      )
      .join('\r\n') + '\r\n'
  );
}

/** saveFile offers a text as a file. */
export function saveFile(name: string, type: string, text: string): void {
  savePieces(name, type, [text]);
}

/** savePieces is saveFile for a long text. */
export function savePieces(name: string, type: string, pieces: string[]): void {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(new Blob(pieces, {type}));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}
