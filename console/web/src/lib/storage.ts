// What a person has chosen about the looks of the console. Nothing secret is stored in the browser.
const prefix = 'idp.';

export function stored(key: string): string | null {
  try {
    return localStorage.getItem(prefix + key);
  } catch {
    return null; // storage is turned off
  }
}

export function store(key: string, value: string): void {
  try {
    localStorage.setItem(prefix + key, value);
  } catch {
    // the choice lasts until the page is closed
  }
}
