// What can be done with the records that are open: each menu of a record says so, and the palette offers it.
import {signal} from '@preact/signals';

export interface Offered<T> {
  record: string; // its name
  items: T[];
}

const menus = signal<(() => Offered<unknown>)[]>([]);

/** offer adds a menu until the function that it returns is called. */
export function offer<T>(menu: () => Offered<T>): () => void {
  menus.value = [menu, ...menus.value];
  return () => {
    menus.value = menus.value.filter((m) => m !== menu);
  };
}

/** offers are the menus as they are now, the newest first. */
export const offers = <T>() => menus.value.map((menu) => menu() as Offered<T>);
