// Small parts of every screen.
export * from './button';
export * from './json';
export * from './marks';
export * from './menu';
export * from './states';
export * from './tabs';
